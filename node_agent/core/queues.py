"""Operations on a unit's queue, in the order of arrival or by key: take or find its oldest jobs, or certain ones."""

from bisect import bisect_left
from collections.abc import Container
from operator import attrgetter
from typing import cast

from node_agent.core.job_queues import ArrivalQueue, KeyQueue
from node_agent.core.lineage import Lineage
from node_agent.core.model import Job, Queue

_number = attrgetter("number")
_age = attrgetter("release_ns", "number")


def in_order(queue: Queue) -> bool:
    """Whether jobs leave the queue in the order in which they came."""
    return not isinstance(queue, KeyQueue)


def by_age(queue: Queue) -> list[Job]:
    """All jobs, the oldest first. They stay."""
    return sorted(queue, key=_age)


def find(queue: Queue, first: int, last: int) -> Job | None:
    """The job whose arrival number is one of first..last, of which at most one is queued."""
    if not isinstance(queue, KeyQueue):
        at = bisect_left(queue, first, key=_number)
        return queue[at] if at < len(queue) and queue[at].number <= last else None
    return next((job for job in queue if first <= job.number <= last), None)


def take_oldest(queue: Queue, most: int) -> list[Job]:
    """Take the oldest jobs off, at most so many."""
    if not isinstance(queue, KeyQueue):
        return [queue.popleft() for _ in range(min(most, len(queue)))]
    taken = by_age(queue)[:most]
    if taken:
        last = _age(taken[-1])
        queue.keep(lambda job: _age(job) > last)
    return taken


def take_youngest(queue: Queue, most: int) -> list[Job]:
    """Take the youngest jobs off, at most so many; the oldest of them first."""
    if most <= 0:
        return []
    queued = sorted(queue, key=_number)
    kept = max(0, len(queued) - most)
    _put(queue, queued[:kept])
    return queued[kept:]


def take(queue: Queue, lineages: Container[Lineage]) -> list[Job]:
    """Take all jobs of these tuples off; the oldest first."""
    taken = sorted((job for job in queue if job.lineage in lineages), key=_age)
    if taken:
        _put(queue, [job for job in queue if job.lineage not in lineages])
    return taken


def take_all(queue: Queue) -> list[Job]:
    """Take everything off, in the order in which it would have run."""
    jobs = sorted(queue)
    queue.clear()
    return jobs


def withdraw(queue: Queue, job: Job) -> None:
    """Take that job off, wherever in the queue it is."""
    if not isinstance(queue, KeyQueue):
        del cast(ArrivalQueue, queue)[bisect_left(queue, job.number, key=_number)]
    else:
        queue.keep(lambda each: each is not job)


def _put(queue: Queue, jobs: list[Job]) -> None:
    queue.clear()
    for job in jobs:
        queue.append(job)


__all__ = [
    "by_age",
    "find",
    "in_order",
    "take",
    "take_all",
    "take_oldest",
    "take_youngest",
    "withdraw",
]
