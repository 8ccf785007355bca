"""The page's plots as Plotly figures (plain dicts: data and layout). All names are escaped: Plotly reads HTML.

Colours written as `var(--name)` are the page's; its script puts in what the reader's theme says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from sim_vehicles.story.page.run_story import Event, Story

Figure = dict[str, Any]
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Look:
    """How an event or a way looks: colour and symbol in plots (`symbol` is Plotly's), the same as a letter in keys.
    name: its class in the page's style."""

    name: str
    symbol: str
    letter: str

    @property
    def colour(self) -> str:
        """For a figure."""
        return f"var(--{self.name})"


EVENT_LOOKS = {
    "sight": Look("sight", "circle", "●"),
    "message": Look("message", "circle", "●"),
    "knew": Look("warned", "triangle-up", "▲"),
    "limit": Look("limit", "diamond", "◆"),
    "brake": Look("stop", "square", "■"),
    "stop": Look("good", "square", "■"),
    "contact": Look("bad", "x", "✖"),
}
WAY_LOOKS = tuple(
    Look(f"way{number}", symbol, letter)
    for number, (symbol, letter) in enumerate((
        ("circle", "●"), ("square", "■"), ("diamond", "◆"), ("triangle-up", "▲"), ("triangle-down", "▼"),
        ("cross", "✚"), ("x", "✖"), ("star", "★"),
    ))
)  # fmt: skip
RUN_LOOKS = tuple(WAY_LOOKS[number] for number in (1, 6, 5, 2))


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a figure's legend. name: escaped; letter: in its colour."""

    name: str
    colour: str
    letter: str = "━"


def way_look(number: int) -> Look:
    """Of the number-th way or run of a figure; they repeat from the ninth on."""
    return WAY_LOOKS[number % len(WAY_LOOKS)]


def layout(height: int, **more: Any) -> dict[str, Any]:
    """What all plots share; colours of text and grid come from the page's theme."""
    return {
        "height": height,
        "margin": {"l": 60, "r": 16, "t": 16, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,  # the page has its own: Plotly's does not wrap on a phone
        "hovermode": "closest",
        "dragmode": False,  # a finger scrolls the page
    } | more


def distance(stories: Sequence[Story], names: Sequence[str]) -> tuple[Figure, list[Key]] | None:
    """The way left over time of each run, that without a brake, the way needed to stand, and the events. None where no
    way of a crossing vehicle is met."""
    first = stories[0].stopping
    if first is None:
        return None
    since, until = _window(stories)
    ego, other = escape(stories[0].ego), escape(stories[0].other)
    keys: list[Key] = []
    data: list[dict[str, Any]] = []

    def add(name: str, line: tuple[list[float], list[float]], colour: str, dash: str, letter: str) -> None:
        keys.append(Key(name, colour, letter))
        data.append({
            "type": "scatter", "mode": "lines", "name": name, "x": line[0], "y": line[1],
            "line": {"color": colour, "width": 3 if dash == "solid" else 2, "dash": dash, "simplify": False},
            "hovertemplate": f"%{{x:.2f}} s: %{{y:.2f}} m<br>{name}<extra></extra>",
        })  # fmt: skip

    def points(instants: Sequence[float], metres: Sequence[float]) -> tuple[list[float], list[float]]:
        shown = [(t, m) for t, m in zip(instants, metres, strict=True) if since - 0.1 <= t <= until + 0.1]
        return [t for t, _ in shown], [m for _, m in shown]

    needed, unbraked = first.needed, first.recorded
    add(f"{ego} needs to stand, if braked now", points(needed.instants_s, needed.metres), "var(--limit)", "dot", "┅")
    add(f"left, had {ego} not braked", points(unbraked.instants_s, unbraked.metres), "var(--soft)", "dash", "╍")
    events: dict[tuple[str, float], Event] = {}
    for number, (story, name) in enumerate(zip(stories, names, strict=True)):
        if story.stopping is None:
            continue
        look, line = RUN_LOOKS[number % len(RUN_LOOKS)], story.stopping.left
        end_s = story.end_s if story.crashed and story.end_s is not None else until
        xs, ys = points(line.instants_s, line.metres)
        shown = [(x, y) for x, y in zip(xs, ys, strict=True) if x <= end_s]
        title = f"left to {other}’s way" if len(stories) == 1 else f"left: {escape(name)}"
        add(title, ([x for x, _ in shown], [y for _, y in shown]), look.colour, "solid", "━")
        for each in story.events:
            if each.kind != "message":
                left_m = unbraked.at(each.at_s) if each.kind == "limit" else each.left_m
                events.setdefault((each.kind, round(each.at_s, 3)), replace(each, left_m=left_m))
    shown_events = [each for each in events.values() if each.left_m is not None and each.at_s >= since]
    data.append(_markers(shown_events))
    low, top = _range(stories, since, until)
    return {
        "data": data,
        "layout": layout(
            400,
            shapes=[{"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0, "y1": 0,
                     "line": {"color": "var(--cross)", "width": 1.5}}],
            annotations=[*_names(shown_events, (until - since) / 25, (top - low) / 15), _strip_name(other)],
            xaxis={"title": {"text": "time of the recording [s]"}, "range": [since, until], "fixedrange": True},
            yaxis={"title": {"text": f"way of {ego} [m]"}, "range": [low, top], "zeroline": False, "fixedrange": True},
        ),
    }, keys  # fmt: skip


def _range(stories: Sequence[Story], since: float, until: float) -> tuple[float, float]:
    ways = [story.stopping for story in stories if story.stopping is not None]
    lines = [(way.recorded if top else way.left, top) for way in ways for top in (True, False)]
    shown = {
        top: [m for line, is_top in lines if is_top is top for t, m in zip(line.instants_s, line.metres, strict=True)
              if since <= t <= until]
        for top in (True, False)
    }  # fmt: skip
    return max(-8.0, min([-2.0, *(m - 1 for m in shown[False])])), max(shown[True], default=1.0) * 1.08


def _window(stories: Sequence[Story]) -> tuple[float, float]:
    """From a second before the first event to two seconds after the last one, within what was played."""
    at_s = [event.at_s for story in stories for event in story.events]
    start_s, end_s = stories[0].scene.start_s, stories[0].scene.end_s
    if not at_s:
        return start_s, end_s
    return max(start_s, min(at_s) - 1), min(end_s, max(at_s) + 2)


def _markers(shown: Sequence[Event]) -> dict[str, Any]:
    looks = [EVENT_LOOKS[event.kind] for event in shown]
    return {
        "type": "scatter", "mode": "markers", "x": [event.at_s for event in shown],
        "y": [event.left_m for event in shown], "cliponaxis": False,
        "customdata": [f"{event.at_s:.3f} s, {event.left_m:.2f} m left: {escape(event.text)}" for event in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "size": 12, "color": [look.colour for look in looks], "symbol": [look.symbol for look in looks],
            "line": {"width": 1.2, "color": "var(--ink)"},
        },
    }  # fmt: skip


def _strip_name(other: str) -> dict[str, Any]:
    return {
        "x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yanchor": "bottom", "showarrow": False,
        "text": f"{other}’s way begins", "font": {"size": 12, "color": "var(--cross)"}, "xshift": 4,
    }  # fmt: skip


def _names(shown: Sequence[Event], aside_s: float, apart_m: float) -> list[dict[str, Any]]:
    """The events' names to the upper right of their markers, at least `apart_m` from one another."""
    notes: list[dict[str, Any]] = []
    y = float("-inf")
    for event in sorted(shown, key=lambda each: each.left_m or 0.0):
        y = max(y + apart_m, (event.left_m or 0.0) + apart_m / 2)
        notes.append({
            "name": "wide", "x": event.at_s, "y": event.left_m, "ax": event.at_s + aside_s, "ay": y, "axref": "x",
            "ayref": "y", "text": f"{escape(event.text)} ({event.at_s:.2f} s)", "xanchor": "left", "showarrow": True,
            "arrowhead": 0, "arrowwidth": 1, "arrowcolor": "var(--soft)", "font": {"size": 12}, "standoff": 6,
        })  # fmt: skip
    return notes


def edges(instants: Sequence[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """Dashed verticals at (ns, name, colour)."""
    return [
        {"type": "line", "x0": ns / MS, "x1": ns / MS, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": colour, "width": 2, "dash": "dash"}}
        for ns, _, colour in instants
    ]  # fmt: skip


def edge_names(instants: Sequence[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """The names of edges above a plot, those that are near in two rows. instants: instant in ns, name, colour."""
    return [
        {"x": ns / MS, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 15 * (place % 2), "showarrow": False,
         "text": text, "font": {"color": colour, "size": 12}}
        for place, (ns, text, colour) in enumerate(sorted(instants))
    ]  # fmt: skip
