# cython: boundscheck=False, wraparound=False
"""Queues of jobs: one in the order of arrival, and a heap by rank.

Uncompiled, both queues rest on what the standard library has in C: `deque`, and `heapq` with tuples. Compiled, jobs are
compared by their fields without a tuple for each, so a heap is a list of jobs, and a queue is a list with a first
place. The order is total, since no two jobs have the same number: both ways give the same one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import cast

from node_agent.core.model import Job, before

COMPILED = not __file__.endswith(".py")
SPARE = 64  # empty places of a queue, from which on they are given up; fewer stay, since each change of a list costs


LEFT = Job()  # at a place whose job has left


HeapEntry = tuple[int, int, int, Job]  # rank, tie, number: tuples compare in C


class JobHeap:
    """Jobs by rank, then tie, then arrival. entries: all of them where this is not compiled, always the same list;
    there the hot path of the engine pushes and pops them itself, without a call in between."""

    __slots__ = ("_jobs", "_size", "entries")

    def __init__(self) -> None:
        self.entries: list[HeapEntry] = []
        self._jobs: list[Job] = []  # and empty places behind them
        self._size = 0

    def __len__(self) -> int:
        return self._size if COMPILED else len(self.entries)

    def jobs(self) -> list[Job]:
        """All of them, in no order."""
        return self._jobs[: self._size] if COMPILED else [entry[3] for entry in self.entries]

    def first(self) -> Job:
        """The one that comes before all others. There is one."""
        if not COMPILED:
            return self.entries[0][3]
        if not self._size:
            raise IndexError("no job")
        return self._jobs[0]

    def push(self, job: Job) -> None:
        """One comes in."""
        if COMPILED:
            self._up(job)
        else:
            heappush(self.entries, (job.rank, job.tie, job.number, job))

    def pop(self) -> Job:
        """Take the first off. There is one."""
        if not COMPILED:
            return heappop(self.entries)[3]
        jobs, last = self._jobs, self._size - 1
        if last < 0:
            raise IndexError("no job")
        self._size = last
        first, job = jobs[0], jobs[last]
        jobs[last] = LEFT
        if last:
            self._down(job, 0)
            if last >= SPARE and 4 * last <= len(jobs):
                del jobs[2 * last :]
        return first

    def replace(self, job: Job) -> None:
        """Take the first off, as one comes in."""
        if COMPILED:
            if not self._size:
                raise IndexError("no job")
            self._down(job, 0)
        else:
            heapreplace(self.entries, (job.rank, job.tie, job.number, job))

    def clear(self) -> None:
        """Forget all of them."""
        self.entries.clear()
        self._jobs.clear()
        self._size = 0

    def keep(self, wanted: Callable[[Job], bool]) -> None:
        """Forget all that are not wanted."""
        if not COMPILED:
            self.entries[:] = [entry for entry in self.entries if wanted(entry[3])]
            heapify(self.entries)
            return
        jobs = self._jobs = [job for job in self.jobs() if wanted(job)]
        self._size = len(jobs)
        for at in range(len(jobs) // 2 - 1, -1, -1):  # as `heapify`, which leaves them in the same places
            self._down(jobs[at], at)

    def _up(self, job: Job) -> None:
        """Put it at the end, and those above that it comes before below."""
        jobs, at = self._jobs, self._size
        if at == len(jobs):
            jobs.append(job)
        self._size = at + 1
        while at > 0:
            above = (at - 1) >> 1
            parent = jobs[above]
            if not before(job, parent):
                break
            jobs[at] = parent
            at = above
        jobs[at] = job

    def _down(self, job: Job, at: int) -> None:
        """Put it at that place, which is free, and those below that come before it above."""
        jobs, size = self._jobs, self._size
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            child = jobs[below]
            if below + 1 < size and before(jobs[below + 1], child):
                below += 1
                child = jobs[below]
            if not before(child, job):
                break
            jobs[at] = child
            at = below
        jobs[at] = job


class KeyQueue:
    """The queue of a unit whose deadlines may decrease: jobs by rank. `[0]` is the head, which has the least."""

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap = JobHeap()

    def __len__(self) -> int:
        return len(self.heap)

    def __iter__(self) -> Iterator[Job]:
        """In no order."""
        return iter(self.heap.jobs())

    def __getitem__(self, index: int) -> Job:
        return self.heap.jobs()[index] if index else self.heap.first()

    def head(self) -> Job:
        """The one with the least rank. There is one."""
        return self.heap.first() if COMPILED else self.heap.entries[0][3]  # `first` without the call

    def append(self, job: Job) -> None:
        """A job comes in."""
        self.heap.push(job)

    def popleft(self) -> Job:
        """Take the head off."""
        return self.heap.pop()

    def clear(self) -> None:
        """Forget all jobs."""
        self.heap.clear()

    def keep(self, wanted: Callable[[Job], bool]) -> None:
        """Forget all that are not wanted."""
        self.heap.keep(wanted)


class QueuedJobs:
    """Goes through an arrival queue, which stays as it is."""

    __slots__ = ("_at", "_jobs")

    _jobs: list[Job]
    _at: int  # the next place

    def __iter__(self) -> QueuedJobs:
        return self

    def __next__(self) -> Job:
        if self._at >= len(self._jobs):
            raise StopIteration
        self._at += 1
        return self._jobs[self._at - 1]


def _through(jobs: list[Job], first: int) -> QueuedJobs:
    """From that place on."""
    made = QueuedJobs.__new__(QueuedJobs)  # compiled only, where it is quicker than a call
    made._jobs, made._at = jobs, first
    return made


class ArrivalQueue:
    """Jobs in the order of arrival: in compiled code instead of a deque, with what queues are asked."""

    __slots__ = ("_first", "_jobs")

    def __init__(self) -> None:
        self._jobs: list[Job] = []  # and empty places, those before `_first`
        self._first = 0

    def __len__(self) -> int:
        return len(self._jobs) - self._first

    def __iter__(self) -> Iterator[Job]:
        return _through(self._jobs, self._first)

    def __getitem__(self, index: int) -> Job:
        at = index + (len(self._jobs) if index < 0 else self._first)
        if not self._first <= at < len(self._jobs):
            raise IndexError("no such job")
        return self._jobs[at]

    def __delitem__(self, index: int) -> None:
        del self._jobs[index if index < 0 else self._first + index]
        if self._first == len(self._jobs):
            self.clear()

    def head(self) -> Job:
        """The one that came first. There is one."""
        if self._first == len(self._jobs):
            raise IndexError("no job")
        return self._jobs[self._first]

    def append(self, job: Job) -> None:
        """One comes in."""
        self._jobs.append(job)

    def popleft(self) -> Job:
        """Take the one off that came first. There is one."""
        jobs, first = self._jobs, self._first
        if first == len(jobs):
            raise IndexError("no job")
        job = jobs[first]
        jobs[first] = LEFT
        self._first = first = first + 1
        if first >= SPARE and 2 * first >= len(jobs):
            del jobs[:first]
            self._first = 0
        return job

    def leaves(self, job: Job) -> bool:
        """Take that job off, if it came first."""
        jobs, first = self._jobs, self._first
        if first == len(jobs) or jobs[first] is not job:
            return False
        self.popleft()
        return True

    def clear(self) -> None:
        """Forget all of them."""
        self._jobs.clear()
        self._first = 0


def in_order() -> ArrivalQueue:
    """A queue of a unit whose deadlines do not decrease. A deque has all that is asked of it uncompiled."""
    return ArrivalQueue() if COMPILED else cast(ArrivalQueue, deque())


__all__ = ["ArrivalQueue", "HeapEntry", "JobHeap", "KeyQueue", "in_order"]
