"""Which outputs come first where not all can be served: by deadline, the most urgent first.

Outputs of one deadline are a rank: they come first together or not at all, so that none of two alike is served at the
other's cost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Terminal
from coordinator.solve.milp import least_violation

Rank = tuple[Terminal, ...]


def ranks(problem: Problem) -> list[Rank]:
    """The outputs by deadline, and side inputs by the least one of their readers."""
    ordered = sorted(problem.terminals, key=lambda one: one.deadline_ns)
    return [tuple(group) for _, group in groupby(ordered, key=lambda one: one.deadline_ns)]


def items_of(every: Sequence[Rank]) -> frozenset[int]:
    """All items that lead there."""
    return frozenset(index for rank in every for terminal in rank for index in terminal.items)


def first(problem: Problem, limits: Limits) -> Collection[int]:
    """The items of the most urgent ranks, as many as some placement has within the caps together."""
    every = ranks(problem)
    low, high = 0, len(every)
    while high - low > 1:  # of none it is true; of all it is not, or nothing would be too much
        middle = (low + high) // 2
        fit = least_violation.fits(problem, items_of(every[:middle]), limits)
        low, high = (middle, high) if fit else (low, middle)
    return items_of(every[:low])
