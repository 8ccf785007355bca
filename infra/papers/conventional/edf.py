"""EDF without preemption: Spuri's holistic analysis (1996) with the blocking of George, Rivierre and Spuri (1996).

A job that is due at D, behind q - 1 jobs of its own activity, starts at the least

    s = max {C_j : d_j > D} + sum over k of their work that is due by D and released in [0, s] + work(q - 1)

*Global clock* (Spuri's own): deadlines count from the event of the transaction, on whichever node. *Local clock*: from
the release of the activity, as on our nodes (the two names: Rivas, Gutierrez, Palencia and Gonzalez Harbour 2010). What
a job of k is dated by differs, and so does when its event was at the latest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from infra.papers.conventional.node_load import Arrivals, NodeLoad

Clock = Literal["local", "global"]


@dataclass(frozen=True)
class Edf:
    """`due_ns`: of every activity of the set, after its release (`local`) or after the event of its transaction, less
    the least time from that to its release (`global`)."""

    due_ns: tuple[int, ...]
    clock: Clock = "local"

    def longest_ns(self, load: NodeLoad, numbers: Sequence[int], at: int) -> int:
        """As of `Scheduling`."""
        dues_ns = [self.due_ns[number] for number in numbers]
        every = [_Rival.of(one, due, self.clock) for one, due in zip(load.arrivals, dues_ns, strict=True)]
        own, others = every[at], every[:at] + every[at + 1 :]
        looks = (_local_looks if self.clock == "local" else _global_looks)(own, others, load.busy_ns)
        worst_ns = 0
        starts_ns: dict[tuple[int, int], int] = {}  # with as many jobs and the same blocker it only grows
        for look in looks:
            if load.busy_ns - look.dated_ns + (own.arrivals.jitter_ns if self.clock == "local" else 0) <= worst_ns:
                break  # all ends with the busy period, so no later look finds more
            blockers = (each.arrivals.activity for each in others if each.due_ns > look.due_ns)
            blocked_ns = max((each.cost_ns for each in blockers), default=0)
            before_ns = blocked_ns + own.arrivals.work_ns[look.jobs - 1]
            start_ns = _start_ns(starts_ns.get((look.jobs, blocked_ns), 0), before_ns, look.due_ns, others)
            starts_ns[look.jobs, blocked_ns] = start_ns
            if start_ns >= look.dated_ns:  # else nothing due by then still waits at that time
                end_ns = start_ns + own.arrivals.work_ns[look.jobs] - own.arrivals.work_ns[look.jobs - 1]
                worst_ns = max(worst_ns, end_ns - look.event_ns)
        return worst_ns


@dataclass(frozen=True)
class _Rival:
    """`dated_ns`: what the deadline of each job counts from."""

    arrivals: Arrivals
    due_ns: int
    dated_ns: Sequence[int]

    @classmethod
    def of(cls, arrivals: Arrivals, due_ns: int, clock: Clock) -> _Rival:
        return cls(arrivals, due_ns, arrivals.released_ns if clock == "local" else arrivals.dated_ns)


@dataclass(frozen=True)
class _Look:
    """The last of `jobs` jobs: due at `due_ns`, its deadline counts from `dated_ns`, and its event is at `event_ns` or
    later."""

    due_ns: int
    jobs: int
    dated_ns: int
    event_ns: int


def _looks_ns(own: _Rival, others: Sequence[_Rival], least_ns: int, busy_ns: int) -> list[int]:
    """Where something steps: from one to the next nothing grows but the instant itself."""
    shifted = (at_ns + each.due_ns - own.due_ns for each in others for at_ns in each.dated_ns)
    return sorted({at_ns for at_ns in (*own.dated_ns, *shifted) if least_ns <= at_ns <= busy_ns})


def _local_looks(own: _Rival, others: Sequence[_Rival], busy_ns: int) -> Iterator[_Look]:
    """A job released at a: of q jobs, its event is at a - J or later, and where its stream allows, if that is later."""
    arrivals = own.arrivals
    for at_ns in _looks_ns(own, others, 0, busy_ns):
        apart = bisect_right(arrivals.dated_ns, at_ns - arrivals.jitter_ns)
        for jobs in range(max(1, apart), bisect_right(arrivals.released_ns, at_ns) + 1):
            event_ns = max(arrivals.dated_ns[jobs - 1], at_ns - arrivals.jitter_ns)
            yield _Look(at_ns + own.due_ns, jobs, at_ns, event_ns)


def _global_looks(own: _Rival, others: Sequence[_Rival], busy_ns: int) -> Iterator[_Look]:
    """A job whose event is at e, from -J on."""
    for event_ns in _looks_ns(own, others, -own.arrivals.jitter_ns, busy_ns):
        jobs = bisect_right(own.dated_ns, event_ns)
        if jobs:
            yield _Look(event_ns + own.due_ns, jobs, event_ns, event_ns)


def _start_ns(start_ns: int, before_ns: int, due_ns: int, others: Sequence[_Rival]) -> int:
    """The least solution, from a value that is not above it."""
    within = [(each, bisect_right(each.dated_ns, due_ns - each.due_ns)) for each in others]
    later = [(each.arrivals.released_ns, each.arrivals.work_ns, last) for each, last in within if last]
    while True:
        grown_ns = before_ns
        for released_ns, work_ns, last in later:
            grown_ns += work_ns[bisect_right(released_ns, start_ns, 0, last)]
        if grown_ns <= start_ns:
            return start_ns
        start_ns = grown_ns


__all__ = ["Clock", "Edf"]
