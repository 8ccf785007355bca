"""Fixed priorities without preemption: response times in the manner of Tindell and Clark (1994), for activities that
cannot be interrupted (Tindell, Burns and Wellings 1994; with all jobs of the busy period: Davis, Burns, Bril and
Lukkien 2007).

    w(q) = B + work(q - 1) + sum over higher priorities of their work released in [0, w(q)]
    R(q) = w(q) + own - (span(q) - J)        B = max C of lower priorities, begun just before
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.papers.conventional.node_load import Arrivals, NodeLoad


@dataclass(frozen=True)
class FixedPriorities:
    """`rank`: of every activity of the set, all different; the least goes first."""

    rank: tuple[int, ...]

    def longest_ns(self, load: NodeLoad, numbers: Sequence[int], at: int) -> int:
        """As of `Scheduling`."""
        own = self.rank[numbers[at]]
        arrivals = load.arrivals
        higher = [arrivals[i] for i, number in enumerate(numbers) if self.rank[number] < own]
        lower = [arrivals[i] for i, number in enumerate(numbers) if self.rank[number] > own]
        return response_ns(arrivals[at], higher, lower)


def response_ns(own: Arrivals, higher: Sequence[Arrivals], lower: Sequence[Arrivals]) -> int:
    """From the event of a job, moved by the least time until its release, to its end, at most."""
    blocked_ns = max((each.activity.cost_ns for each in lower), default=0)
    start_ns = worst_ns = 0
    for jobs in range(1, len(own.dated_ns) + 1):
        before_ns = blocked_ns + own.work_ns[jobs - 1]
        start_ns = _start_ns(max(start_ns, before_ns), before_ns, higher)
        if start_ns < own.dated_ns[jobs - 1]:
            break  # the busy period has ended before that event
        end_ns = start_ns + own.work_ns[jobs] - own.work_ns[jobs - 1]
        worst_ns = max(worst_ns, end_ns - own.dated_ns[jobs - 1])
    return worst_ns


def _start_ns(start_ns: int, before_ns: int, higher: Sequence[Arrivals]) -> int:
    """The least solution, from a value that is not above it. What comes at that very instant goes first."""
    while (grown_ns := before_ns + sum(each.done_by_ns(start_ns) for each in higher)) > start_ns:
        start_ns = grown_ns
    return start_ns


__all__ = ["FixedPriorities", "response_ns"]
