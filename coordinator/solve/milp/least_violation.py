"""Placing under protest: where no placement is within the nodes' caps, the one that exceeds them least, and evenly.

What is too much on average may still be bearable: tuples that come less often than declared, and `on_late`, limits and
shedders, which leave out at run time what there is no time for. Bounds do not count caps: below
a load of 1 an output may be guaranteed all the same, and plans say that it is beyond a cap.

The sum of what is too much is the same for one node at 140 % beside one at 90 % and for two at 115 %, but the first is
late with everything that it runs. So what is too much on one node weighs the more the more it is.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.milp import milp
from coordinator.solve.milp.programme import Model
from coordinator.spec.cluster import Node

SECONDS = 10.0
TOLERANCE = 1e-6
PIECE, PIECES = 0.1, 20  # of a cap
STEEPER = 0.05  # a piece of what is too much weighs so much more than the one before
CHOSEN = 0.5  # of a variable that is 0 or 1
NEARLY = 0.03  # how far from the least weight a placement may be for the sake of traffic


@dataclass(frozen=True)
class Spread:
    """A placement beyond the caps: the node of every item, and the problem with the caps that it needs."""

    problem: Problem
    place: Mapping[int, int]


def widened(problem: Problem, limits: Limits) -> Problem | None:
    """The problem with the caps that the placement of `spread` needs; None: something else than a cap is in the way."""
    found = spread(problem, limits)
    return found.problem if found else None


def spread(problem: Problem, limits: Limits, first: Collection[int] = ()) -> Spread | None:
    """The placement that exceeds the caps least and evenly, and of these nearly the one with the least traffic.
    `first`: items that have to fit within the caps by themselves. None: something else than a cap is in the way, or no
    placement was found in time."""
    model = milp.base(problem, elastic=True)
    for room, lack in model.lack:
        if not isinstance(room, Node):
            model.programme.add_linear_constraint(lack <= TOLERANCE)
    for node in problem.nodes if first else ():
        model.programme.add_linear_constraint(_load(model, node, first) <= float(node.cap) + TOLERANCE)
    pieces = _pieces(model)
    too_much = model.total([weight * piece for piece, weight in pieces])
    until = time.monotonic() + min(SECONDS, limits.seconds)
    half = until - min(SECONDS, limits.seconds) / 2
    found = milp.bound(model, too_much, limits, half)
    if found.values is None:
        return None
    place = _place(model, found.values)
    least = sum(found.values[piece] * weight for piece, weight in pieces)
    model.programme.add_linear_constraint(too_much <= least * (1 + NEARLY) + TOLERANCE)
    nearer = milp.bound(model, model.traffic(), limits, until)
    if nearer.values is not None:
        place = _place(model, nearer.values)
    used: dict[int, Fraction] = defaultdict(Fraction)
    for index, here in place.items():
        used[here] += problem.items[index].load[here]
    nodes = tuple(replace(node, cap=max(node.cap, used[node.index])) for node in problem.nodes)
    return Spread(replace(problem, nodes=nodes), place)


def fits(problem: Problem, items: Collection[int], limits: Limits) -> bool:
    """Whether some placement has these items within the caps, beside others that ask nothing of them; False also where
    none was found in time."""
    light = replace(
        problem,
        items=tuple(
            item if index in items else replace(item, load=dict.fromkeys(item.load, Fraction(0)))
            for index, item in enumerate(problem.items)
        ),
    )
    model = milp.base(light)
    until = time.monotonic() + min(SECONDS, limits.seconds)
    return milp.solve(model, model.total([]), limits, until).solution is not None


def _load(model: Model, node: Node, items: Collection[int]) -> Any:
    """What these items use of a node."""
    return model.total(
        [
            float(model.problem.items[index].load[node.index]) * model.z[index, node.index]
            for index in sorted(items)
            if (index, node.index) in model.z
        ]
    )


def _pieces(model: Model) -> list[tuple[Any, float]]:
    """What is too much on the nodes, in pieces, each with its weight."""
    found = []
    for room, lack in model.lack:
        if isinstance(room, Node):
            pieces = [
                model.programme.add_variable(lb=0, ub=PIECE if number + 1 < PIECES else inf) for number in range(PIECES)
            ]
            model.programme.add_linear_constraint(lack <= model.total(pieces))
            found += [(piece, float(room.cap) * (1 + STEEPER * number)) for number, piece in enumerate(pieces)]
    return found


def _place(model: Model, values: Mapping[Any, float]) -> dict[int, int]:
    return {index: node for (index, node), here in model.z.items() if values[here] > CHOSEN}
