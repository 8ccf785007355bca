"""Bars: the stages of the deciding tuple, and what the nodes did around it (Plotly figures as in plots.py)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sim_vehicles.encounter.judgement import Stage
from sim_vehicles.story.page.plots import MS, Figure, edge_names, edges, layout
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
DARK = ("sending", "execution", "link", "actuation")  # white letters on these
SOURCE_COLOURS = ("#7fa8d1", "#8fbfa6", "#b9bec6", "#c8b189", "#a99bd0")


def stages(story: Story) -> Figure:
    """The stages as one stacked bar; neighbours of one kind and node together."""
    data = []
    for stage, where, ns in joined(story.traced.stages):
        name = f"{escape(stage)}{f' {escape(where)}' if where else ''}"
        data.append({
            "type": "bar", "orientation": "h", "name": "", "y": [""], "x": [ns / MS],
            "marker": {"color": STAGE_COLOURS.get(stage, "#c9ced6"), "line": {"width": 1, "color": "var(--card)"}},
            "text": [name], "textposition": "inside", "insidetextanchor": "middle", "textangle": 0,
            "textfont": {"color": "#fff" if stage in DARK else "#1d2733", "size": 12}, "constraintext": "inside",
            "hovertemplate": f"{name}: {ns / MS:.1f} ms<extra></extra>",
        })  # fmt: skip
    latency_ns = sum(each.ns for each in story.traced.stages if each.stage != "actuation")
    instants = [(latency_ns, "delivered", "var(--good)")]
    if story.traced.deadline_ns:
        instants.append((story.traced.deadline_ns, "deadline", "var(--bad)"))
    return {
        "data": data,
        "layout": layout(
            150,
            barmode="stack",
            shapes=edges(instants),
            annotations=edge_names(instants),
            uniformtext={"minsize": 11, "mode": "hide"},
            xaxis={"title": {"text": "time since the measurement [ms]"}, "rangemode": "tozero"},
            yaxis={"showticklabels": False},
            margin={"l": 12, "r": 16, "t": 30, "b": 44},
        ),
    }


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


def gantt(shown: Gantt, deadline_ns: int | None) -> Figure:
    """One row per node and unit; the deciding tuple's own instances in red, the others by their source."""
    rows = sorted({(shown.nodes.index(row.node), -_order(row.operators), row.unit) for row in shown.rows}, reverse=True)
    labels = {(shown.nodes[node], unit): f"{escape(shown.nodes[node])}: {escape(unit)}" for node, _, unit in rows}
    sources = sorted({row.lineage[0] for row in shown.rows})
    kinds = [(source, SOURCE_COLOURS[i % len(SOURCE_COLOURS)], False) for i, source in enumerate(sources)]
    data = []
    for source, colour, mine in [*kinds, ("", "#d64550", True)]:
        bars = [row for row in shown.rows if row.is_deciding is mine and (mine or row.lineage[0] == source)]
        if bars:
            data.append({
                "type": "bar", "orientation": "h",
                "name": "the deciding tuple" if mine else f"tuples of {escape(source)}",
                "marker": {"color": colour, "line": {"width": 0.5, "color": "var(--card)"}},
                "y": [labels[row.node, row.unit] for row in bars], "base": [row.start_ns / MS for row in bars],
                "x": [round((row.end_ns - row.start_ns) / MS, 6) for row in bars],
                "customdata": [escape("/".join(map(str, row.lineage[:3])) + f".{row.lineage[3]}") for row in bars],
                "hovertemplate": "%{customdata}: from %{base:.1f} ms for %{x:.1f} ms<extra></extra>",
            })  # fmt: skip
    instants = [(shown.admitted_ns, "admitted", "var(--radio)"), (shown.delivered_ns, "delivered", "var(--good)")]
    last_ns = max([row.end_ns for row in shown.rows] + [shown.delivered_ns])
    if deadline_ns and deadline_ns < last_ns + 20 * MS:
        instants.append((deadline_ns, "deadline", "var(--bad)"))
    return {
        "data": data,
        "layout": layout(
            120 + 30 * len(rows),
            barmode="overlay",
            bargap=0.3,
            margin={"l": 60, "r": 16, "t": 34, "b": 44},
            shapes=edges(instants),
            annotations=edge_names(instants),
            xaxis={"title": {"text": "time since the measurement [ms]"}},
            yaxis={"automargin": True, "categoryorder": "array", "categoryarray": [labels[shown.nodes[n], u]
                                                                                  for n, _, u in rows]},
        ),
    }  # fmt: skip


def _order(operators: Sequence[str]) -> int:
    """Operators are numbered in the query's order where their names end in a number."""
    digits = "".join(letter for letter in operators[0] if letter.isdigit())
    return int(digits) if digits else 0
