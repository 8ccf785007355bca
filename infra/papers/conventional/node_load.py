"""What an analysis of one node works on: the activities there with the jitter of their releases.

Time 0 is the beginning of a busy period. Jobs of an activity with jitter J come most densely if the event of the first
is J before it and that of the q-th job no sooner than that allows: `dated_ns[q - 1]` = span(q) - J, and released then
or at 0. Events are moved by the least time until a release, so that jitter is all that is between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from infra.papers.conventional.transactions import Activity

MOST_JOBS = 1000  # of all activities of a node


class UnboundedError(Exception):
    """A node with U >= 1, or with more jobs in a busy period than are looked at."""


@dataclass(frozen=True)
class Arrivals:
    """Of an activity, as far as a busy period: `work_ns[q]`: of the first q jobs."""

    activity: Activity
    jitter_ns: int
    dated_ns: Sequence[int]
    released_ns: Sequence[int]
    work_ns: Sequence[int]

    @classmethod
    def until(cls, activity: Activity, jitter_ns: int, busy_ns: int) -> Arrivals:
        """Every job that may come in a busy period of that length."""
        dated: list[int] = []
        while (at_ns := activity.span_ns(len(dated) + 1) - jitter_ns) <= busy_ns:
            dated.append(at_ns)
        works = [activity.work_ns(jobs) for jobs in range(len(dated) + 1)]
        return cls(activity, jitter_ns, dated, [max(0, at_ns) for at_ns in dated], works)

    def done_by_ns(self, t_ns: int) -> int:
        """The work of all that may be released in [0, t]."""
        return self.work_ns[bisect_right(self.released_ns, t_ns)]


@dataclass(frozen=True)
class NodeLoad:
    """`busy_ns`: no busy period is longer."""

    arrivals: tuple[Arrivals, ...]
    busy_ns: int

    @classmethod
    def of(cls, activities: Sequence[Activity], jitter_ns: Sequence[int]) -> NodeLoad:
        """The least L = max C + sum of the work of all that may be released in [0, L]. Raises UnboundedError."""
        if sum(each.utilisation for each in activities) >= 1:
            raise UnboundedError("U >= 1")
        both = list(zip(activities, jitter_ns, strict=True))
        busy_ns = fixed = max(each.cost_ns for each in activities)
        while True:
            jobs = [_released(each, jitter, busy_ns) for each, jitter in both]
            if sum(jobs) > MOST_JOBS:
                raise UnboundedError("its busy period is too long")
            grown_ns = fixed + sum(each.work_ns(count) for each, count in zip(activities, jobs, strict=True))
            if grown_ns == busy_ns:
                break
            busy_ns = grown_ns
        return cls(tuple(Arrivals.until(each, jitter, busy_ns) for each, jitter in both), busy_ns)


def _released(activity: Activity, jitter_ns: int, t_ns: int) -> int:
    return -(-activity.event.count(t_ns + jitter_ns) // activity.one_of)


__all__ = ["Arrivals", "NodeLoad", "UnboundedError"]
