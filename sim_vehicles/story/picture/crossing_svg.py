"""The picture of two runs of one encounter side by side: an SVG that plays by itself, without scripts.

It begins just before the crossing vehicle comes into sight, plays at half speed, and holds its end. Where nothing plays
(people who ask for less motion, programs without CSS animation) that end is seen. The same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.story.page.bars import joined
from sim_vehicles.story.page.comparison import BEFORE
from sim_vehicles.story.page.run_story import Story, read_story
from sim_vehicles.story.page.wording import is_guaranteed, kind, kmh, names, outcome, whole_milliseconds
from sim_vehicles.story.picture.ground import View
from sim_vehicles.story.picture.keyframes import PlayTime, Stylesheet
from sim_vehicles.story.picture.panel import Panel, column
from sim_vehicles.story.picture.time_bar import HEIGHT as BAR_HEIGHT
from sim_vehicles.story.picture.time_bar import TimeBar
from sim_vehicles.world.geometry import Point

MARGIN, WIDTH, PANEL_HEIGHT = 14, 484, 384  # pixels; two panels side by side
TOP, BELOW = 104, 32  # above and below a panel
CLOCK = 236  # from the right
BEFORE_S, AFTER_S = 0.3, 3.7  # around the first sight
ROOM_M = 5.0  # around what matters


def write(runs: Sequence[Path], path: Path) -> Path:
    """Writes the picture of these two run directories, whole or not at all. Raises BadInputError."""
    text = picture([read_story(run) for run in runs])
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def picture(stories: Sequence[Story]) -> str:
    """The SVG document. Raises BadInputError where the runs are not two of one encounter with a crossing vehicle."""
    first = stories[0]
    if len(stories) != 2 or not first.is_same_encounter(stories[1]) or first.given() != stories[1].given():
        raise bad_input(
            "other_encounter", "a picture shows two runs of one encounter", "name two of one stretch", subject="runs"
        )
    if first.other not in first.scene.vehicles or first.verdict.found.first_perceivable is None:
        raise bad_input(
            "no_verdict", "nobody sees a crossing vehicle here, so there is nothing to draw", subject="runs"
        )
    time = play_time(first)
    sheet, view = Stylesheet(time), view_of(stories, time)
    body = "".join(
        f'<g transform="translate({MARGIN + number * (WIDTH + MARGIN)} 0)">{_run(story, name, time, view, sheet)}</g>'
        for number, (story, name) in enumerate(zip(stories, names(stories), strict=True))
    )
    width, height = 3 * MARGIN + 2 * WIDTH, TOP + PANEL_HEIGHT + BELOW + BAR_HEIGHT + 30
    told = ". ".join(f"{name}: {outcome(story)}" for story, name in zip(stories, names(stories), strict=True))
    head = _head(first, time, width, sheet)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(told)}</title><style>{_look()}{sheet.text}</style>"
        f'<clipPath id="panel"><rect width="{WIDTH}" height="{PANEL_HEIGHT}"/></clipPath>'
        f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10"/>{head}{body}'
        f"{_legend(first, height)}</svg>\n"
    )


def play_time(story: Story) -> PlayTime:
    """Around the first sight, as far as both vehicles are there."""
    first, vehicles = story.verdict.found.first_perceivable, story.scene.vehicles
    assert first is not None
    both = [vehicles[name] for name in (story.ego, story.other)]
    begin_s = max(first.at_s - BEFORE_S, *(each.from_s for each in both))
    last_s = min(each.from_s + (len(each.x_m) - 1) * story.scene.step_s for each in both)
    ticks = int((min(first.at_s + AFTER_S, last_s) - begin_s) / 0.1 + 1e-6)
    return PlayTime(begin_s, begin_s + ticks * 0.1, first.at_s)


def view_of(stories: Sequence[Story], time: PlayTime) -> View:
    """What every panel shows."""
    return View.around(_matters(stories, time), WIDTH, PANEL_HEIGHT)


def _matters(stories: Sequence[Story], time: PlayTime) -> list[Point]:
    """The two that may meet, and those that told of it, all with room around."""
    found = []
    for story in stories:
        panel = Panel(story, time, View(0, 0, 1, 1, 1))
        first, deciding = story.verdict.found.first_perceivable, story.deciding
        told = {None if first is None else first.by, None if deciding is None else deciding.station}
        for name in [story.ego, story.other, *(each for each in panel.tracks if each in told)]:
            states = [panel.state(name, at_s) for at_s in (time.begin_s, story.end_s or time.end_s)]
            found += [(state.x_m, state.y_m) for state in states if state is not None]
    return [(x + dx, y + dy) for x, y in found for dx in (-ROOM_M, ROOM_M) for dy in (-ROOM_M, ROOM_M)]


def _head(story: Story, time: PlayTime, width: int, sheet: Stylesheet) -> str:
    """What one sees, and the clock."""
    first = story.verdict.found.first_perceivable
    hidden = "from behind a house" if story.scene.occluders else "from the side"
    by = "" if first is None else f" {first.by} sees {story.other} and reports by radio, as do others."
    speed = story.verdict.found.speed_kmh
    text = f"{story.ego} drives at {kmh(speed)}. {story.other} comes {hidden}.{by}"
    clock = column([f"{at_s - time.zero_s:.1f}".replace("-", "−") for at_s in time.ticks_s], 36, sheet)
    since = "" if first is None else f" since {first.by} saw {story.other}, half speed"
    return (
        f'<text x="{MARGIN}" y="32">{escape(text)}</text><g transform="translate({width - CLOCK} 18)">{clock}'
        f'<text class="s" x="41" y="14">{escape(f"s{since}")}</text></g>'
    )


def _run(story: Story, name: str, time: PlayTime, view: View, sheet: Stylesheet) -> str:
    asked = " and ".join(f"{share:.0%}" for share in (story.replay.utilisation or {}).values())
    claims = "every output guaranteed" if is_guaranteed(story) else "no guarantee"
    load = f"{claims}; load of {story.ego}’s computers: {asked}" if asked else claims
    ends = "" if story.end_s is None else (
        f'<text class="h r {kind(story, story.verdict)} {sheet.appearing(story.end_s)}" x="{WIDTH}" y="72">'
        f"{escape(outcome(story))}</text>"
    )  # fmt: skip
    return (
        f'<text class="h" y="72">{escape(name[0].upper() + name[1:])}</text>{ends}'
        f'<text class="s" y="94">{escape(load)}</text>'
        f'<g transform="translate(0 {TOP})" clip-path="url(#panel)">{Panel(story, time, view).drawn(sheet)}</g>'
        f'<g transform="translate(0 {TOP + PANEL_HEIGHT + BELOW})">{_took(story, sheet)}'
        f"{TimeBar(story, time, WIDTH).drawn(sheet)}</g>"
    )


def _took(story: Story, sheet: Stylesheet) -> str:
    """How long the warning took, and where most of that went."""
    deciding, deadline_ns = story.deciding, story.traced.deadline_ns
    knew = story.verdict.found.knew
    if deciding is None or knew is None:
        return '<text y="-10">no warning</text>'
    spent = [each for each in joined(story.traced.stages) if each[0] not in {*BEFORE, "actuation"}]
    stage, _, ns = max(spent, key=lambda each: each[2], default=("", "", 0))
    text = f"warned after {whole_milliseconds(deciding.latency_bounds_ns[1])}"
    text += f", {whole_milliseconds(ns)} of it in a queue" if stage == "queue" else ""
    text += f"; deadline {whole_milliseconds(deadline_ns)}" if deadline_ns else ""
    return f'<text class="{sheet.appearing(knew.at_s)}" y="-10">{escape(text)}</text>'


def _legend(story: Story, height: int) -> str:
    y = height - 14
    entries = (
        (MARGIN, '<circle class="ring" cx="8" r="6"/>', f"radio message about {story.other}"),
        (260, '<circle class="ring deciding" cx="8" r="6"/>', f"the message that warns {story.ego}"),
        (520, '<rect class="due" y="-7" width="22" height="13"/>', "from the measurement to the deadline"),
        (820, '<path class="cursor" d="M8 -8V8"/>', "now"),
    )
    return "".join(
        f'<g transform="translate({x} {y - 4})">{mark}<text class="s" x="30" y="4">{escape(text)}</text></g>'
        for x, mark, text in entries
    )


def _look() -> str:
    return files("sim_vehicles.story.picture").joinpath("assets", "picture.css").read_text(encoding="utf-8")
