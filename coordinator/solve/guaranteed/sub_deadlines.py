"""Sub-deadlines for a settled placement, chosen by what the analysis says of them. No solver; whole ns.

From a few starts (in proportion to work, to what is left of the deadline, by urgency), first in the manner of HOPA
(Gutierrez Garcia and Gonzalez Harbour 1995: deadlines anew from response bounds, way by way), then by single moves: a
unit on the way that is tightest goes before another of its node, or one that delays it gives way. EDF looks at
differences only, so moving all units of a node by the same time changes no bound; that is how sub-deadlines are made to
hold where ways have room.

Every choice is tried by analysis, so nothing here has to be right for a plan to be; the number of analyses is limited,
not the time that they take, so that the same input gives the same plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from coordinator.guarantee.analysis import never
from coordinator.guarantee.streams import Reuse
from coordinator.solve.guaranteed.candidate import Candidate
from coordinator.solve.guaranteed.objective_rank import ObjectiveRank, Rank, objective_rank
from coordinator.solve.guaranteed.unit_paths import UnitPath, fitted, unit_paths
from coordinator.spec.runtime_charges import RuntimeOverhead

Due = dict[int, int]
RELAXED = 1000  # times the deadline of an output that need not hold: it waits for all that have to
ROUNDS = 6  # of HOPA, from each start
DAMPING = (Fraction(1), Fraction(1, 2))


class ExhaustedError(Exception):
    """No analyses, or no time, are left: what was found is the result."""


@dataclass
class Effort:
    """How many analyses may still be made, and until when (time.monotonic); `analyses` counts them."""

    left: int
    until: float
    analyses: int = 0

    def take(self) -> None:
        """One analysis. Raises ExhaustedError."""
        if self.left <= 0 or (self.analyses and time.monotonic() >= self.until):
            raise ExhaustedError
        self.left -= 1
        self.analyses += 1


@dataclass
class Search:
    """The search for one placement. `best`: the best objective so far; `first_ns`: sub-deadlines by operator to begin
    with; `stop`: whether an analysis is to end without a result."""

    candidate: Candidate
    charges: RuntimeOverhead
    effort: Effort
    tighten: str | None = None
    spared: frozenset[str] = frozenset()  # outputs that need not hold
    best: ObjectiveRank | None = None
    unit_paths: list[UnitPath] = field(init=False)
    seen: set[tuple[int, ...]] = field(default_factory=set)
    reuse: Reuse = field(default_factory=Reuse)
    first_ns: Mapping[str, int] = field(default_factory=dict)
    stop: Callable[[], bool] = never
    longest_s: float = 0.0  # that an analysis took
    thorough: bool = False  # whether bounds count, or only whether they hold

    def __post_init__(self) -> None:
        self.thorough = self.thorough or self.tighten is not None
        self.unit_paths = [
            replace(way, deadline_ns=way.deadline_ns * RELAXED) if way.output in self.spared else way
            for way in unit_paths(self.candidate.system, self.candidate.held_ns)
        ]

    def feasible(self) -> ObjectiveRank | None:
        """Until every output holds, or efforts end; None where nothing was tried."""
        try:
            for due_ns in self.starts():
                if self._hopa(due_ns):
                    return self.best
            self._descend(until_it_holds=True)
        except ExhaustedError:
            pass
        return self.best

    def improve(self) -> ObjectiveRank | None:
        """From what was found: more slack for the output that has least, or a smaller bound of `tighten`."""
        before, self.best = self.best, None
        self.thorough = True
        self.seen.clear()
        try:
            if before is not None:
                self._try(before.due_ns)
            self.best = self._lesser(before, self.best)
            for due_ns in self.starts():
                self._try(due_ns)
            self._descend(until_it_holds=False)
        except ExhaustedError:
            self.best = self._lesser(before, self.best)
        return self.best

    def starts(self) -> Iterator[Mapping[int, int | Fraction]]:
        """Those given, in proportion to the work with equal slack for all, and by what is left of the deadline. What
        leads to side inputs only comes last in these, and in one more, for the sake of ages, first."""
        units = self.candidate.system.units
        if self.first_ns:
            yield {
                number: sum(self.first_ns[stage.operator] for stage in unit.stages) for number, unit in units.items()
            }
        work = self._work()
        whole = {way.output: max(Fraction(1), way.length(work)) for way in self.unit_paths}
        most = max(way.deadline_ns for way in self.unit_paths)
        even: dict[int, Fraction] = {}
        urgent: dict[int, Fraction] = {}
        for way in self.unit_paths:
            room = max(Fraction(1), Fraction(way.deadline_ns - way.fixed_ns))
            for number in way.units:
                share = work[number] * room / whole[way.output]
                even[number] = min(even.get(number, share), share)
                urgent[number] = min(urgent.get(number, room), room)
        aside = dict.fromkeys(units.keys() - even.keys(), Fraction(most))
        yield even | aside
        yield urgent | aside
        yield even | dict.fromkeys(aside, min(even.values()))

    def _work(self) -> Due:
        """Per unit the work of the most that comes at one instant, as if all were at hand."""
        found: Due = {}
        count: dict[str, int] = {}
        system = self.candidate.system
        for name, source in system.sources.items():
            count[name] = source.curve.count(0) if source.curve else 1
        for number in system.order:
            unit = system.units[number]
            entering = [count[stream] for stream in unit.inputs]
            alone = unit.sync is not None and (unit.sync.timeout_ns or unit.sync.each)
            jobs = min(entering) if unit.join and not alone else sum(entering)
            total = 0
            after = []
            for stage in unit.stages:
                total += stage.cost_ns * max(1, jobs)
                jobs = min(stage.selectivity(jobs), 10**6)
                after.append(jobs)
            for stream, position in unit.exits.items():
                count[stream] = 1 if stream in system.windows else after[position]
            found[number] = total
        return found

    def _try(self, due_ns: Mapping[int, int | Fraction]) -> ObjectiveRank | None:
        """Analyses a choice, made to fit; None where it was tried before. The best is kept."""
        due = fitted(self.candidate.system, self.unit_paths, due_ns, self.candidate.fixed_ns)
        key = tuple(due[number] for number in sorted(due))
        if key in self.seen:
            return None
        self.effort.take()
        self.seen.add(key)
        began = time.monotonic()
        system = self.candidate.with_deadlines(due)
        found = objective_rank(system, self.charges, self.spared, self.reuse, self.stop, self.thorough)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if self.best is None or self._rank(found) < self._rank(self.best):
            self.best = found
        return found

    def _lesser(self, one: ObjectiveRank | None, other: ObjectiveRank | None) -> ObjectiveRank | None:
        """The better one, the other where they are alike."""
        if one is None or (other is not None and self._rank(other) <= self._rank(one)):
            return other
        return one

    def _rank(self, objective: ObjectiveRank) -> Rank:
        return objective.rank(self.tighten)

    def _hopa(self, start: Mapping[int, int | Fraction]) -> bool:
        """Whether every output holds after some round."""
        found = self._try(start)
        for turn in range(ROUNDS):
            if found is None:
                return False
            if found.holds:
                return True
            if any(each is None for each in found.bounds_ns.values()):
                return False
            found = self._try(self._by_response(found, DAMPING[turn % len(DAMPING)]))
        return False

    def _by_response(self, objective: ObjectiveRank, weight: Fraction) -> dict[int, Fraction]:
        """A unit's response bound, stretched so that the tightest way through it fills its deadline."""
        wanted: dict[int, Fraction] = {}
        response = {number: int(-(-each.end // 1)) for number, each in objective.analysis.delays.units.items()}
        for way in self.unit_paths:
            length = way.length({number: max(1, response.get(number, 1)) for number in way.units})
            stretch = max(Fraction(1), Fraction(way.deadline_ns - way.fixed_ns)) / max(Fraction(1), length)
            for number in way.units:
                due = max(1, response.get(number, 1)) * stretch
                wanted[number] = min(wanted.get(number, due), due)
        return {
            number: old + (wanted.get(number, Fraction(old)) - old) * weight for number, old in objective.due_ns.items()
        }

    def _descend(self, until_it_holds: bool) -> None:
        """Moves from the best until none helps."""
        while self.best is not None and not (until_it_holds and self.best.holds):
            before = self.best
            for due_ns in self._moves(before):
                self._try(due_ns)
                if self.best is not before:
                    break
            else:
                return

    def _moves(self, objective: ObjectiveRank) -> Iterator[dict[int, int]]:
        """Changes of one unit, or of one node as a whole, that may help the output which needs it."""
        system, due = self.candidate.system, dict(objective.due_ns)
        yield from self._shifts(objective)
        name = self.tighten if self.tighten is not None and objective.holds else objective.tightest
        response = {number: int(-(-each.end // 1)) for number, each in objective.analysis.delays.units.items()}
        way = next(way for way in self.unit_paths if way.output == name)
        work = self._work()
        for number in sorted(way.units, key=lambda one: (-response.get(one, 0), one)):
            unit = system.units[number]
            others = [one for one in system.units.values() if one.node == unit.node and one.id != number]
            rivals = sorted(others, key=lambda one: (-work[one.id], one.id))
            own = work[number] + max((one.stages[0].cost_ns for one in others), default=0)
            tighter = {due[one.id] - work[one.id] for one in rivals} | {due[one.id] - 1 for one in rivals}
            tighter |= {own, due[number] * 3 // 4, due[number] // 2, response.get(number, 0)}
            for value in sorted((one for one in tighter if 0 < one < due[number]), reverse=True):
                yield due | {number: value}
            for rival in rivals:
                if due[rival.id] - work[rival.id] <= due[number]:  # it may go first: let it wait
                    for value in self._longer(rival.id, due, work[rival.id] + due[number]):
                        yield due | {rival.id: value}
            for value in self._longer(number, due, due[number] * 2):
                yield due | {number: value}

    def _longer(self, number: int, due: Mapping[int, int], wish: int) -> Iterator[int]:
        """A longer sub-deadline, as far as its ways have room."""
        room = min(
            (int(way.deadline_ns - way.length(due)) for way in self.unit_paths if number in way.units),
            default=wish,
        )
        most = due[number] + max(0, room)
        for value in dict.fromkeys((min(wish, most), most)):
            if value > due[number]:
                yield value

    def _shifts(self, objective: ObjectiveRank) -> Iterator[dict[int, int]]:
        """All units of a node by one time, so that every sub-deadline there holds: no bound changes by it."""
        late: dict[str, int] = {}
        units = self.candidate.system.units
        for number, each in objective.analysis.delays.units.items():
            over = int(-(-each.end // 1)) - objective.due_ns[number]
            late[units[number].node] = max(late.get(units[number].node, 0), over)
        if any(late.values()):
            yield {number: due + late.get(units[number].node, 0) for number, due in objective.due_ns.items()}
        for node, over in late.items():
            if over > 0:
                yield {
                    number: due + (over if units[number].node == node else 0)
                    for number, due in objective.due_ns.items()
                }
