"""The least NLR of any placement at given multipliers: a proven bound, however the multipliers were found.

Relaxed are that each item is placed (`cover`), that each path is within its deadline (`path`), and that a share is not
below its demand bound (`slack`). What is left falls apart: a schedule for each node, and by how much each share is
below d'. Any multipliers from 0 on give a bound, so a linear programme may supply them, with its tolerances, and the
bound does not rest on them. Geoffrion, "Lagrangean relaxation for integer programming", 1974.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.model.problem import Problem
from coordinator.solve.columns.laxity_shares import Path, latest_ns, shares
from coordinator.solve.columns.pricing import NodePricing, Piece, Price, Schedule

ROUNDING = 1e-12  # of what is added up: more than the rounding of a sum of some thousand terms


@dataclass(frozen=True)
class Multipliers:
    """Per item, per path, and per (output, item); what is not named is 0."""

    cover: tuple[float, ...]
    path: dict[Path, float] = field(default_factory=dict)
    slack: dict[tuple[int, int], float] = field(default_factory=dict)

    def blended(self, other: Multipliers, part: float) -> Multipliers:
        """This one by `part`, the other by the rest."""
        rest = 1.0 - part
        return Multipliers(
            tuple(part * one + rest * two for one, two in zip(self.cover, other.cover, strict=True)),
            {
                each: part * self.path.get(each, 0.0) + rest * other.path.get(each, 0.0)
                for each in self.path | other.path
            },
            {
                each: part * self.slack.get(each, 0.0) + rest * other.slack.get(each, 0.0)
                for each in self.slack | other.slack
            },
        )


@dataclass(frozen=True)
class Value:
    """`bound`: NLR of any placement at least; infinite where none is possible. `schedules`: good ones of each node."""

    bound: float
    schedules: list[Schedule]


class Lagrangian:
    """The relaxation of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.shares = shares(problem)
        self.latest = latest_ns(problem)
        self.nodes = [NodePricing(problem, node, self.latest) for node in range(len(problem.nodes))]

    def at(
        self, multipliers: Multipliers, labels: int, wanted: int = 1, held: Mapping[int, int] | None = None
    ) -> Value:
        """The bound, with at most so many labels in each node's programme. `held`: of placements with these items on
        these nodes."""
        on_path = _on_path(multipliers)
        total = size = sum(multipliers.cover)
        for path, weight in multipliers.path.items():
            terminal = self.problem.terminals[path.terminal]
            room = float(terminal.deadline_ns - sum(terminal.share(self.problem.items[one]) for one in path.items))
            total -= weight * room
            size += weight * terminal.deadline_ns
        prices = self._prices(multipliers, on_path)
        for index, own in enumerate(self.shares):
            for share in own:
                key = share.terminal, index
                total += min(0.0, share.per_ns - on_path.get(key, 0.0) + multipliers.slack.get(key, 0.0)) * share.due_ns
            size += sum((one.late + one.slack) * (self.latest[index] + one.due_ns) for one in prices[index].pieces)
        schedules = []
        for node in self.nodes:
            found = node.price(prices, labels, wanted, held or {})
            total += found.value
            schedules += found.schedules
        return Value(total - ROUNDING * size * len(self.nodes), schedules)

    def _prices(self, multipliers: Multipliers, on_path: dict[tuple[int, int], float]) -> list[Price]:
        found = []
        for index, own in enumerate(self.shares):
            keys = [(each.terminal, index) for each in own]
            pieces = tuple(
                Piece(each.due_ns, each.per_ns + on_path.get(key, 0.0), multipliers.slack.get(key, 0.0))
                for each, key in zip(own, keys, strict=True)
            )
            found.append(Price(multipliers.cover[index], pieces))
        return found


def _on_path(multipliers: Multipliers) -> dict[tuple[int, int], float]:
    """Per (output, item), what the paths through it weigh."""
    found: dict[tuple[int, int], float] = {}
    for path, weight in multipliers.path.items():
        for index in path.items:
            found[path.terminal, index] = found.get((path.terminal, index), 0.0) + weight
    return found
