"""The work that arrives at a node, and the sharper test of theory 3 for non-preemptive EDF on sub-deadlines.

For every deadline u: sum_i gamma_i(alpha_i(u - d_i)) + max {C_j : d_j > u} <= u, with alpha_i the right limit.

Why it is enough. Let J be the first job to end after its deadline u, and t0 the last instant before u at which
nothing with a deadline by u waits. From t0 on the node runs jobs with deadlines by u only, but for one that began
before t0; that one was released before t0 and is due after u, so its relative deadline is above u - t0. All else was
released in the closed window [t0, u - d_i]. Deadlines inside a unit do not decrease, so a unit that blocks has no
demand by u: once u >= d_j the demand already holds C_j for any later deadlines.

Batches go beyond the theory's text. An instance whose head is due by u may take up to b - 1 jobs with it that are due
later, if they have arrived when it begins. Deadlines inside a unit do not decrease, so its next head is due later as
well: this happens once per unit. C_j is the longest uninterrupted run, a whole batch.

U < 1 comes first: without it no finite horizon is sound. Then no busy period is longer than the least L with L = max
C + sum gamma_i(alpha_i(L)), and a job with a deadline at or after L ends before it. So u < L is all that is searched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from coordinator.calculus.curves import Curve, Staircase, Time, TooLongError
from coordinator.calculus.selectivity import ONE, Selectivity
from coordinator.error_codes import Code
from coordinator.errors import Mistake, MistakeError

MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class Task:
    """A task unit on its node. `stages`: per operator its worst cost per tuple and the selectivity in front of it
    (ONE for the first); `deadline`: d_i, relative to the release; `batch`: the most jobs of one instance.

    A chore (`chore`) is work that no deadline orders, done between instances: draining a socket, updating a side input.
    It goes before everything (deadline 0), may delay a running instance, and blocks nobody beyond its own demand.
    `unblocked`: units of which no instance runs when a job of this one is released. `sums`: per operator what 1, 2, ...
    runs in a row take at most, where that is less than their costs, or nothing; more runs are so many of the longest
    row, and a rest.
    """

    name: str
    curve: Curve
    deadline: Time
    stages: tuple[tuple[Time, Selectivity], ...]
    batch: int = 1
    chore: bool = False
    unblocked: frozenset[str] = frozenset()
    sums: tuple[tuple[Time, ...], ...] = ()

    def __post_init__(self) -> None:
        if any(cost <= 0 for cost, _ in self.stages) or not self.stages:
            text = f"{self.name}: a cost of zero says that nothing runs"
            raise MistakeError("not_above_zero", text, "declare the worst CPU time per tuple")
        if self.batch < 1 or self.deadline < 0 or (not self.chore and self.deadline == 0):
            raise MistakeError(
                "not_above_zero",
                f"{self.name}: batches of {self.batch}, deadline {self.deadline}; both have to be above 0",
            )

    def work(self, jobs: int, stages: int | None = None) -> Time:
        """gamma: the most CPU time of that many consecutive jobs, up to and with stage number `stages`."""
        done: Time = 0
        if self.sums:
            for (cost, passes), row in zip(self.stages[:stages], self.sums, strict=False):
                jobs = passes(jobs)
                done += in_a_row(row, jobs) if row else cost * jobs
            return done
        for cost, passes in self.stages[:stages]:
            jobs = passes(jobs)
            done += cost * jobs
        return done

    @cached_property
    def longest(self) -> Time:
        """C_j: the longest uninterrupted run, a whole batch."""
        return self.work(self.batch)

    @property
    def utilisation(self) -> Fraction:
        """Share of the node, in the long run, in the worst case."""
        share, rate = Fraction(0), self.curve.rate
        for number, (cost, passes) in enumerate(self.stages):
            rate *= passes.rate
            row = self.sums[number] if self.sums else ()
            share += rate * (Fraction(row[-1]) / len(row) if row else cost)
        return share


def in_a_row(sums: Sequence[Time], runs: int) -> Time:
    """What so many runs take at most, of what 1, 2, ... take."""
    whole, rest = divmod(runs, len(sums))
    return whole * sums[-1] + (sums[rest - 1] if rest else 0)


def task(name: str, curve: Curve, deadline: Time, cost: Time, batch: int = 1) -> Task:
    """A unit of one operator."""
    return Task(name, curve, deadline, ((cost, ONE),), batch)


class UnboundedError(Exception):
    """No bound exists on this node; the sentence says why."""

    def __init__(self, code: Code, text: str) -> None:
        self.mistake = Mistake(code, text)
        super().__init__(text)


@dataclass(frozen=True)
class Steps:
    """A task's arrivals and work as steps: from times[i] on, counts[i] jobs and works[i] at most."""

    task: Task
    times: tuple[Time, ...]
    counts: tuple[int, ...]
    works: tuple[Time, ...]

    def at(self, t: Time, by: Time) -> Time:
        """The demand of what arrives in a closed window of length t <= by, 0 for t < 0, and what a last batch takes
        with it: up to b - 1 jobs more, that have arrived by `by`, when the last instance may begin."""
        if t < 0:
            return 0
        if self.task.batch == 1:
            return self.works[bisect_right(self.times, t) - 1]
        return self.task.work(min(self.count(t) + self.task.batch - 1, self.count(by)))

    def count(self, t: Time) -> int:
        """Jobs in a closed window of length t."""
        return self.counts[bisect_right(self.times, t) - 1] if t >= 0 else 0


@dataclass(frozen=True, eq=False)
class Load:
    """A node's tasks, written out up to the longest busy period."""

    steps: tuple[Steps, ...]
    busy: Time
    utilisation: Fraction

    def of_tasks(self, tasks: Sequence[Task]) -> Load:
        """Of the same tasks with other deadlines: these change no step."""
        steps = (replace(each, task=one) for each, one in zip(self.steps, tasks, strict=True))
        return Load(tuple(steps), self.busy, self.utilisation)


def load(tasks: Sequence[Task]) -> Load:
    """Raises UnboundedError where U >= 1 or the busy period is too long to search."""
    utilisation = sum((each.utilisation for each in tasks), Fraction(0))
    if utilisation >= 1:
        raise UnboundedError("overloaded", f"U >= 1: its work takes {float(utilisation):.4g} of it in the worst case")
    try:
        busy = _busy(tasks)
        return Load(tuple(_steps(each, busy) for each in tasks), busy, utilisation)
    except TooLongError as error:
        raise UnboundedError(
            "busy_period_too_long", f"its busy period is too long to search ({error}; U = {float(utilisation):.4g})"
        ) from error


def _busy(tasks: Sequence[Task]) -> Time:
    """The least L = max C + sum gamma(alpha(L)): it exists, since U < 1."""
    blocked = max((each.longest for each in tasks if not each.chore), default=0)
    length: Time = blocked
    for _ in range(MOST_ROUNDS):
        grown = blocked + sum(each.work(each.curve.count(length)) for each in tasks)
        if grown == length:
            return length
        length = grown
    raise TooLongError(f"no end found in {MOST_ROUNDS} rounds")


def _steps(each: Task, busy: Time) -> Steps:
    stairs = Staircase.of(each.curve, busy)
    return Steps(each, stairs.times, stairs.counts, tuple(each.work(n) for n in stairs.counts))


@dataclass(frozen=True)
class DemandTestResult:
    """The result of the demand test at one u: the demand by then, its terms by unit, and the unit that blocks.

    Where the test fails, u is the first that fails. Where it holds, u is the one with the least room.
    """

    holds: bool
    utilisation: Fraction
    u: Time = 0
    demand: Time = 0
    terms: tuple[tuple[str, int, Time], ...] = ()  # unit, jobs, CPU time
    blocker: tuple[str, Time] | None = None

    @property
    def excess(self) -> Time:
        """By how much the demand goes beyond u."""
        return self.demand - self.u

    @property
    def room(self) -> Time:
        """The least u - demand(u), below 0 where the test fails."""
        return self.u - self.demand


def test(tasks: Sequence[Task]) -> DemandTestResult:
    """The test of this module's head. Raises UnboundedError."""
    return test_load(load(tasks))


test.__test__ = False  # type: ignore[attr-defined]  # not one of pytest's


def test_load(loaded: Load) -> DemandTestResult:
    """As `test`, of a load that is written out already."""
    units = [each.task for each in loaded.steps if not each.task.chore and each.counts[-1]]  # that are ever released
    first = min((unit.deadline for unit in units), default=loaded.busy)
    looks = {unit.deadline for unit in units}
    for each in loaded.steps:
        looks |= {at + each.task.deadline for at in each.times}
        if each.task.batch > 1:  # what a last batch takes with it has arrived by u
            looks |= set(each.times)
    least: tuple[Time, Time, Time] | None = None  # room, u, demand
    for u in sorted(look for look in looks if first <= look < loaded.busy):
        blocker = max((unit for unit in units if unit.deadline > u), key=lambda unit: unit.longest, default=None)
        blocked = blocker.longest if blocker else 0
        demand = blocked + sum(each.at(u - each.task.deadline, u) for each in loaded.steps)
        if demand > u:
            return _at(loaded, units, False, u, demand)
        if least is None or u - demand < least[0]:
            least = (u - demand, u, demand)
    return _at(loaded, units, True, least[1], least[2]) if least else DemandTestResult(True, loaded.utilisation)


def _at(loaded: Load, units: Sequence[Task], holds: bool, u: Time, demand: Time) -> DemandTestResult:
    """The result at u, with the demand of every unit by then."""
    blocker = max((unit for unit in units if unit.deadline > u), key=lambda unit: unit.longest, default=None)
    terms = tuple(
        (each.task.name, each.count(u - each.task.deadline), each.at(u - each.task.deadline, u))
        for each in loaded.steps
        if u >= each.task.deadline
    )
    return DemandTestResult(
        holds, loaded.utilisation, u, demand, terms, (blocker.name, blocker.longest) if blocker else None
    )


test_load.__test__ = False  # type: ignore[attr-defined]
