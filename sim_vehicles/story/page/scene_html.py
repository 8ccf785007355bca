"""scene.html: one self-contained page about one run, or several side by side. Everything from a file is escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from sim_vehicles.contest.contest_results import ContestResults, read_results
from sim_vehicles.errors import bad_input
from sim_vehicles.story.page import bars, comparison, contest_plots, formulas, plots, sections, tables
from sim_vehicles.story.page.playback import playback
from sim_vehicles.story.page.run_story import Story, read_story
from sim_vehicles.story.page.wording import names, outcome

NAME = "scene.html"
NOTHING_LOADED = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write(runs: Sequence[Path], folder: Path) -> Path:
    """Writes FOLDER/scene.html, whole or not at all, and returns its path. Raises BadInputError."""
    text = page(runs)
    path, part = folder / NAME, folder / f".{NAME}.part"
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def page(runs: Sequence[Path], contest: ContestResults | None = None) -> str:
    """The HTML document. contest: None for what is published. Raises BadInputError where a replay.json has no verdict
    and scene, or is damaged, and where the runs are not of one encounter."""
    stories = [read_story(run) for run in runs]
    for run, story in zip(runs[1:], stories[1:], strict=True):
        _compare(runs[0], stories[0], run, story)
    try:
        return _page(stories, read_results() if contest is None else contest)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as bad:
        raise bad_input(
            "not_complete", f"is damaged, its parts do not fit one another ({bad})", "make it again",
            file=runs[0] / "replay.json",
        ) from None  # fmt: skip


def _compare(first: Path, its: Story, run: Path, mine: Story) -> None:
    """Raises BadInputError where panels of the two would differ by more than what the plan does."""
    path = run / "replay.json"
    if not its.is_same_encounter(mine):
        raise bad_input(
            "other_encounter", f"is of another encounter than {first}", "name runs of one scenario and stretch",
            file=path,
        )  # fmt: skip
    there = its.given()
    for option, value in mine.given().items():
        if value != there[option]:
            name = option.partition(" ")[0]
            raise bad_input(
                "other_encounter", f"was replayed with {option} {value}, {first} with {option} {there[option]}",
                f"make a page of its own for each {name}", subject=name, file=path,
            )  # fmt: skip


def _page(stories: Sequence[Story], contest: ContestResults) -> str:
    figures: dict[str, plots.Figure] = {}
    called = names(stories)
    body = "".join((
        sections.head(stories, called), _contest(contest, figures) if stories[0].other else "",
        sections.scene(stories, called), comparison.comparison(stories, called), _distance(stories, called, figures),
        _stages(stories, called, figures), _laps(stories, called), _more(stories, called, figures),
    ))  # fmt: skip
    told = "; ".join(f"{outcome(story)}{'' if story.verdict.valid else ' (not valid)'}" for story in stories)
    script = f"const DATA = {_json(playback(stories, called))}, FIGURES = {_json(figures)};"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{NOTHING_LOADED}">'
        f"<title>{escape(told)} · {escape(stories[0].scene.name)}</title><style>{_asset('page.css')}</style></head>"
        f"<body><main>{body}</main><noscript>The scene and the plots need JavaScript; the tables do not.</noscript>"
        f"<script>{script}</script><script>{_asset('labels.js')}</script><script>{_asset('scene.js')}</script>"
        f"<script>{_asset('player.js')}</script>"
        f'<script type="text/plain" id="plotly">{b64encode(plotly()).decode()}</script>'
        f"<script>{_asset('plots.js')}</script></body></html>"
    )


def _contest(contest: ContestResults, figures: dict[str, plots.Figure]) -> str:
    probability, speed = contest_plots.crash_probability(contest), contest_plots.impact_speed(contest)
    shown = _plot(figures, probability, "crash probability by load") + _plot(figures, speed, "impact speed by load")
    where = f", revision {escape(contest.revision)}" if contest.revision else ""
    return (
        '<section class="contest"><h2>How often it ends in a crash</h2>'
        f"<p><b>{contest.encounters} encounters</b> at blind crossings, drawn by chance. Each runs in virtual time at "
        f"one of {len(contest.loads)} loads, in every way{_fewer(contest)}. Lines are 95 % intervals (Wilson, and a "
        "bootstrap of speeds): where they overlap, this number of encounters does not tell two ways apart.</p>"
        f'<div class="plots">{shown}</div>{_legend(contest_plots.keys(contest))}'
        f"<p class=soft>Run on {escape(contest.date)}{where}, seed {contest.seed}. The encounter below shows how a "
        "crash comes about; one alone proves nothing.</p>"
        f"{tables.folded('the same in figures', contest_plots.contest_table(contest))}</section>"
    )


def _fewer(contest: ContestResults) -> str:
    """Which ways did not run in all encounters of their load."""
    most = {load: max(each.crashes.encounters for each in contest.rows if each.load == load) for load in contest.loads}
    found = dict.fromkeys(each.way for each in contest.rows if each.crashes.encounters < most[each.load])
    return f" ({escape(', '.join(found))}: in a part of them)" if found else ""


def _distance(stories: Sequence[Story], called: Sequence[str], figures: dict[str, plots.Figure]) -> str:
    made = plots.distance(stories, called)
    title = "<section><h2>Distance over time</h2>"
    if made is None:
        return f"{title}<p>The scene names no crossing vehicle whose way the ego’s path meets.</p></section>"
    figure, keys = made
    ego, other = escape(stories[0].ego), escape(stories[0].other)
    note = (
        f"The way from {ego}’s front to {other}’s way. Where <i>left</i> falls below what {ego} needs to stand, a "
        "warning comes too late. A click into the plot shows that moment above."
    )
    plot = _plot(figures, figure, "distance over time", moving=True)
    return f"{title}<p>{note}</p>{plot}{_legend([*keys, *_event_keys(stories)])}</section>"


def _event_keys(stories: Sequence[Story]) -> list[plots.Key]:
    texts = {event.kind: event.text for story in stories for event in story.events if event.left_m is not None}
    looks = plots.EVENT_LOOKS
    return [
        plots.Key(escape(texts[kind]), look.colour, look.letter)
        for kind, look in looks.items()
        if kind in texts and kind != "message"
    ]


def _stages(stories: Sequence[Story], called: Sequence[str], figures: dict[str, plots.Figure]) -> str:
    title = "<section><h2>Where the time of the warning went</h2>"
    without = "".join(
        f"<p>{f'{escape(name)}: ' if len(stories) > 1 else ''}{escape(story.traced.without_split)}</p>"
        for story, name in zip(stories, called, strict=True)
        if not story.traced.stages
    )
    known = [(story, name) for story, name in zip(stories, called, strict=True) if story.traced.stages]
    if not known:
        return f"{title}{without}</section>"
    stages = dict.fromkeys(each.stage for story, _ in known for each in story.traced.stages if each.ns)
    keys = [plots.Key(escape(stage), bars.STAGE_COLOURS.get(stage, "#c9ced6"), "■") for stage in stages]
    figure = bars.stages([story for story, _ in known], [name if len(stories) > 1 else "" for _, name in known])
    plot = _plot(figures, figure, "stages of the warning that decided")
    split = "".join(
        tables.folded(f"every stage{f': {name}' if len(stories) > 1 else ''}", tables.split(story))
        for story, name in known
    )
    return f"{title}{plot}{_legend(keys)}{without}{split}</section>"


def _laps(stories: Sequence[Story], called: Sequence[str]) -> str:
    shown = "".join(
        f"{f'<h3>{escape(name)}</h3>' if len(stories) > 1 else ''}{tables.laps(story)}"
        for story, name in zip(stories, called, strict=True)
        if len(story.laps) > 1
    )
    return f"<section><h2>All laps: messages sent at every phase</h2>{shown}</section>" if shown else ""


def _more(stories: Sequence[Story], called: Sequence[str], figures: dict[str, plots.Figure]) -> str:
    body = ""
    for story, name in zip(stories, called, strict=True):
        of = f": {name}" if len(stories) > 1 else ""
        body += tables.folded(f"What the nodes did around the deciding message{of}", _gantt(story, figures))
        body += tables.folded(f"How to check the numbers{of}", formulas.formulas(story))
    return f"<section><h2>More</h2>{body}</section>"


def _gantt(story: Story, figures: dict[str, plots.Figure]) -> str:
    shown = story.traced.gantt
    if shown is None or not shown.rows:
        return f"<p>{escape(story.traced.without_gantt or 'No unit ran.')}</p>"
    more = f" {shown.left_out:,} more stretches are left out." if shown.left_out else ""
    lost = f" Not shown, their clocks being unknown: {escape(', '.join(shown.unplaced))}." if shown.unplaced else ""
    figure, keys = bars.gantt(shown, story.traced.deadline_ns)
    plot = _plot(figures, figure, "instances of units over time")
    return f"{plot}{_legend(keys)}<p class=soft>Every bar is one instance of a unit.{more}{lost}</p>"


def _plot(figures: dict[str, plots.Figure], figure: plots.Figure, label: str, moving: bool = False) -> str:
    name = f"plot{len(figures)}"
    figures[name] = figure
    cursor = f'<div class="cursor" data-of="{name}"></div>' if moving else ""
    height = figure["layout"]["height"]
    return (
        f'<figure class="over-plot"><div class="plot" id="{name}" role="img" aria-label="{escape(label)}" '
        f'style="min-height:{height}px"></div>{cursor}</figure>'
    )


def _legend(keys: Sequence[plots.Key]) -> str:
    items = "".join(
        f'<li><span class="letter" style="color:{key.colour}">{key.letter}</span>{key.name}</li>' for key in keys
    )
    return f'<ul class="legend">{items}</ul>'


def plotly() -> bytes:
    """Plotly's library (the part for lines, marks and bars), packed by gzip."""
    return files("sim_vehicles.story.page").joinpath("assets", "plotly-basic.min.js.gz").read_bytes()


def _asset(name: str) -> str:
    return files("sim_vehicles.story.page").joinpath("assets", name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    return (
        json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    )
