"""The page's plots as Plotly figures (plain dicts: data and layout). All names are escaped: Plotly reads HTML.

Colours written as `var(--name)` are the page's; its script puts in what the reader's theme says.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.physics import impact_mps, needed_m
from sim_vehicles.story.page.run_story import KMH, Event, Story
from sim_vehicles.story.page.wording import kind
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple

Figure = dict[str, Any]
MS = 1_000_000
TABLE_KMH = (30, 50, 70)
TABLE_LATENCY_S = 0.3  # D300: the way needed with a latency of 300 ms
MOST_LATENCY_MS = 1000

EVENT_COLOURS = {
    "sight": "sight",
    "message": "radio",
    "knew": "cross",
    "limit": "limit",
    "brake": "stop",
    "stop": "good",
    "contact": "bad",
}
EVENT_SYMBOLS = {"limit": "diamond", "contact": "x", "stop": "square"}


def layout(height: int, **more: Any) -> dict[str, Any]:
    """What all plots share; colours of text and grid come from the page's theme."""
    return {
        "height": height,
        "margin": {"l": 60, "r": 16, "t": 16, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,  # the page has its own: Plotly's does not wrap on a phone
        "hovermode": "closest",
    } | more


def legend(figure: Figure) -> list[tuple[str, str]]:
    """(name, colour) of every trace that has a name; names are escaped already."""
    return [
        (trace["name"], (trace.get("line") or trace["marker"])["color"])
        for trace in figure["data"]
        if trace.get("name")
    ]


def distance(story: Story) -> Figure | None:
    """The way left over time, as driven and unbraked, the way needed to stand, and the events."""
    way = story.stopping
    if way is None:
        return None
    since, until = _window(story)
    ego, other = escape(story.ego), escape(story.other)
    brake = story.verdict.found.brake
    begins_s = None if brake is None else brake.begins_s
    lines = [
        (f"needed to stand if {ego}’s brake is commanded now", way.needed, "var(--warn)", "dot", begins_s),
        (f"left to {other}’s way, had {ego} not braked", way.recorded, "var(--soft)", "dash", None),
        (f"left to {other}’s way", way.left, "var(--ego)", "solid", None),
    ]
    data: list[dict[str, Any]] = []
    for name, line, colour, dash, last in lines:
        points = [
            (t, m)
            for t, m in zip(line.instants_s, line.metres, strict=True)
            if since - 0.1 <= t <= (until + 0.1 if last is None else last)
        ]
        data.append({
            "type": "scatter", "mode": "lines", "name": name, "x": [t for t, _ in points], "y": [m for _, m in points],
            "line": {"color": colour, "width": 3 if dash == "solid" else 2, "dash": dash, "simplify": False},
            "hovertemplate": f"%{{x:.2f}} s: %{{y:.2f}} m {name}<extra></extra>",
        })  # fmt: skip
    shown = [event for event in story.events if event.left_m is not None and event.at_s >= since]
    data.append(_markers(shown))
    zero = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0, "y1": 0}
    top = max([m for t, m in zip(way.recorded.instants_s, way.recorded.metres, strict=True) if t >= since] or [1])
    low = min([m for t, m in zip(way.left.instants_s, way.left.metres, strict=True) if t <= until] or [0])
    return {
        "data": data,
        "layout": layout(
            360,
            shapes=[zero | {"line": {"color": "var(--bad)", "width": 1.5}}],
            annotations=[*_names(shown, (until - since) / 25, (top - low) / 18), _strip_name(other)],
            xaxis={"title": {"text": "time of the recording [s]"}, "range": [since, until]},
            yaxis={"title": {"text": "way [m]"}, "range": [min(-2.0, low - 1), top * 1.08], "zeroline": False},
        ),
    }


def _window(story: Story) -> tuple[float, float]:
    """From a second before the first event to a second after the last one, within what was played."""
    at_s = [event.at_s for event in story.events]
    start_s, end_s = story.scene.start_s, story.scene.end_s
    if not at_s:
        return start_s, end_s
    return max(start_s, min(at_s) - 1), min(end_s, max(at_s) + 1)


def _markers(shown: Sequence[Event]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "x": [event.at_s for event in shown],
        "y": [event.left_m for event in shown], "cliponaxis": False,
        "customdata": [f"{event.at_s:.3f} s, {event.left_m:.2f} m left: {escape(event.text)}" for event in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "size": 11, "color": [f"var(--{EVENT_COLOURS[event.kind]})" for event in shown],
            "symbol": [EVENT_SYMBOLS.get(event.kind, "circle") for event in shown],
            "line": {"width": 1, "color": "var(--card)"},
        },
    }  # fmt: skip


def _strip_name(other: str) -> dict[str, Any]:
    return {
        "name": "wide", "x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yanchor": "bottom", "showarrow": False,
        "text": f"{other}’s way begins", "font": {"size": 12, "color": "var(--bad)"}, "xshift": 4,
    }  # fmt: skip


def _names(shown: Sequence[Event], aside_s: float, apart_m: float) -> list[dict[str, Any]]:
    """The events' names to the upper right of their markers, at least `apart_m` from one another."""
    notes: list[dict[str, Any]] = []
    y = float("-inf")
    for event in reversed(shown):
        y = max(y + apart_m, (event.left_m or 0.0) + apart_m / 2)
        notes.append({
            "name": "wide", "x": event.at_s, "y": event.left_m, "ax": event.at_s + aside_s, "ay": y, "axref": "x",
            "ayref": "y", "text": f"{escape(event.text)} ({event.at_s:.2f} s)", "xanchor": "left", "showarrow": True,
            "arrowhead": 0, "arrowwidth": 1, "arrowcolor": "var(--soft)", "font": {"size": 12}, "standoff": 6,
        })  # fmt: skip
    return notes


def impact(story: Story) -> Figure:
    """Impact speed against latency: D300's lines, that of this measurement, this run and the other laps."""
    brake = story.brake
    steps = list(range(0, MOST_LATENCY_MS + 1, 10))
    data: list[dict[str, Any]] = []
    for kmh in TABLE_KMH:
        speed = kmh / KMH
        left = needed_m(speed, TABLE_LATENCY_S, brake)
        data.append(_curve(steps, speed, left, brake, "", "var(--soft)", 1.5, "dot"))
    form = story.verdict.found.closed_form
    if form is not None and story.speed_mps is not None:
        name = f"this measurement: {form.left_m:.1f} m left at {story.speed_mps * KMH:.0f} km/h"
        data.append(_curve(steps, story.speed_mps, form.left_m, brake, name, "var(--ego)", 3, "solid"))
    data += _laps(story)
    instants = [] if not story.traced.deadline_ns else [(story.traced.deadline_ns, "deadline", "var(--bad)")]
    notes = [
        {"x": MOST_LATENCY_MS, "y": _at(kmh / KMH, brake) * KMH, "text": f"{kmh} km/h", "showarrow": False,
         "xanchor": "right", "yanchor": "bottom", "font": {"size": 12, "color": "var(--soft)"}}
        for kmh in TABLE_KMH
    ]  # fmt: skip
    top = max([_at(TABLE_KMH[-1] / KMH, brake) * KMH, *(lap.found.impact_kmh or 0.0 for lap in story.laps)])
    return {
        "data": data,
        "layout": layout(
            340,
            shapes=edges(instants),
            annotations=notes + edge_names(instants),
            margin={"l": 60, "r": 16, "t": 30, "b": 44},
            xaxis={"title": {"text": "latency, measurement to delivery [ms]"}, "range": [0, MOST_LATENCY_MS + 10]},
            yaxis={"title": {"text": "impact speed [km/h]"}, "range": [-2.5, top * 1.1], "zeroline": True},
        ),
    }


def _at(speed_mps: float, brake: Brake) -> float:
    """Impact speed of a table line at the right edge."""
    return impact_mps(speed_mps, needed_m(speed_mps, TABLE_LATENCY_S, brake), MOST_LATENCY_MS / 1e3, brake)


def _curve(
    steps: Sequence[int], speed: float, left: float, brake: Brake, name: str, colour: str, width: float,
    dash: str,
) -> dict[str, Any]:  # fmt: skip
    what = name or f"{speed * KMH:.0f} km/h, {left:.1f} m left"
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": steps,
        "y": [round(impact_mps(speed, left, ms / 1e3, brake) * KMH, 2) for ms in steps],
        "line": {"color": colour, "width": width, "dash": dash},
        "hovertemplate": f"%{{x}} ms: %{{y:.1f}} km/h ({what})<extra></extra>",
    }  # fmt: skip


def _laps(story: Story) -> list[dict[str, Any]]:
    points: dict[str, list[tuple[float, float, str]]] = {"bad": [], "warn": [], "good": [], "neutral": [], "this": []}
    for number, lap in enumerate(story.laps):
        if lap.found.deciding is not None:
            group = "this" if number == story.number else kind(story, lap)
            text = f"lap {number + 1}, phase {lap.burst_phase}"
            latency_ms = story.latency_of(DecidingTuple.of(lap.found.deciding)) * 1e3
            points[group].append((latency_ms, lap.found.impact_kmh or 0.0, text))
    looks = {
        "good": ("other laps, avoided", "var(--good)", "circle", 8),
        "warn": ("other laps, near miss", "var(--warn)", "circle", 8),
        "bad": ("other laps, crash", "var(--bad)", "circle", 8),
        "neutral": ("other laps, not valid", "var(--soft)", "circle", 8),
        "this": ("the lap shown here", "var(--cross)", "diamond", 15),
    }
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "x": [x for x, _, _ in points[group]],
            "y": [y for _, y, _ in points[group]], "customdata": [text for _, _, text in points[group]],
            "hovertemplate": "%{customdata}: %{x:.1f} ms, %{y:.1f} km/h<extra></extra>", "cliponaxis": False,
            "marker": {"color": colour, "symbol": symbol, "size": size, "opacity": 0.85,
                       "line": {"width": 1, "color": "var(--card)"}},
        }
        for group, (name, colour, symbol, size) in looks.items()
        if points[group]
    ]  # fmt: skip


def edges(instants: Sequence[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """Dashed verticals at (ns, name, colour)."""
    return [
        {"type": "line", "x0": ns / MS, "x1": ns / MS, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": colour, "width": 2, "dash": "dash"}}
        for ns, _, colour in instants
    ]  # fmt: skip


def edge_names(instants: Sequence[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """The names of edges above a plot. instants: instant in ns, name, colour."""
    return [
        {"x": ns / MS, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False, "text": text,
         "font": {"color": colour, "size": 12}}
        for ns, text, colour in instants
    ]  # fmt: skip
