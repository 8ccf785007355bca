"""Benders cuts: failing tests of nodes as rows of the placement programme. Their items together do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.guarantee.analysis import Analysis
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions


def failing(conditions: NecessaryConditions, analysis: Analysis) -> Iterator[tuple[int, dict[int, int], int]]:
    """Per node whose sub-deadlines do not hold at u*: its index, the work of each item by u* in ns, and what there is
    room for beside what blocks."""
    named = {unit.name: unit for unit in analysis.system.units.values()}
    nodes = {node.name: node.index for node in conditions.problem.nodes}
    for node, verdict in analysis.verdicts.items():
        if verdict.holds:
            continue
        work: dict[int, int] = {}
        for name, entering, _ in verdict.terms:
            if name not in named:
                continue
            jobs = entering
            for stage in named[name].stages:
                item = conditions.item[stage.operator]
                work[item] = work.get(item, 0) + jobs * stage.cost_ns
                jobs = stage.selectivity(jobs)
        room = int(verdict.u) - (int(verdict.blocker[1]) if verdict.blocker else 0)
        if sum(work.values()) > room:
            yield nodes[node], work, room
