"""Placing under protest: where no placement is within the nodes' caps, the one that exceeds them least.

What is too much on average may still be bearable: tuples that come less often than declared, and `on_late`, limits and
shedders, which leave out at run time what there is no time for. Bounds do not count caps: below
a load of 1 an output may be guaranteed all the same, and plans say that it is beyond a cap.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.milp import milp
from coordinator.solve.milp.unplaceable import EXPLAIN_SECONDS
from coordinator.spec.cluster import Node

TOLERANCE = 1e-6


def widened(problem: Problem, limits: Limits) -> Problem | None:
    """The problem with the caps that this placement needs; None: something else than a cap is in the way."""
    model = milp.base(problem, elastic=True)
    until = time.monotonic() + min(EXPLAIN_SECONDS, limits.seconds)
    values = milp.bound(model, model.total([lack for _, lack in model.lack]), limits, until).values
    if values is None or any(values[lack] > TOLERANCE for room, lack in model.lack if not isinstance(room, Node)):
        return None
    used: dict[int, Fraction] = defaultdict(Fraction)
    for (index, node), here in model.z.items():
        if values[here] > 0.5:
            used[node] += problem.items[index].load[node]
    return replace(problem, nodes=tuple(replace(node, cap=max(node.cap, used[node.index])) for node in problem.nodes))
