"""Nodes: what each was busy with over time, beside what the plan counts on, and how long its units took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from coordinator.report.page.elements import PageRun, folded, named, plot, row, section, table
from coordinator.report.page.run_labels import milliseconds
from coordinator.report.series.utilisation_series import UnitUse
from protos.json_shape import Json

COLOURS = 5  # units of a node that have one of their own; the others are the rest
AT_ONCE = 8  # nodes
HEAD = ("unit", "node", "busy %", "instances", "mean run", "longest", "p50", "p99", "slowest", "bound", "sub-deadline")
NOTE = (
    "Busy: the time in which instances of units ran, by the clock of the node. The line is what the plan counts on, "
    "with decisions and sockets. Of units, in ms: how long instances ran, and quantiles (to 2 %) of the "
    "time from a tuple's release to its end."
)


def nodes_section(runs: Sequence[PageRun]) -> str:
    """Small drawings of all nodes, and a table of all units."""
    return section("Nodes", "".join(_run(page_run, runs) for page_run in runs), NOTE)


def _run(page_run: PageRun, runs: Sequence[PageRun]) -> str:
    by_node: dict[int, list[UnitUse]] = {}
    for id_, use in page_run.series.uses.items():
        by_node.setdefault(page_run.run.plan.units[id_].node, []).append(use)
    head = f"<h3>{named(page_run, runs)}</h3>" if len(runs) > 1 else ""
    if not by_node:
        return f"{head}<p>No instance ran.</p>"
    busiest = sorted(by_node, key=lambda node: -_busy(page_run, by_node[node]))
    most = _most(page_run, by_node)
    drawn = [_node(page_run, node, by_node[node], most) for node in busiest]
    text = f'<div class="many">{"".join(drawn[:AT_ONCE])}</div>'
    if drawn[AT_ONCE:]:
        more = f'<div class="many">{"".join(drawn[AT_ONCE:])}</div>'
        text += folded(f"{len(drawn) - AT_ONCE} more nodes, less busy", more)
    rows = [_unit(page_run, use) for node in busiest for use in sorted(by_node[node], key=lambda one: -one.run_ns)]
    return f"{head}{text}<h3>Units</h3>{table(HEAD, rows)}"


def _most(page_run: PageRun, by_node: Mapping[int, Sequence[UnitUse]]) -> float:
    """One scale for all nodes of a run, in %."""
    peaks = (100 * max(map(sum, zip(*(use.shares for use in uses), strict=True))) for uses in by_node.values())
    planned = (100 * (each.utilisation or 0) for each in page_run.run.plan.made.analysis.nodes.values())
    return max(5.0, *peaks, *planned) * 1.1


def _busy(page_run: PageRun, uses: Sequence[UnitUse]) -> float:
    return sum(use.run_ns for use in uses) / page_run.series.length_ns


def _node(page_run: PageRun, node: int, uses: Sequence[UnitUse], most: float) -> str:
    name, plan = page_run.run.plan.nodes[node], page_run.run.plan
    planned = plan.made.analysis.nodes.get(name)
    utilisation = planned.utilisation if planned is not None else None
    ordered = sorted(uses, key=lambda use: -use.run_ns)
    at = [round(n * page_run.series.use_bin_ns / 1e9, 4) for n in range(len(ordered[0].shares))]
    whole, series = [0.0] * len(at), list[Json]()
    groups = [(plan.units[use.unit].label, f"u{n}", [use]) for n, use in enumerate(ordered[:COLOURS])]
    if ordered[COLOURS:]:
        groups.append((f"{len(ordered) - COLOURS} more units", "urest", ordered[COLOURS:]))
    for label, css, members in groups:
        mine = [100 * sum(values) for values in zip(*(use.shares for use in members), strict=True)]
        whole = [low + own for low, own in zip(whole, mine, strict=True)]
        width = page_run.series.use_bin_ns / 1e9
        series.append(
            {"kind": "area", "name": label, "css": css, "y": [round(each, 2) for each in mine], "width": width}
        )
    marks: list[Json] = []
    if utilisation is not None:
        text = f"plan {100 * utilisation:.3g} %"
        marks.append({"axis": "y", "at": 100 * utilisation, "css": "plan", "text": text})
    data: Json = {
        "y": "busy [%]", "x": "time [s]", "at": at, "series": series, "marks": marks, "height": 150, "most": most,
        "to": page_run.series.length_ns / 1e9,
    }  # fmt: skip
    peak = max(whole, default=0.0)
    told = f"{100 * _busy(page_run, uses):.3g} % busy, at most {peak:.3g} %"
    return f"<div><h3>{escape(name)}: {told}</h3>{plot('lines', data, f'Use of {name} over time')}</div>"


def _unit(page_run: PageRun, use: UnitUse) -> str:
    view, made = page_run.run.plan.units[use.unit], page_run.run.plan.made
    tasks = (task for tasks in made.tasks.values() for task in tasks)
    sub_deadline_ns = next((task.sub_deadline_ns for task in tasks if task.id == use.unit), None)
    bound_ns = made.analysis.units_ns.get(str(use.unit))
    slowest = milliseconds(use.response_most_ns)
    if bound_ns is not None and use.response_most_ns > bound_ns:
        slowest = f'<b class="bad">{slowest}</b>'
    return row([
        f'<span title="{escape(", ".join(view.operators))}">{escape(view.label)}</span>',
        escape(page_run.run.plan.nodes[view.node]),
        f"{100 * use.run_ns / page_run.series.length_ns:.3g}",
        f"{use.instances:,}",
        milliseconds(use.run_ns // max(1, use.instances)),
        *map(milliseconds, (use.longest_ns, use.response_p50_ns, use.response_p99_ns)),
        slowest,
        milliseconds(bound_ns),
        milliseconds(sub_deadline_ns),
    ])  # fmt: skip


__all__ = ["nodes_section"]
