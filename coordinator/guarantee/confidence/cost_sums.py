"""What several instances of an operator in a row take at most, where their costs are independent of each other.

Calls that are distributed by the limits of the measured tail (`quantile_limits`) take longer than real ones, as far as
the sample says: longer than a step's cost with exactly the step's probability, and the certain cost where they are
longer than all steps. The distribution of n of them in sum is that of one convolved n times, on a grid of costs that
are rounded up. The tail of that at a small probability is what n in a row take at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.guarantee.confidence.quantile_limits import Limit

GRID = 512  # cells of the certain cost
MOST_IN_A_ROW = 48  # more are taken in parts
ROUNDED_UP = 1 + 1e-6  # beyond the error of sums of so few positive numbers


def sums(choices: Sequence[Limit], certain_ns: int, length: int, exceeded: float) -> tuple[int, ...]:
    """What 1, 2, ... `length` in a row take: a row of them takes longer with that probability at most. `choices`: costs
    and how likely one takes longer, the largest first."""
    import numpy as np  # only bounds of independent costs need it

    cell_ns = -(-certain_ns // GRID)
    one = np.zeros(GRID + 1)
    longer, before_ns = 0.0, certain_ns
    for each in choices:
        if each.exceeded > longer:
            one[-(-before_ns // cell_ns)] += each.exceeded - longer
            longer = each.exceeded
        before_ns = each.cost_ns
    one[-(-before_ns // cell_ns)] += 1 - longer
    found: list[int] = []
    row: Any = np.ones(1)
    for n in range(1, length + 1):
        row = np.convolve(row, one)
        tail = np.cumsum(row[::-1])[::-1] * ROUNDED_UP  # of that many cells, or more
        at_least = int(np.argmax(np.append(tail, 0.0) <= exceeded))  # so many cells are reached seldom enough
        most_ns = min(n * certain_ns, max(0, at_least - 1) * cell_ns)
        found.append(max(most_ns, found[-1] if found else 1))
    return tuple(found)


__all__ = ["MOST_IN_A_ROW", "sums"]
