"""Bars: the stages of the deciding tuple, and what the nodes did around it (Plotly figures as in plots.py)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from sim_vehicles.encounter.judgement import Stage
from sim_vehicles.story.page.plots import MS, Figure, Key, edge_names, edges, layout
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.timeline.gantt import Gantt

STAGE_COLOURS = {
    "sensing": "#9aa5b1",
    "channel": "#5aa9c9",
    "sending": "#3d7fa3",
    "handover": "#c9a0dc",
    "queue": "#e0a339",
    "execution": "#3aa17e",
    "link": "#9b6fd0",
    "actuation": "#d64550",
}
SOURCE_COLOURS = ("#7fa8d1", "#8fbfa6", "#b9bec6", "#c8b189", "#a99bd0")


def stages(stories: Sequence[Story], names: Sequence[str]) -> Figure:
    """The stages of each run's deciding tuple as one stacked bar; neighbours of one kind and node together."""
    data: list[dict[str, Any]] = []
    for story, name in zip(stories, names, strict=True):
        begin_ns = 0
        for stage, where, ns in joined(story.traced.stages):
            what = f"{escape(stage)}{f' {escape(where)}' if where else ''}"
            data.append({
                "type": "bar", "orientation": "h", "name": "", "y": [escape(name)], "x": [ns / MS],
                "base": [begin_ns / MS],
                "marker": {"color": STAGE_COLOURS.get(stage, "#c9ced6"), "line": {"width": 1, "color": "var(--card)"}},
                "hovertemplate": f"{what}: {ns / MS:.1f} ms<extra></extra>",
            })  # fmt: skip
            begin_ns += ns
        latency_ns = sum(each.ns for each in story.traced.stages if each.stage != "actuation")
        data.append({
            "type": "scatter", "mode": "markers", "x": [latency_ns / MS], "y": [escape(name)], "name": "",
            "marker": {"symbol": "triangle-up", "size": 13, "color": "var(--warned)",
                       "line": {"width": 1.2, "color": "var(--ink)"}},
            "hovertemplate": f"warned after {latency_ns / MS:.1f} ms<extra></extra>",
        })  # fmt: skip
    deadline_ns = next((story.traced.deadline_ns for story in stories if story.traced.deadline_ns), None)
    instants = [(deadline_ns, "deadline", "var(--bad)")] if deadline_ns else []
    return {
        "data": data,
        "layout": layout(
            100 + 60 * len(stories),
            barmode="overlay",
            shapes=edges(instants),
            annotations=[*edge_names(instants), *_row_names(names)],
            xaxis={"title": {"text": "time since the measurement [ms]"}, "rangemode": "tozero", "fixedrange": True},
            yaxis={"showticklabels": False, "autorange": "reversed", "fixedrange": True},
            bargap=0.55,
            margin={"l": 12, "r": 16, "t": 30, "b": 44},
        ),
    }  # fmt: skip


def _row_names(names: Sequence[str]) -> list[dict[str, Any]]:
    """Above each row, at the left."""
    return [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": escape(name), "yanchor": "bottom", "yshift": 21,
         "showarrow": False, "text": escape(name), "font": {"size": 12}}
        for name in names
        if name
    ]  # fmt: skip


def joined(stages: Sequence[Stage]) -> list[tuple[str, str, int]]:
    """(stage, where, ns) with the executions of one unit together and nothing of 0 ns; where: node, or "a to b"."""
    found: list[tuple[str, str, int]] = []
    for each in stages:
        where = f"{each.from_node} to {each.node}" if each.from_node else f"at {each.node}" if each.node else ""
        if found and found[-1][:2] == (each.stage, where):
            found[-1] = (each.stage, where, found[-1][2] + each.ns)
        elif each.ns:
            found.append((each.stage, where, each.ns))
    return found


def gantt(shown: Gantt, deadline_ns: int | None) -> tuple[Figure, list[Key]]:
    """One row per node and unit; the deciding tuple's own instances in red, the others by their source."""
    rows = sorted({(shown.nodes.index(row.node), -_order(row.operators), row.unit) for row in shown.rows}, reverse=True)
    labels = {(shown.nodes[node], unit): f"{escape(shown.nodes[node])}: {escape(unit)}" for node, _, unit in rows}
    sources = sorted({row.lineage[0] for row in shown.rows})
    kinds = [(source, SOURCE_COLOURS[i % len(SOURCE_COLOURS)], False) for i, source in enumerate(sources)]
    data, keys = [], []
    for source, colour, mine in [*kinds, ("", "#d64550", True)]:
        bars = [row for row in shown.rows if row.is_deciding is mine and (mine or row.lineage[0] == source)]
        if bars:
            keys.append(Key("the deciding tuple" if mine else f"tuples of {escape(source)}", colour, "■"))
            data.append({
                "type": "bar", "orientation": "h", "name": keys[-1].name,
                "marker": {"color": colour, "line": {"width": 0.5, "color": "var(--card)"}},
                "y": [labels[row.node, row.unit] for row in bars],
                "base": [round(row.start_ns / MS, 3) for row in bars],
                "x": [round((row.end_ns - row.start_ns) / MS, 4) for row in bars],
                "customdata": [escape("/".join(map(str, row.lineage[:3])) + f".{row.lineage[3]}") for row in bars],
                "hovertemplate": "%{customdata}: from %{base:.1f} ms for %{x:.1f} ms<extra></extra>",
            })  # fmt: skip
    instants = [(shown.admitted_ns, "admitted", "var(--radio)"), (shown.delivered_ns, "delivered", "var(--good)")]
    last_ns = max([row.end_ns for row in shown.rows] + [shown.delivered_ns])
    if deadline_ns and deadline_ns < last_ns + 20 * MS:
        instants.append((deadline_ns, "deadline", "var(--bad)"))
    figure = {
        "data": data,
        "layout": layout(
            120 + 30 * len(rows),
            barmode="overlay",
            bargap=0.3,
            margin={"l": 60, "r": 16, "t": 48, "b": 44},
            shapes=edges(instants),
            annotations=edge_names(instants),
            xaxis={"title": {"text": "time since the measurement [ms]"}},
            yaxis={"automargin": True, "categoryorder": "array", "categoryarray": [labels[shown.nodes[n], u]
                                                                                  for n, _, u in rows]},
        ),
    }  # fmt: skip
    return figure, keys


def _order(operators: Sequence[str]) -> int:
    """Operators are numbered in the query's order where their names end in a number."""
    digits = "".join(letter for letter in operators[0] if letter.isdigit())
    return int(digits) if digits else 0
