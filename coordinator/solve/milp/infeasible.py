"""Reasons why no placement holds every deadline: the rows that give way first, named with what they need and have."""

from __future__ import annotations

import time
from collections.abc import Mapping

from coordinator.errors import Mistake
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.milp import milp
from coordinator.solve.milp.unplaceable import EXPLAIN_SECONDS, unplaceable
from coordinator.units import show_ns


def explain(
    problem: Problem, limits: Limits, fixed: Mapping[int, int] | None = None, finest: Problem | None = None
) -> list[Mistake]:
    """Reasons for people. First what no placement can change (a path's own cost, a node's utilisation, a missing
    link); else the placement that exceeds the deadlines least (the model with a slack on every path), and the rows
    that exceed. `finest`: the problem with fewer contracted chains, for what chains have nothing to do with."""
    reasons = _too_costly(problem)
    if reasons:
        return reasons
    model = milp.base(problem, fixed)
    milp.deadline_rows(model, elastic=True)
    answer = milp.solve(
        model, model.total(model.excess), limits, time.monotonic() + min(EXPLAIN_SECONDS, limits.seconds)
    )
    if answer.solution is None:
        return explain(finest, limits, fixed) if finest is not None else unplaceable(problem, limits)
    return _exceeded(problem, answer.solution.place) or [Mistake("infeasible", "no placement holds every deadline")]


def _too_costly(problem: Problem) -> list[Mistake]:
    """Paths whose cost alone, each operator on its fastest node, exceeds the deadline."""
    fastest = {index: min(item.cost_ns.values()) for index, item in enumerate(problem.items)}
    reasons = []
    for terminal in problem.terminals:
        need_ns, path = sub_deadline_allocation.longest_path(problem, terminal, fastest)
        if need_ns > terminal.deadline_ns:
            text = (
                f"output {terminal.name}: its path {_names(problem, path)} costs {show_ns(need_ns)} per burst even on "
                f"the fastest nodes, more than its deadline of {show_ns(terminal.deadline_ns)}"
            )
            reasons.append(Mistake("path_too_costly", text, subject=terminal.name))
    return reasons


def _exceeded(problem: Problem, place: Mapping[int, int]) -> list[Mistake]:
    """The outputs that a placement misses, and the demand rows on their paths."""
    least = sub_deadline_allocation.least_ns(problem, place)
    reasons = []
    for terminal in problem.terminals:
        need_ns, path = sub_deadline_allocation.longest_path(problem, terminal, least)
        if need_ns <= terminal.deadline_ns:
            continue
        rows = "; ".join(_row(problem, place, index, least[index]) for index in path)
        moved = [
            f"{item.name} on {problem.nodes[place[i]].name}"
            for i, item in enumerate(problem.items)
            if len(item.nodes) > 1
        ]
        nearest = f" (in the nearest placement, {', '.join(moved[:8])})" if moved else ""
        text = (
            f"output {terminal.name}: its path needs {show_ns(need_ns)} before {show_ns(terminal.deadline_ns)}, "
            f"{show_ns(need_ns - terminal.deadline_ns)} too much{nearest}: {rows}"
        )
        reasons.append(Mistake("path_too_long", text, subject=terminal.name))
    return reasons


def _row(problem: Problem, place: Mapping[int, int], index: int, need_ns: int) -> str:
    """A demand row: what has to be done on a node by the sub-deadline of an item."""
    node = place[index]
    position = problem.order.index(index)
    first = [one for one in problem.order[: position + 1] if place[one] == node]
    count = sum(len(problem.items[one].members) for one in first)
    due = f"{count} operators ({_names(problem, first)}) have" if count > 1 else f"{problem.items[index].name} has"
    by = f"by the sub-deadline of {problem.items[index].name}"
    return f"node {problem.nodes[node].name}: {due} {show_ns(need_ns)} to do {by}"


def _names(problem: Problem, indexes: list[int]) -> str:
    return ", ".join(problem.items[index].name for index in indexes)
