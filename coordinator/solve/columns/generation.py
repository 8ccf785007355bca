"""Column generation: bounds of NLR that rise while schedules are added, and placements by diving.

Multipliers begin by steps along the subgradient, which need no programme. Those of the master are blended
with the best of them so far (Wentges, 1997), since alone they jump. A node's programme has few labels at first, and
more when it finds no schedule any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite

from coordinator.model.problem import Problem
from coordinator.solve.columns.lagrangian import Lagrangian, Multipliers
from coordinator.solve.columns.pricing import Schedule, schedule
from coordinator.solve.columns.schedule_master import Master, Relaxed

LABELS = (300, 1200, 4800)  # of a node's programme, as the generation goes on
STEPS = 30  # along the subgradient
STALLED = 5  # steps without a better bound, after which they are shorter
SHORTER = 0.6
RISING = 1.003  # of a bound from one round to the next; below it there are more labels
UNCOVERED = 1e-6  # items, of a master that has the columns it needs
BLEND = 0.6  # of the best multipliers of the master so far
WANTED = 3  # schedules of a node at a time
CLOSED = 1e-4  # between the bound and the master's optimum, relative
DIVES = (0.12, 0.02)  # gaps between both at which there is a dive
FALLING = 0.995  # of the master's optimum from one round to the next; above it a dive goes on
ROUNDS = 5  # of new schedules before a dive holds more
SURE = 0.85  # part of an item on a node from which on a dive holds it there
STEP = 6  # of the items that are not held, one in so many is at least, each time


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
        self.centre: tuple[float, Multipliers] | None = None
        self.master.add(_schedules(self.problem, self.known))

    def run(self, target: float) -> None:
        """Until the bound is the relaxation's, or it is to stop. `target`: an NLR to aim at."""
        self._steps(target)
        level, dives, stalled = 0, list(DIVES), 0
        while not self.stop() and isfinite(self.bound):
            relaxed = self.master.solve()
            if relaxed is None:
                return
            rows, before = self.master.tighten(relaxed), self.bound
            columns = self._priced(relaxed.multipliers, LABELS[level])
            stalled = 0 if self.bound > before * RISING or relaxed.uncovered > UNCOVERED else stalled + 1
            gap = 1 - self.bound / relaxed.nlr if relaxed.nlr > 0 else 0.0
            if dives and relaxed.uncovered <= UNCOVERED and gap <= dives[0]:
                dives = [each for each in dives if each < gap]
                self._dive()
            if rows or (columns and gap > CLOSED and (stalled < STALLED or level + 1 == len(LABELS))):
                continue
            if level + 1 == len(LABELS) or gap <= CLOSED:
                return
            level, stalled = level + 1, 0

    def _steps(self, target: float) -> None:
        """Along the subgradient of the covers alone."""
        at, length, stalled = Multipliers((0.0,) * len(self.problem.items)), 1.0, 0
        for _ in range(STEPS):
            if self.stop():
                return
            found = self.lagrangian.at(at, LABELS[0])
            self.master.add(found.schedules)
            stalled += 1
            if self._raise(found.bound):
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
        blended = own if self.centre is None else self.centre[1].blended(own, BLEND)
        for at in (blended, own):
            found = self.lagrangian.at(at, labels, WANTED)
            self._raise(found.bound)
            if self.centre is None or found.bound > self.centre[0]:
                self.centre = found.bound, at
            added = self.master.add(found.schedules)
            if added:
                return added
        return 0

    def _raise(self, bound: float) -> bool:
        if bound <= self.bound:
            return False
        self.bound = bound
        self.raised(bound)
        return True

    def _dive(self) -> None:
        """Holds items to nodes for good, the surest first, with new schedules between, until each has one."""
        held = dict(self.problem.held)
        while len(held) < len(self.problem.items):
            relaxed = self._regenerated(held)
            if relaxed is None:
                break
            parts: dict[tuple[int, int], float] = {}
            for each, part in relaxed.parts.items():
                for index in each.items:
                    if index not in held:
                        parts[index, each.node] = parts.get((index, each.node), 0.0) + part
            if not parts:
                break
            ordered = sorted(parts, key=lambda key: (-parts[key], key))
            least = max(1, (len(self.problem.items) - len(held)) // STEP)
            for at, (index, node) in enumerate(ordered):
                if at < least or parts[index, node] >= SURE:
                    held.setdefault(index, node)
        self.master.hold({})
        if len(held) == len(self.problem.items):
            self.dived(held)

    def _regenerated(self, held: Mapping[int, int]) -> Relaxed | None:
        """The master's optimum with new schedules while items are held; None where there is none in time."""
        self.master.hold(held)
        before = inf
        for _ in range(ROUNDS):
            relaxed = None if self.stop() else self.master.solve()
            if relaxed is None:
                return None
            rows = self.master.tighten(relaxed)
            found = self.lagrangian.at(relaxed.multipliers, LABELS[0], WANTED, held)
            fresh = self.master.add(found.schedules)
            if not rows and (not fresh or relaxed.nlr > before * FALLING):
                return relaxed
            before = relaxed.nlr
            self.master.hold(held)
        return self.master.solve()


def _schedules(problem: Problem, place: Mapping[int, int]) -> list[Schedule]:
    costs: dict[int, list[tuple[int, int]]] = {}
    for index in problem.order:
        costs.setdefault(place[index], []).append((index, problem.items[index].cost_ns[place[index]]))
    return [schedule(node, each) for node, each in costs.items()]
