"""Worst-case response times of task units under non-preemptive EDF on sub-deadlines: sharper than the sub-deadlines.

For a job of unit i released a after the start t0 of its busy period (the last instant before its start at which
nothing with a deadline by its own, D = a + d_i, waits), all that runs before it is: one instance that began before
t0, from a unit with d_j > D; jobs of other units k released by min(D - d_k, s), s being its own start; the earlier
jobs of its own unit, released by a. So s is the least solution of

    s = max {C_j : d_j > D} + sum_k gamma_k(alpha_k(min(D - d_k, s))) + gamma_i(alpha_i(a) - 1)

and it ends by s + gamma_i(alpha_i(a)) - gamma_i(alpha_i(a) - 1): moving work from before its start into it can only
help, since s grows at least as fast as the work before it. The largest (end - a) over all a is the bound; only those
a need a look at which some alpha steps (between them nothing grows but a), and a <= s. Batches: every demand is
lengthened by b - 1 jobs, as in `demand`.

This is the analysis of George, Rivierre and Spuri (1996) for general arrival curves, in continuous time (a blocker
began an instant before). Reference: (C, T) = (79, 120), (11, 34), (1, 190) with d = 50, 100, 120 give 90, 91, 121 in
theory 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from coordinator.calculus.curves import Time, TooLongError
from coordinator.calculus.demand import MOST_ROUNDS, Load, Steps, Task, UnboundedError, load

MOST_LOOKS = 400_000


@dataclass(frozen=True)
class Moment:
    """Where a bound is reached: a job released `released` after its busy period began starts at `start` (from the same
    beginning), behind one instance of `blocked` ns that could not be stopped; `own`: it runs for that long itself.

    Where most inputs are dropped, the last of a burst does less than one that passes. The result is of one that passes;
    `moved` is what it does more, taken from what ran before: the sum is the same.
    """

    released: Time = 0
    start: Time = 0
    blocked: Time = 0
    own: Time = 0
    moved: Time = 0

    @property
    def blocking(self) -> Time:
        """What of the instance that could not be stopped is still to be waited for when the job comes."""
        return min(self.blocked, max(0, self.start - self.moved - self.released))


@dataclass(frozen=True)
class Response:
    """From the release to the end of a unit's instance, and to the end of each of its operators, at most; `moments`:
    where each of these is reached."""

    end: Time
    stages: tuple[Time, ...]
    moments: tuple[Moment, ...] = ()


def responses(tasks: Sequence[Task]) -> dict[str, Response]:
    """Of every unit (chores have none). Raises UnboundedError."""
    return load_responses(load(tasks))


def load_responses(loaded: Load) -> dict[str, Response]:
    """As `responses`, of a load that is written out already."""
    try:
        return {each.task.name: _response(each, loaded) for each in loaded.steps if not each.task.chore}
    except TooLongError as error:
        raise UnboundedError("busy_period_too_long", f"its busy period is too long to search ({error})") from error


def _response(own: Steps, loaded: Load) -> Response:
    unit = own.task
    others = [each for each in loaded.steps if each is not own]
    rivals = Rivals.of(others)
    prefixes = [unit.work(unit.batch, count) for count in range(1, len(unit.stages) + 1)]
    worst: list[Time] = [0] * len(prefixes)
    moments = [Moment()] * len(prefixes)
    looks = _looks(own, others, loaded.busy)
    blocked_before: Time | None = None
    start: Time = 0
    for a, at, blocked in blocked_looks(unit, looks, unit.deadline, others, loaded.busy):
        if loaded.busy - a <= worst[0]:
            break  # all ends with the busy period, so no later look finds more, of any stage
        due = a + unit.deadline
        jobs = own.count(a)
        before = unit.work(jobs - 1)
        if blocked != blocked_before:
            start, blocked_before = 0, blocked
        start = rivals.start(start, blocked + before, due)
        if start < at:
            continue  # nothing due by then would still be waiting at that time
        last = unit.work(min(jobs + unit.batch - 1, max(jobs, own.count(start)))) - before
        for stage, prefix in enumerate(prefixes):
            response = end_of(start, min(prefix, last), rivals.chores) - at
            if response > worst[stage]:
                passes = unit.work(1, stage + 1)
                moved = max(0, min(passes - last, before, start - at))
                worst[stage], moments[stage] = response, Moment(at, start, blocked, min(prefix, last) + moved, moved)
    return Response(worst[-1], tuple(worst), tuple(moments))


def ahead(loaded: Load, name: str, moment: Moment) -> list[tuple[str, int, Time]]:
    """Who runs before a job of that unit at that moment: unit, jobs, CPU time. With `blocked` and `moved` they sum up
    to `start`."""
    own = next(each for each in loaded.steps if each.task.name == name)
    due = moment.released + own.task.deadline
    found = []
    for each in loaded.steps:
        if each is own:
            jobs = own.count(moment.released) - 1
            found.append((name, jobs, own.task.work(jobs) - moment.moved))
        else:
            by = released_by(each, due, moment.start)
            found.append((each.task.name, each.count(by), each.at(by, moment.start)))
    return [one for one in found if one[2]]


def _looks(own: Steps, others: Sequence[Steps], busy: Time) -> list[Time]:
    """Releases worth a look, ascending."""
    shifted = (
        at + each.task.deadline - own.task.deadline for each in others for at in each.times if not each.task.chore
    )
    found = sorted({at for at in chain([0], own.times, shifted) if 0 <= at <= busy})
    if len(found) * (len(others) + 1) > MOST_LOOKS:
        raise TooLongError(f"{len(found)} releases to look at, of {len(others) + 1} kinds")
    return found


def blocked_looks(
    first: Task, looks: Sequence[Time], relative: Time, others: Sequence[Steps], busy: Time
) -> Iterator[tuple[Time, Time, Time]]:
    """Per look the release that counts jobs, the release itself, and what blocks a job that is due `relative` after it.

    A unit of `unblocked` that blocks has ended when the job is released, so it takes no more of the time before that
    than there is: of a release later than the longest other one that blocks, up to the next look. There the job's start
    moves with its release, or more, so the latest such release is the worst.
    """
    beside = Blockers.of(each for each in others if each.task.name not in first.unblocked)
    ended = Blockers.of(each for each in others if each.task.name in first.unblocked)
    for a, then in zip(looks, [*looks[1:], max(busy, *looks)] if looks else [], strict=True):
        free, most = beside.longest(a + relative), ended.longest(a + relative)
        if a <= free or most <= free:
            yield a, a, free
        if most > free and then > free:
            yield a, max(a, min(most, then)), min(most, then)


@dataclass(frozen=True)
class Blockers:
    """Deadlines and longest instances of units that are ever released, the longest first."""

    every: tuple[tuple[Time, Time], ...]

    @classmethod
    def of(cls, others: Iterable[Steps]) -> Blockers:
        """What of these may block."""
        released = ((each.task.deadline, each.task.longest) for each in others if each.counts[-1])
        return cls(tuple(sorted(released, key=lambda one: -one[1])))

    def longest(self, due: Time) -> Time:
        """The longest instance that is due later, and may have begun before."""
        return next((longest for deadline, longest in self.every if deadline > due), 0)


@dataclass(frozen=True)
class Rivals:
    """What else a node does, as looks at a release need it. `single`: units in batches of one."""

    single: tuple[Steps, ...]
    batches: tuple[Steps, ...]
    chores: tuple[Steps, ...]

    @classmethod
    def of(cls, others: Sequence[Steps]) -> Rivals:
        """Of all but the unit itself."""
        units = [each for each in others if not each.task.chore]
        return cls(
            tuple(each for each in units if each.task.batch == 1),
            tuple(each for each in units if each.task.batch > 1),
            tuple(each for each in others if each.task.chore),
        )

    def start(self, start: Time, fixed: Time, due: Time, more: Callable[[Time], Time] | None = None) -> Time:
        """The least solution for s, searched from a value that is not above it. `more`: what else runs before s."""
        growing = [each for each in self.chores if each.task.batch == 1]
        others = [*self.batches, *(each for each in self.chores if each.task.batch > 1)]
        later = []
        for each in self.single:
            by = due - each.task.deadline
            if by < 0:
                continue
            last = bisect_right(each.times, by)
            if last == 1 or each.times[last - 1] <= start:
                fixed += each.works[last - 1]  # all that goes first has come by then
            else:
                later.append((each.times, each.works, last))
        for _ in range(MOST_ROUNDS):
            grown = fixed
            for each in growing:
                grown += each.works[bisect_right(each.times, start) - 1]
            for times, works, last in later:
                grown += works[bisect_right(times, start, 0, last) - 1]
            for each in others:
                grown += each.at(released_by(each, due, start), start)
            if more is not None:
                grown += more(start)
            if grown <= start:
                return start
            start = grown
        raise TooLongError(f"no start found in {MOST_ROUNDS} rounds")


def released_by(each: Steps, due: Time, start: Time) -> Time:
    """Until when what is released runs before a job that is due then and starts at `start`: chores always do, also
    where the job is late."""
    return start if each.task.chore else min(due - each.task.deadline, start)


def end_of(start: Time, runs: Time, others: Sequence[Steps]) -> Time:
    """When that much has run since `start`: sockets may be drained between its operators."""
    chores = [each for each in others if each.task.chore]
    end = start + runs
    if not chores:
        return end
    done = end - sum(each.at(start, start) for each in chores)
    for _ in range(MOST_ROUNDS):
        grown = done + sum(each.at(end, end) for each in chores)
        if grown == end:
            return end
        end = grown
    raise TooLongError(f"no end found in {MOST_ROUNDS} rounds")


__all__ = [
    "Moment", "Response", "Rivals", "Task", "ahead", "blocked_looks", "end_of", "load_responses", "released_by",
    "responses",
]  # fmt: skip
