"""scene.html: one self-contained page about one run. Everything from a file is escaped; nothing is fetched."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from sim_vehicles.errors import bad_input
from sim_vehicles.story.page import bars, formulas, plots, sections, tables
from sim_vehicles.story.page.playback import playback
from sim_vehicles.story.page.run_story import Story, read_story
from sim_vehicles.story.page.wording import outcome

NAME = "scene.html"


def write(run: Path) -> Path:
    """Writes RUN/scene.html, whole or not at all, and returns its path. Raises BadInputError."""
    text = page(run)
    path, part = run / NAME, run / f".{NAME}.part"
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def page(run: Path) -> str:
    """The HTML document. Raises BadInputError where replay.json has no verdict and scene, or is damaged."""
    story = read_story(run)
    try:
        return _page(story)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as bad:
        raise bad_input(
            "not_complete", f"is not complete: {type(bad).__name__} {bad}", "make it again", file=run / "replay.json"
        ) from None


def _page(story: Story) -> str:
    from plotly.offline import get_plotlyjs

    figures: dict[str, plots.Figure] = {}
    body = "".join(
        (sections.head(story), sections.tiles(story), sections.scene(story), _distance(story, figures),
         _impact(story, figures), _split(story, figures), _gantt(story, figures), tables.laps(story),
         formulas.formulas(story))
    )  # fmt: skip
    title = escape(f"{outcome(story)}{'' if story.verdict.valid else ' (not valid)'} · {story.run}")
    script = f"const DATA = {_json(playback(story))}, FIGURES = {_json(figures)};"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_asset('page.css')}</style></head><body><main>{body}</main>"
        "<noscript>The scene and the plots need JavaScript; the tables do not.</noscript>"
        f"<script>{get_plotlyjs()}</script><script>{script}</script>"
        f"<script>{_asset('scene.js')}</script><script>{_asset('plots.js')}</script></body></html>"
    )


def _distance(story: Story, figures: dict[str, plots.Figure]) -> str:
    figure = plots.distance(story)
    title = "<section><h2>Distance over time</h2>"
    if figure is None:
        return f"{title}<p>The scene names no crossing vehicle whose way the ego’s path meets.</p></section>"
    note = (
        "Where <i>left</i> falls below <i>needed</i>, a warning comes too late to stand before the strip. "
        "Click into the plot to see that moment above."
    )
    return f"{title}{_plot(figures, figure, moving=True)}<p class=soft>{note}</p></section>"


def _impact(story: Story, figures: dict[str, plots.Figure]) -> str:
    note = (
        "Dotted: the closed form for 30, 50 and 70 km/h where the measurement comes D300 before the strip. The dashed "
        "vertical is the deadline. Physics is a slope, the deadline a step: a little later is a little worse."
    )
    figure = plots.impact(story)
    return f"<section><h2>Impact speed against latency</h2>{_plot(figures, figure)}<p class=soft>{note}</p></section>"


def _split(story: Story, figures: dict[str, plots.Figure]) -> str:
    plot = ""
    if story.traced.stages:
        keys = dict.fromkeys(each.stage for each in story.traced.stages if each.ns)
        legend = _legend([(escape(key), bars.STAGE_COLOURS.get(key, "#c9ced6")) for key in keys])
        plot = _plot(figures, bars.stages(story), legend)
    return f"<section><h2>Where the time went</h2>{plot}{tables.split(story)}</section>"


def _gantt(story: Story, figures: dict[str, plots.Figure]) -> str:
    title = "<section><h2>What the nodes did around the deciding tuple</h2>"
    shown = story.traced.gantt
    if shown is None or not shown.rows:
        return f"{title}<p>{escape(story.traced.without_gantt or 'No unit ran.')}</p></section>"
    more = f" {shown.left_out:,} more stretches are left out." if shown.left_out else ""
    lost = f" Not shown, their clocks being unknown: {escape(', '.join(shown.unplaced))}." if shown.unplaced else ""
    note = f"Every bar is one instance of a unit.{more}{lost}"
    return f"{title}{_plot(figures, bars.gantt(shown, story.traced.deadline_ns))}<p class=soft>{note}</p></section>"


def _plot(
    figures: dict[str, plots.Figure], figure: plots.Figure, legend: str | None = None, moving: bool = False
) -> str:
    name = f"plot{len(figures)}"
    figures[name] = figure
    cursor = f'<div class="cursor" data-of="{name}"></div>' if moving else ""
    height = figure["layout"]["height"]
    keys = _legend(plots.legend(figure)) if legend is None else legend
    return (
        f'<div class="over-plot"><div class="plot" id="{name}" style="min-height:{height}px"></div>{cursor}</div>{keys}'
    )


def _legend(keys: list[tuple[str, str]]) -> str:
    items = "".join(f'<li><span class="dot" style="background:{colour}"></span>{name}</li>' for name, colour in keys)
    return f'<ul class="legend">{items}</ul>'


def _asset(name: str) -> str:
    return files("sim_vehicles.story.page").joinpath("assets", name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    return (
        json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    )
