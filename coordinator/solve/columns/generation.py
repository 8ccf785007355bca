"""Column generation: bounds of NLR that rise while schedules are added, and placements by diving.

Multipliers begin by steps along the subgradient, which need no programme. Those of the master are blended
with the best so far (Wentges, 1997), since alone they jump. A node's programme has few labels at first, and more
when it finds no schedule any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from coordinator.model.problem import Problem
from coordinator.solve.columns.lagrangian import Lagrangian, Multipliers
from coordinator.solve.columns.master import Master
from coordinator.solve.columns.pricing import Schedule, schedule

LABELS = (400, 2000)  # of a node's programme, as the generation goes on
STEPS = 40  # along the subgradient
STALLED = 5  # steps without a better bound, after which they are shorter
SHORTER = 0.6
BLEND = 0.8  # of the best multipliers so far, at most; less while they do not get better
CLOSED = 1e-4  # between the bound and the master's optimum, relative
DIVES = (0.4, 0.15, 0.05, CLOSED)  # gaps between both at which there is a dive
SURE = 0.8  # part of a schedule from which on a dive takes it


@dataclass
class Generation:
    """The state of one. `known`: a placement to begin with; `raised` is called with each better bound, of NLR of any
    placement, infinite where none is possible; `dived` with the placement of each dive, which may miss deadlines."""

    problem: Problem
    known: Mapping[int, int]
    stop: Callable[[], bool]
    raised: Callable[[float], None]
    dived: Callable[[dict[int, int]], None]
    bound: float = 0.0

    def __post_init__(self) -> None:
        self.lagrangian = Lagrangian(self.problem)
        self.master = Master(self.problem)
        self.best = Multipliers((0.0,) * len(self.problem.items))
        self.part = BLEND
        self.master.add(_schedules(self.problem, self.known))

    def run(self, target: float) -> None:
        """Until the bound is the relaxation's, or it is to stop. `target`: an NLR to aim at."""
        self._steps(target)
        level, dives = 0, list(DIVES)
        while not self.stop() and isfinite(self.bound):
            relaxed = self.master.solve()
            if relaxed is None:
                return
            rows = self.master.tighten(relaxed)
            columns = self._priced(relaxed.multipliers, LABELS[level])
            gap = 1 - self.bound / relaxed.nlr if relaxed.nlr > 0 else 0.0
            if dives and not relaxed.uncovered and gap <= dives[0]:
                dives = [each for each in dives if each < gap]
                self._dive(LABELS[0])
            if rows or (columns and gap > CLOSED):
                continue
            if level + 1 == len(LABELS) or gap <= CLOSED:
                return
            level += 1

    def _steps(self, target: float) -> None:
        """Along the subgradient of the covers alone."""
        at, length, stalled = self.best, 1.0, 0
        for _ in range(STEPS):
            if self.stop():
                return
            found = self.lagrangian.at(at, LABELS[0])
            self.master.add(found.schedules)
            stalled += 1
            if self._raise(found.bound, at):
                stalled = 0
            if stalled == STALLED:
                length, stalled = length * SHORTER, 0
            covered = [0] * len(self.problem.items)
            for each in found.schedules:
                for index in each.items:
                    covered[index] += 1
            norm = sum((1 - one) ** 2 for one in covered)
            if not norm:
                return
            step = length * max(0.0, target - found.bound) / norm
            at = Multipliers(
                tuple(max(0.0, one + step * (1 - times)) for one, times in zip(at.cover, covered, strict=True))
            )

    def _priced(self, own: Multipliers, labels: int) -> int:
        """Schedules at the blended multipliers, else at the master's own; returns how many are new."""
        for at in (self.best.blended(own, self.part), own) if self.part > 0 else (own,):
            found = self.lagrangian.at(at, labels, 2)
            change = BLEND / 4 if self._raise(found.bound, at) else -BLEND / 4
            self.part = min(BLEND, max(0.0, self.part + change))
            added = self.master.add(found.schedules)
            if added:
                return added
        return 0

    def _raise(self, bound: float, at: Multipliers) -> bool:
        if bound <= self.bound:
            return False
        self.bound, self.best = bound, at
        self.raised(bound)
        return True

    def _dive(self, labels: int) -> None:
        """Takes schedules one after the other for good, the surest first, with new ones between, until every node has
        one; items that none covers go where most of them is."""
        held: list[Schedule] = []
        while len(held) < len(self.problem.nodes) and not self.stop():
            self.master.hold(held)
            relaxed = self.master.solve()
            if relaxed is None:
                break
            self.master.tighten(relaxed)
            self.master.add(self.lagrangian.at(relaxed.multipliers, labels).schedules)
            relaxed = self.master.solve() or relaxed
            nodes = {each.node for each in held}
            free = sorted((-part, each.node, each) for each, part in relaxed.parts.items() if each.node not in nodes)
            if not free:
                break
            sure = [each for part, _, each in free if -part >= SURE]
            held += sure or [free[0][2]]
        self.master.hold([])
        self.dived(self._placed(held))

    def _placed(self, held: list[Schedule]) -> dict[int, int]:
        place: dict[int, int] = {}
        for each in held:
            for index in each.items:
                place.setdefault(index, each.node)
        for index, item in enumerate(self.problem.items):
            if index not in place:
                place[index] = self.problem.held.get(index, item.nodes[index % len(item.nodes)])
        return place


def _schedules(problem: Problem, place: Mapping[int, int]) -> list[Schedule]:
    costs: dict[int, list[tuple[int, int]]] = {}
    for index in problem.order:
        costs.setdefault(place[index], []).append((index, problem.items[index].cost_ns[place[index]]))
    return [schedule(node, each) for node, each in costs.items()]
