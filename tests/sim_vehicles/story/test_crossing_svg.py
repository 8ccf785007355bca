"""The moving picture: well-formed and without scripts, its figures the judge's, its motion the replay's."""

import re
from itertools import pairwise
from math import hypot
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.story.page.run_story import Story, read_story
from sim_vehicles.story.page.wording import outcome, whole_milliseconds
from sim_vehicles.story.picture.crossing_svg import picture, play_time, view_of, write
from sim_vehicles.story.picture.ground import View
from sim_vehicles.story.picture.keyframes import TOLERANCE, PlayTime, Pose, thinned
from sim_vehicles.story.picture.panel import Panel
from tests.sim_vehicles.story.warned_crossing import written

SVG = "{http://www.w3.org/2000/svg}"
DOCS = Path(__file__).parents[3] / "docs"
DRAWING, SHOTS = DOCS / "crossing.svg", DOCS / "pictures"
MOST_BYTES, MOST_IN_ALL = 150_000, 400_000
NEAR_M = 0.1
FRAME = re.compile(r"([\d.]+)%\{transform:translate\(([-\d.]+)px,([-\d.]+)px\)")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One warned in time, one too late."""
    early, late = (tmp_path_factory.mktemp(name) for name in ("early", "late"))
    return written(early, 120), written(late, 900)


@pytest.fixture(scope="module")
def stories(runs: tuple[Path, Path]) -> tuple[Story, Story]:
    return read_story(runs[0]), read_story(runs[1])


@pytest.fixture(scope="module")
def drawn(stories: tuple[Story, Story]) -> str:
    return picture(stories)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_it_has_both_outcomes_with_the_judges_figures(stories: tuple[Story, Story], drawn: str) -> None:
    early, late = stories
    told = texts(drawn)
    assert outcome(early) in told and outcome(late) in told
    assert early.verdict.found.stood is not None and f"{early.verdict.found.stood.left_m:.2f} m" in outcome(early)
    assert late.crashed and f"{late.verdict.found.impact_kmh:.0f} km/h" in outcome(late)
    for story in stories:
        first, knew, deciding = story.verdict.found.first_perceivable, story.verdict.found.knew, story.deciding
        assert first is not None and knew is not None and deciding is not None
        assert f"warned {knew.at_s - first.at_s:.2f} s after {first.by} saw X" in told
        assert any(
            each.startswith(f"warned after {whole_milliseconds(deciding.latency_bounds_ns[1])}") for each in told
        )


def test_speeds_are_the_replays_at_each_tick(stories: tuple[Story, Story], drawn: str) -> None:
    columns = [
        [each.text for each in reel.iter(f"{SVG}text")] for reel in ElementTree.fromstring(drawn).iter(f"{SVG}svg")
    ][1:]
    clock, *speeds = columns
    times = [stories[0].verdict.found.first_perceivable.at_s + float(each.replace("−", "-")) for each in clock]  # type: ignore[union-attr]
    expected = []
    for story in stories:
        panel = Panel(story, PlayTime(times[0], times[-1], 0.0), View(0, 0, 1, 1, 1))
        for name in ("A", "X"):
            states = [panel.state(name, at_s) for at_s in times]
            expected.append([f"{state.speed_mps * 3.6:.0f}" for state in states if state is not None])
    assert speeds == expected


@pytest.mark.parametrize("number", [0, 1])
def test_keyframes_follow_the_replay(stories: tuple[Story, Story], drawn: str, number: int) -> None:
    """Both cars at every sample of the replay, as the picture's own rules move them."""
    time = play_time(stories[0])
    view, story = view_of(stories, time), stories[number]
    panel = Panel(story, time, view)
    for name in ("A", "X"):
        rule = _mover(drawn, name)[number]
        frames = [
            tuple(map(float, each))
            for each in FRAME.findall(drawn.partition(f"@keyframes a{rule}{{")[2].partition("\n")[0])
        ]
        for step in range(int((time.end_s - time.begin_s) / 0.05)):
            at_s = time.begin_s + 0.05 * step
            state, (x, y) = panel.state(name, at_s), _at(frames, time.percent(at_s))
            assert state is not None
            x_m, y_m = view.x_m + x / view.scale, view.y_m - y / view.scale
            assert hypot(x_m - state.x_m, y_m - state.y_m) < NEAR_M, (name, at_s)
        assert len(frames) < 30


def _mover(svg: str, name: str) -> list[str]:
    """Numbers of the rules that move the letter of a car, one for each panel."""
    groups = [each for each in ElementTree.fromstring(svg).iter(f"{SVG}g") if each.get("class", "").startswith("m k")]
    letters = [
        [text for text in each.findall(f"{SVG}text") if text.get("class", "").startswith("id")] for each in groups
    ]
    return [
        group.get("class", "").removeprefix("m k")
        for group, found in zip(groups, letters, strict=True)
        if found and found[0].text == name
    ]


def _at(frames: list[tuple[float, ...]], percent: float) -> tuple[float, float]:
    """Linear between the frames around."""
    for (a, ax, ay), (b, bx, by) in pairwise(frames):
        if a <= percent <= b:
            share = (percent - a) / (b - a) if b > a else 1.0
            return ax + share * (bx - ax), ay + share * (by - ay)
    raise AssertionError(percent)


def test_thinned_motion_stays_near(seed: int) -> None:
    random = Random(seed)
    for _ in range(30):
        x, poses = 0.0, []
        for number in range(60):
            x += random.choice((0.0, 1.0, random.uniform(-4, 4)))
            poses.append(Pose(number * 0.05, x, -x / 2, x / 3))
        few = thinned(poses)
        assert few[0] == poses[0] and few[-1] == poses[-1]
        for pose in poses:
            after = next(each for each in few if each.at_s >= pose.at_s)
            before = few[max(0, few.index(after) - 1)]
            share = (pose.at_s - before.at_s) / ((after.at_s - before.at_s) or 1.0)
            assert abs(before.x + share * (after.x - before.x) - pose.x) <= TOLERANCE + 1e-9


def test_the_same_runs_give_the_same_bytes(runs: tuple[Path, Path], drawn: str, tmp_path: Path) -> None:
    assert write(runs, tmp_path / "crossing.svg").read_text(encoding="utf-8") == drawn


def test_other_encounters_are_refused(stories: tuple[Story, Story]) -> None:
    with pytest.raises(BadInputError) as caught:
        picture(stories[:1])
    assert caught.value.problem.mistake.code == "other_encounter"


@pytest.mark.parametrize("which", ["drawn here", "of the README"])
def test_it_plays_without_scripts_and_loads_nothing(which: str, drawn: str) -> None:
    svg = drawn if which == "drawn here" else DRAWING.read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert len(svg.encode()) < MOST_BYTES
    assert {each.tag for each in root.iter()} <= {
        f"{SVG}{name}" for name in ("svg", "title", "style", "clipPath", "rect", "g", "path", "circle", "text")
    }
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    assert "prefers-reduced-motion:reduce" in svg and "prefers-color-scheme:dark" in svg
    assert "url(" not in svg.replace("url(#panel)", "") and "@import" not in svg


def test_the_readmes_picture_shows_both_outcomes() -> None:
    told = " ".join(texts(DRAWING.read_text(encoding="utf-8")))
    assert re.search(r"A stops [\d.]+ m short of X’s way", told) and re.search(r"A hits X at \d+ km/h", told)


def test_pictures_of_pages_are_small() -> None:
    sizes = [path.stat().st_size for path in SHOTS.iterdir()]
    assert max(sizes) < MOST_BYTES and sum(sizes) < MOST_IN_ALL
