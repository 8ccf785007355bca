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
        place[int(last) if isinstance(place, list) else last] = value
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


@pytest.mark.parametrize(
    ("option", "path", "value", "said"),
    [
        ("--brake", "brake__kind", "driver", "was replayed with --brake kind driver, "),
        ("--brake", "brake__reaction_sd_s", 0.5, "was replayed with --brake reaction_sd_s 0.5, "),
        ("--seed", "seed", 2, "was replayed with --seed 2, "),
        ("--messages", "messages", "etsi", "was replayed with --messages etsi, "),
        ("--around", "around", "streets_50", "was replayed with --around streets_50, "),
        ("--age", "v2v_age_ns", 50 * MS, "was replayed with --age 50 ms, "),
    ],
)
def test_panels_differ_by_what_the_plan_does_alone(
    run: Path, tmp_path: Path, option: str, path: str, value: Any, said: str
) -> None:
    other = changed(shutil.copytree(run, tmp_path / "other"), **{path: value})
    with SAID.refuses(f"replay.json other_encounter {option}", worded=False) as refused:
        page([run, other])
    assert said in str(refused.value) and f"; make a page of its own for each {option}" in str(refused.value)
    assert drawn(other), "alone it has one"
    assert drawn(run, changed(shutil.copytree(run, tmp_path / "half"), channel="half=150m"))


def test_a_plan_of_another_run_is_not_shown(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    (run / "plan.json").write_text(json.dumps(plan | {"hash": "0123456789abcdef"}))
    with SAID.refuses("plan.json other_plan hash", worded=False) as refused:
        page([run])
    assert f"is plan 01234567, but replay.json is of plan {plan['hash'][:8]}; " in str(refused.value)
    (run / "plan.json").unlink()
    assert "no plan beside replay.json" in drawn(run)


def test_several_laps_say_which_one_each_panel_shows(run: Path, tmp_path: Path) -> None:
    number = read_story(run).verdict.burst_phase
    late = changed(shutil.copytree(run, tmp_path / "late"), verdict__burst_phase=number + 1)
    told = f"Each panel shows the worst lap of its run: burst phase {number}/4 and {number + 1}/4."
    assert f'The encounter from above</h2><p>{told}</p><div class="panels">' in drawn(run, late)
    assert f"<p>Shown is the worst lap, burst phase {number}/4.</p>" in drawn(run)
    for one in (run, late):
        changed(one, verdict__laps=1)
    assert "worst lap" not in drawn(run, late)


def about_x(**fates: Any) -> dict[str, Any]:
    return {"offered": 30, "refused": 0, "admitted": [], "policed": 0, "shed": 0, **fates}


@pytest.mark.parametrize(
    ("messages", "said", "counted"),
    [
        (about_x(refused=30), "30 messages about X were heard (30 refused), and", "0 policed, 0 shed, ? lost"),
        (
            about_x(policed=1, shed=27, lost=1),
            "30 messages about X were heard (1 policed, 27 shed, 1 lost), and",
            "1 lost",
        ),
        (about_x(lost=0), "30 messages about X were heard, and", "30, of them 0 refused, 0 policed, 0 shed, 0 lost"),
        (
            about_x(refused=3, policed=None, shed=None),
            "(3 refused, without a trace nothing more is known)",
            "? policed",
        ),
    ],
)
def test_nobody_warned_and_why(run: Path, messages: Any, said: str, counted: str) -> None:
    html = drawn(changed(run, verdict__crossing_messages=messages, verdict__deciding=None, verdict__knew=None))
    (caption,) = re.findall('<p class="caption">(.*?)</p>', html)
    assert caption.startswith("A is never warned, though 30 messages about X were heard") and said in caption
    assert counted in html


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
        ("scene__step_s", "x"),
        ("scene__messages", [{"at_s": 1}]),
        ("scene__start_s", float("nan")),
        ("verdict__deciding__latency_ns", None),
        ("scene__roads", [{"line": "x"}]),
        ("scene__roads__0__lane_width_m", [3.5]),
        ("scene__roads", [{"line": []}]),
        ("scene__vehicles__X__length_m", "long"),
        ("seed", 1.5),
    ],
)
def test_what_is_no_number_ends_in_one_sentence(run: Path, path: str, value: Any) -> None:
    """It names the key, and no word of Python."""
    with SAID.refuses("replay.json not_complete", worded=False) as refused:
        page([changed(run, **{path: value})])
    key = re.sub(r"__(\d+)", r"[\1]", path).replace("__", ".")
    assert f"is damaged: {key}" in str(refused.value) and "Error" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("vehicles__X__x_m__40", 1e5, "vehicles.X cannot be: vehicle X jumps "),
        ("vehicles__X__y_m__40", -1e308, "vehicles.X cannot be: y_m is -1e+308; over 6e+06 m"),
        ("ego_recorded__x_m__40", 1e3, "ego_recorded cannot be: vehicle A jumps "),
        ("vehicles__X__length_m", 1e308, "vehicles.X cannot be: length_m is 1e+308; it must be in (0, 60] metres"),
        ("vehicles__X__width_m", 0, "vehicles.X cannot be: width_m is 0; "),
        ("vehicles__X__speed_mps__3", 101.0, "vehicles.X cannot be: speed_mps is 101; "),
        ("vehicles__X__from_s", 1e10, "vehicles.X cannot be: t_s is 1e+10; "),
        ("vehicles__A__x_m", [1.0], "vehicles.A cannot be: x_m, y_m, heading_rad and speed_mps differ in length"),
        ("vehicles__X__heading_rad", [], "vehicles.X cannot be: x_m, y_m, heading_rad and speed_mps differ in length"),
        ("step_s", 0, "step_s is 0, not from 0.001 to 1 s"),
        ("vehicles", {}, "vehicles has no A, the ego"),
    ],
)
def test_what_no_vehicle_is_ends_soon_and_in_one_sentence(run: Path, path: str, value: Any, said: str) -> None:
    with SAID.refuses("replay.json not_complete", worded=False) as refused:
        page([changed(run, **{f"scene__{path}": value})])
    assert f"is damaged: scene.{said}" in str(refused.value)


@pytest.mark.parametrize("where", ["length_m", "lane_width_m", "latency_ns"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9" * 400, "has a number of 400 digits, 999999999999..."),
        ("9" * 6000, "has a number of 6000 digits, 999999999999..."),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
    ],
)
def test_what_python_cannot_read_ends_in_one_sentence(run: Path, where: str, text: str, said: str) -> None:
    path = run / "replay.json"
    path.write_text(re.sub(rf'"{where}": [^,]*', f'"{where}": {text}', path.read_text(), count=1))
    with SAID.refuses("replay.json not_json", worded=False) as refused:
        page([run])
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize("version", [99, None, "1"])
def test_another_version_is_refused(run: Path, version: object) -> None:
    with SAID.refuses("replay.json other_version shimekiri", worded=False) as refused:
        page([changed(run, shimekiri=version)])
    assert f"is of version {version!r}, this release reads version 1; make it again" in str(refused.value)


def test_a_replay_without_a_verdict_is_refused(run: Path) -> None:
    with SAID.refuses("replay.json no_verdict"):
        page([changed(run, verdict=None)])
    (run / "replay.json").unlink()
    with SAID.refuses("replay.json no_file"):
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
