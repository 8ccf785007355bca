"""scene.html: made from what a replay writes, complete, self-contained, and safe against what files hold."""

import json
import re
import shutil
from base64 import b64decode
from gzip import decompress
from importlib.resources import files
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import pytest

from sim_vehicles.contest.contest_results import (
    ContestResults,
    Crashes,
    Interval,
    Pair,
    WayAtLoad,
    read_results,
)
from sim_vehicles.story.page.contest_plots import contest_table, impact_speed
from sim_vehicles.story.page.playback import playback
from sim_vehicles.story.page.run_story import read_story
from sim_vehicles.story.page.scene_html import page, write
from sim_vehicles.story.page.stopping_profile import Line
from sim_vehicles.story.page.wording import beside, outcome
from tests.browser import MOST_BYTES
from tests.sentences import Wording
from tests.sim_vehicles.story.warned_crossing import replayed, written
from tests.simulation.planned_queries import MS

SAID = Wording("explain", "page")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Its deciding tuple takes 120 ms."""
    return written(tmp_path / "run")


def changed(run: Path, **what: Any) -> Path:
    document = json.loads((run / "replay.json").read_text())
    for path, value in what.items():
        place = document
        *keys, last = path.split("__")
        for key in keys:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place[last] = value
    (run / "replay.json").write_text(json.dumps(document))
    return run


def own(html: str) -> str:
    """The page without Plotly's library."""
    found = re.fullmatch(r'(.*<script type="text/plain" id="plotly">)([A-Za-z0-9+/=]+)(</script>.*)', html, re.DOTALL)
    assert found is not None
    assert b"Licensed under the MIT license" in decompress(b64decode(found[2]))[:400]
    return found[1] + found[3]


def drawn(*runs: Path) -> str:
    return own(page(runs))


def test_the_page_is_whole_self_contained_and_small(run: Path) -> None:
    path = write([run], run)
    assert path == run / "scene.html" and not list(run.glob(".*.part"))
    assert path.stat().st_size < MOST_BYTES
    html = own(path.read_text())
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttp", html)
    titles = re.findall("<h2[^>]*>(.*?)</h2>", html)
    assert titles == [
        "How often it ends in a crash", "The encounter from above", "What happened, in figures", "Distance over time",
        "Where the time of the warning went", "All laps: messages sent at every phase", "More",
    ]  # fmt: skip
    assert "None" not in html and "nan" not in html.replace("finance", "") and "Infinity" not in html
    assert html.count("<section") == html.count("</section>") == len(titles)
    assert "valid: virtual time" in html and "deadline placement, EDF" in html


def test_two_runs_of_one_encounter_are_side_by_side(run: Path, tmp_path: Path) -> None:
    late = shutil.copytree(run, tmp_path / "late")
    (late / "replay.json").write_text(replayed(900))
    html = drawn(run, late)
    assert "The same encounter, run in 2 ways" in html
    assert html.count('<div class="panel">') == html.count('<canvas role="img"') == 2 and html.count('id="seek"') == 1
    told = playback([read_story(run), read_story(late)], ["early", "late"])
    early, crashed = told["runs"]
    assert early["impact_s"] is None and crashed["impact_s"] is not None and early["knew_s"] < crashed["knew_s"]
    assert early["ego"]["x_m"] != crashed["ego"]["x_m"] or early["ego"]["y_m"] != crashed["ego"]["y_m"]
    assert told["scene"]["ego"] not in told["scene"]["vehicles"]


def test_runs_of_different_encounters_are_refused(run: Path, tmp_path: Path) -> None:
    other = changed(shutil.copytree(run, tmp_path / "other"), scene__name="elsewhere")
    with SAID.refuses("replay.json other_encounter", worded=False):
        page([run, other])


def test_the_contest_comes_first_with_what_it_is_of(run: Path) -> None:
    contest = read_results()
    html = drawn(run)
    assert f"<b>{contest.encounters} encounters</b>" in html and f"Run on {contest.date}" in html
    assert html.index('id="plot0"') < html.index("<canvas") and f"seed {contest.seed}" in html
    figure = json.loads(html.split("FIGURES = ")[1].split(";</script>")[0])["plot0"]
    assert [trace["name"] for trace in figure["data"]] == list(contest.ways)
    for trace in figure["data"]:
        rows = [row.crashes for row in contest.rows if row.way == trace["name"]]
        assert trace["y"] == pytest.approx([each.crashes / each.encounters for each in rows], abs=1e-3)
        assert all(y - down >= 0 and y + up <= 1.0001 for y, up, down in zip(
            trace["y"], trace["error_y"]["array"], trace["error_y"]["arrayminus"], strict=True))  # fmt: skip


def test_impact_speeds_are_drawn() -> None:
    share, speed = Interval(0.5, 0.2, 0.8), Interval(12.0, 4.0, 20.0)
    rows = tuple(
        WayAtLoad(load, way, Crashes(4, 2, share, speed, speed), Pair(1, 1, 2, 1.0))
        for load in (0.5, 1.0)
        for way in ("<one>", "other")
    )
    contest = ContestResults("2026-01-02", "abc", 7, 8, "other", rows)
    figure = impact_speed(contest)
    assert figure["data"][0]["y"] == [12.0, 12.0] and figure["data"][0]["name"] == "&lt;one&gt;"
    assert "crashed alone: it, other" in contest_table(contest) and "12.0, 4.0 to 20.0" in contest_table(contest)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Of WCAG."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str) -> tuple[float, float, float]:
    """CIELAB, D65."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )  # fmt: skip
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("dark", [False, True])
def test_x_messages_and_a_warned_ego_are_told_apart_by_colour(dark: bool) -> None:
    """By 40 of CIELAB from one another, and 3:1 in contrast from what is around them (WCAG 1.4.11)."""
    css = files("sim_vehicles.story.page").joinpath("assets", "page.css").read_text()
    light_rules, dark_rules = css.split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})[;\s]", light_rules))
    if dark:
        colours |= dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})[;\s]", dark_rules.split("} }")[0]))
    for one, other in combinations(("ego", "warned", "cross", "message", "radio"), 2):
        assert dist(lab(colours[one]), lab(colours[other])) > 40, (one, other)
    for one in ("ego", "cross", "message"):
        assert contrast(colours[one], colours["road"]) > 3, one
    against = "road" if dark else "outline"  # on a light road it is its outline that stands out
    assert contrast(colours["warned"], colours[against]) > 3 and (
        dark or contrast(colours["outline"], colours["road"]) > 3
    )


def test_events_come_in_order_and_the_verdicts_numbers_lie_on_the_curve(run: Path) -> None:
    story = read_story(run)
    assert story.stopping is not None
    for told in (story.verdict.found.first_perceivable, story.verdict.found.knew):
        assert told is not None and story.stopping.left.at(told.at_s) == pytest.approx(told.left_m, abs=0.02)
    at_s = [event.at_s for event in story.events]
    assert at_s == sorted(at_s)
    kinds = [event.kind for event in story.events]
    assert not story.crashed
    assert kinds == ["sight", "message", "message", "knew", "brake", "limit", "stop"], "X is seen in good time"
    assert story.deciding is not None and story.handed_s == pytest.approx(story.deciding.measured_s + 0.1, abs=1e-3)


def test_the_last_moment_is_when_the_needed_way_is_what_is_left(run: Path) -> None:
    """At 50 km/h: 13.89 (0.2 + 0.3 / 2) - 7 * 0.3^2 / 24 + 13.89^2 / 14 = 18.61 m."""
    way = read_story(run).stopping
    assert way is not None and way.latest_s is not None
    assert way.recorded.at(way.latest_s) == pytest.approx(18.61, abs=0.05)
    assert way.needed.at(way.latest_s) == pytest.approx(18.61, abs=0.05)
    # 18.61 m before a strip that an unbraked A reaches at 13.89 m/s
    reached_s = next(t for t, m in zip(way.recorded.instants_s, way.recorded.metres, strict=True) if m <= 0)
    assert reached_s - way.latest_s == pytest.approx(18.61 / 13.89, abs=0.06)


def test_the_split_is_the_traces_and_the_bar_adds_up(run: Path) -> None:
    story = read_story(run)
    assert sum(stage.ns for stage in story.traced.stages) == (120 + 200) * MS and story.traced.deadline_ns == 300 * MS
    html = drawn(run)
    assert html.count(".000<") == 0 and ">320.0<" in html and "O3" in html and "queue" in html
    assert story.traced.gantt is not None and sum(row.is_deciding for row in story.traced.gantt.rows) == 2


def test_a_crash_is_said_first_and_marked(run: Path) -> None:
    (run / "replay.json").write_text(replayed(900))
    story = read_story(run)
    assert story.crashed
    html = drawn(run)
    kmh = story.verdict.found.impact_kmh
    assert f'<h1 class="bad">A hits X at {kmh:.0f} km/h</h1>' in html
    assert re.search(r"\d of 4 laps crash", html)
    told = playback([story], ["one"])
    x, y = told["runs"][0]["contact"]
    assert abs(x - 1.6) < 1.5 and abs(y - 1.6) < 4  # where A's and X's lanes meet
    assert told["runs"][0]["impact_s"] == story.verdict.found.impact_s and told["scene"]["crossing"] == "X"


def test_an_outcome_in_words(run: Path) -> None:
    story = read_story(run)
    found = story.verdict.found
    assert found.brake is not None and found.brake.stopped_s is not None
    stopped = story.left_m(found.brake.stopped_s)
    assert not story.crashed and stopped is not None
    assert outcome(story) == f"A stops {stopped:.2f} m short of X’s way" and beside(story) == ""
    assert found.stood is not None and found.stood.left_m == pytest.approx(stopped, abs=0.01) and not found.stood.in_way
    changed(run, verdict__brake=None, verdict__deciding=None, verdict__knew=None)
    assert outcome(read_story(run)).startswith("A and X pass without contact; least gap ")


def test_a_near_miss_is_amber_with_its_gap_in_centimetres(run: Path) -> None:
    changed(run, verdict__gap_m=0.012, verdict__stood={"left_m": -0.17, "in_way": True})
    html = drawn(run)
    assert '<h1 class="warn">A stops in X’s way, after X has passed; least gap 1 cm</h1>' in html
    assert "at 50 km/h A drives that far in under 1 ms. A phase like this is decided by milliseconds." in html
    assert "<b>Near miss</b>" in html
    changed(run, verdict__stood={"left_m": 0.3, "in_way": False}, verdict__gap_m=0.3)
    assert outcome(read_story(run)) == "A stops 30 cm short of X’s way; least gap 30 cm"
    changed(run, verdict__stood={"left_m": -9.0, "in_way": False}, verdict__gap_m=2.0)
    assert outcome(read_story(run)) == "A stops beyond X’s way; least gap 2.00 m"


@pytest.mark.parametrize("latency_ms", [120, 900])
def test_what_is_not_valid_is_neither_green_nor_red_and_says_why_first(run: Path, latency_ms: int) -> None:
    (run / "replay.json").write_text(replayed(latency_ms))
    document = json.loads((run / "replay.json").read_text())
    for verdict in (document["verdict"], *document["laps"]):
        verdict["valid"], verdict["why_not_valid"] = False, "rate 4"
    (run / "replay.json").write_text(json.dumps(document))
    html = drawn(run)
    assert re.search(r'<h1 class="neutral">[^<]*</h1><p class="beside">Not valid: rate 4</p>', html)
    markup = re.sub('class="key [^"]*"', "", html.split("<noscript>")[0])  # colours of events judge nothing
    assert not re.search(r'class="[^"]*\b(?:good|bad)\b', markup.split("</main>")[0])


def test_at_another_rate_wall_time_and_the_recordings_are_both_said(run: Path) -> None:
    told = json.loads((run / "replay.json").read_text())["verdict"]["deciding"]
    html = drawn(changed(run, rate=4.0, verdict__deciding__delivered_s=told["measured_s"] + 0.48))
    assert "480 ms of the recording" in html and "120 ms in wall time, at rate 4.0" in html
    assert "latency, wall time [ms]" in html


def test_without_a_trace_the_page_says_what_is_missing(run: Path) -> None:
    for path in (run / "trace").rglob("*.trace"):
        path.unlink()
    html = drawn(run)
    assert html.count("there is no trace beside replay.json") == 2
    split: list[dict[str, Any]] = [{"stage": "sensing", "node": None, "operators": [], "ns": 100}]
    html = drawn(changed(run, verdict__deciding__split=split))
    assert html.count("there is no trace beside replay.json") == 1 and "sensing" in html


def test_nobody_warned_and_no_crossing_vehicle(run: Path) -> None:
    changed(run, verdict__deciding=None, verdict__knew=None, verdict__brake=None, verdict__closed_form=None)
    html = drawn(run)
    assert "no tuple decided" in html and "A is never warned" in html
    changed(run, scene__crossing=None, verdict__first_perceivable=None, scene__perceives=[])
    counts = {"about_crossing": 0, "false": 0, "others": 7, "missed": False}
    html = drawn(changed(run, verdict__warnings=counts))
    assert '<h1 class="neutral">No crossing vehicle named: nothing to judge</h1>' in html
    assert "A touches nobody; least gap " in html and "neither right nor false" in html
    assert not re.search("avoided|false warnings", html.split("<noscript>")[0])


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_what_stands_in_files_cannot_become_markup(run: Path) -> None:
    document = json.loads((run / "replay.json").read_text().replace('"E"', json.dumps(EVIL + "E")))
    document["scene"]["name"] = document["scene"]["occluders"][0]["name"] = EVIL
    document["verdict"]["valid"], document["verdict"]["why_not_valid"] = False, EVIL
    document["verdict"]["note"] = document["channel"] = EVIL
    (run / "replay.json").write_text(json.dumps(document))
    plan = json.loads((run / "plan.json").read_text())
    for local in plan["nodes"].values():
        local["policy"]["name"] = EVIL
    (run / "plan.json").write_text(json.dumps(plan))
    html = drawn(run)
    assert "<img" not in html and html.count("<script") == html.count("</script>") == 6
    assert "Not valid: &lt;/script&gt;" in html


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("verdict__knew__at_s", EVIL),
        ("laps__1__impact_kmh", EVIL),
        ("laps__0__burst_phase", EVIL),
        ("scene__vehicles__A__x_m", [1.0]),
        ("scene__step_s", "x"),
        ("scene__messages", [{"at_s": 1}]),
        ("scene__start_s", float("nan")),
        ("verdict__deciding__latency_ns", None),
        ("scene__roads", [{"line": "x"}]),
    ],
)
def test_what_is_no_number_ends_in_one_sentence(run: Path, path: str, value: Any) -> None:
    with SAID.refuses("replay.json not_complete", worded=False):
        page([changed(run, **{path: value})])


def test_a_replay_without_a_verdict_is_refused(run: Path) -> None:
    with SAID.refuses("replay.json no_verdict"):
        page([changed(run, verdict=None)])
    (run / "replay.json").unlink()
    with SAID.refuses("replay.json unreadable"):
        page([run])


def test_a_long_recording_is_thinned_out(run: Path) -> None:
    document = json.loads((run / "replay.json").read_text())
    one = document["scene"]["vehicles"]["D"]
    for number in range(400):
        document["scene"]["vehicles"][f"parked {number}"] = one
    (run / "replay.json").write_text(json.dumps(document))
    told = playback([read_story(run)], ["one"])["scene"]
    assert sum(len(each["x_m"]) for each in told["vehicles"].values()) <= 16_000
    assert told["step_s"] == pytest.approx(0.2)
    assert len(page([run]).encode()) < MOST_BYTES


def test_a_line_is_interpolated_and_ends_where_it_ends() -> None:
    line = Line(1.0, 0.5, (4.0, 2.0, 1.0))
    assert [line.at(t) for t in (1.0, 1.25, 1.5, 2.0)] == [4.0, 3.0, 2.0, 1.0]
    assert line.at(0.9) is None and line.at(2.1) is None
    assert Line(0.0, 1.0, ()).at(0.0) is None and Line(3.0, 1.0, (7.0,)).at(3.0) == 7.0
