"""A node as small as it can be: jobs under non-preemptive EDF, with batches. It shares no code with the analysis or
the agent."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

Span = Callable[[int], int]


@dataclass(frozen=True)
class Job:
    """Released at an instant, of a unit, with the CPU time that it will take."""

    release: int
    unit: int
    cost: int


def run(jobs: Sequence[Job], deadlines: Sequence[int], batches: Sequence[int]) -> dict[int, int]:
    """The longest response of every unit. Arrivals of an instant are in before the node chooses; ties by release."""
    waiting: list[deque[tuple[int, int, Job]]] = [deque() for _ in deadlines]
    heads: list[tuple[int, int, int, int]] = []
    worst: dict[int, int] = {}
    arrivals, position, now = sorted(jobs, key=lambda job: job.release), 0, 0
    while position < len(arrivals) or heads:
        if not heads:
            now = max(now, arrivals[position].release)
        while position < len(arrivals) and arrivals[position].release <= now:
            job = arrivals[position]
            if not waiting[job.unit]:
                heappush(heads, (job.release + deadlines[job.unit], job.release, position, job.unit))
            waiting[job.unit].append((job.release, position, job))
            position += 1
        *_, unit = heappop(heads)
        queue = waiting[unit]
        taken = [queue.popleft()[2] for _ in range(min(batches[unit], len(queue)))]
        if queue:
            heappush(heads, (queue[0][0] + deadlines[unit], queue[0][0], queue[0][1], unit))
        now += sum(job.cost for job in taken)
        for job in taken:
            worst[unit] = max(worst.get(unit, 0), now - job.release)
    return worst


def instants(span: Span, until: int, slack: Callable[[], int]) -> list[int]:
    """Arrivals that keep a curve: each as soon as every span allows, and `slack()` later."""
    found: list[int] = []
    while True:
        soonest = max((at + span(len(found) - i + 1) for i, at in enumerate(found)), default=0)
        at = soonest + slack()
        if at > until or len(found) >= 120:
            return found
        found.append(at)


def passes(pairs: Sequence[tuple[int, int]], count: int, draw: Random | None) -> list[int]:
    """Outputs of `count` inputs in a row that keep every pair (k, m): as many as they may, or drawn."""
    found: list[int] = []
    for _ in range(count):
        room = max(0, min(m - sum(found[max(0, len(found) - k + 1) :]) for k, m in pairs))
        found.append(room if draw is None else draw.randint(0, room))
    return found
