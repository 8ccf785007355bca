# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Queues of jobs: one in the order of arrival, and a heap by rank.

Uncompiled, both queues rest on what the standard library has in C: `deque`, and `heapq` with tuples. Compiled, a heap
is an array of what jobs are compared by, without a tuple for each, and a queue is a list with a first place. The order
is total, since no two jobs have the same number: both ways give the same one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import cast

from node_agent.core.model import Job

COMPILED = not __file__.endswith(".py")
ENTRY_BYTES = 32  # of a heap: four words
LEAST_ROOM = 4  # of a heap with a job
SPARE = 64  # empty places of a queue, from which on they are given up; fewer stay, since each change of a list costs


LEFT = Job()  # at a place whose job has left


HeapEntry = tuple[int, int, int, Job]  # rank, tie, number: tuples compare in C


def _new_array(room: int) -> memoryview[int]:
    """Of a heap with so much room."""
    return memoryview(bytearray(ENTRY_BYTES * (room + 1))).cast("q")


class JobHeap:
    """Jobs by rank, then tie, then arrival. entries: all of them where this is not compiled, always the same list;
    there the hot path of the engine pushes and pops them itself, without a call in between.

    Compiled, what jobs are compared by stands in one array, four words for each: rank, tie, number, and the job's place
    in a list. Children stand side by side, so putting one in its place reads a line of the processor's cache on each
    level, and no job. The first entry has number 1. Words behind the last entry name the free places.
    """

    __slots__ = ("_array", "_jobs", "_size", "_vacant", "entries")

    def __init__(self) -> None:
        self.entries: list[HeapEntry] = []
        self._jobs: list[Job] = []  # by place
        self._size = 0
        self._vacant = False  # the first entry's job was taken off, and none has its place yet
        self._array: memoryview[int] = None  # type: ignore[assignment]  # before the first job

    def __len__(self) -> int:
        return self._size - self._vacant if COMPILED else len(self.entries)

    def jobs(self) -> list[Job]:
        """All of them, in no order."""
        if not COMPILED:
            return [entry[3] for entry in self.entries]
        return [self._jobs[self._array[4 * at + 3]] for at in range(1 + self._vacant, self._size + 1)]

    def first(self) -> Job:
        """The one that comes before all others. There is one."""
        if not COMPILED:
            return self.entries[0][3]
        at = 1
        if self._vacant:
            at = 3 if self._size > 2 and self._precedes(3, 2) else 2
        if at > self._size:
            raise IndexError("no job")
        return self._jobs[self._array[4 * at + 3]]

    def push(self, job: Job) -> None:
        """One comes in."""
        if not COMPILED:
            heappush(self.entries, (job.rank, job.tie, job.number, job))
        elif self._vacant:
            self._vacant = False
            self._jobs[self._array[7]] = job
            self._down(1, job.rank, job.tie, job.number, self._array[7])
        else:
            self._up(job)

    def pop(self) -> Job:
        """Take the first off. There is one."""
        if not COMPILED:
            return heappop(self.entries)[3]
        first = self.take()
        self._fill()
        return first

    def take(self) -> Job:
        """`pop`, where another one comes in soon: compiled, that one gets its place, which is less work than to fill it
        with the last one and to find a place for the new one."""
        if not COMPILED:
            return heappop(self.entries)[3]
        if self._vacant:
            self._fill()
        if not self._size:
            raise IndexError("no job")
        place = self._array[7]
        first = self._jobs[place]
        self._jobs[place] = LEFT
        self._vacant = True
        return first

    def replace(self, job: Job) -> None:
        """Take the first off, as one comes in."""
        if COMPILED:
            if self._vacant:
                self._fill()
            if not self._size:
                raise IndexError("no job")
            self._jobs[self._array[7]] = job
            self._down(1, job.rank, job.tie, job.number, self._array[7])
        else:
            heapreplace(self.entries, (job.rank, job.tie, job.number, job))

    def clear(self) -> None:
        """Forget all of them."""
        self.entries.clear()
        self._jobs.clear()
        self._size, self._vacant = 0, False

    def keep(self, wanted: Callable[[Job], bool]) -> None:
        """Forget all that are not wanted."""
        if not COMPILED:
            self.entries[:] = [entry for entry in self.entries if wanted(entry[3])]
            heapify(self.entries)
            return
        if self._vacant:
            self._fill()
        found = 0
        for at in range(1, self._size + 1):
            place = self._array[4 * at + 3]
            if wanted(self._jobs[place]):
                found += 1
                self._swap(at, found)
            else:
                self._jobs[place] = LEFT
        self._size = found
        for at in range(found // 2, 0, -1):
            word = 4 * at
            self._down(at, self._array[word], self._array[word + 1], self._array[word + 2], self._array[word + 3])

    def _fill(self) -> None:
        """The first entry is vacant: the last one comes there, and goes down."""
        last, free = self._size, self._array[7]
        self._vacant, self._size = False, last - 1
        if last > 1:
            word = 4 * last
            place = self._array[word + 3]
            self._array[word + 3] = free
            self._down(1, self._array[word], self._array[word + 1], self._array[word + 2], place)
        if last >= SPARE and 4 * last <= len(self._jobs):
            self._move(2 * last)

    def _move(self, room: int) -> None:
        """Into an array with so much room, which is enough."""
        old, jobs, words = self._array, self._jobs, _new_array(room)
        self._jobs = [jobs[old[4 * at + 3]] for at in range(1, self._size + 1)]
        self._jobs += [LEFT] * (room - self._size)
        if self._size:
            last = 4 * (self._size + 1)
            words[:last] = old[:last]
        for at in range(1, room + 1):
            words[4 * at + 3] = at - 1
        self._array = words

    def _swap(self, at: int, other: int) -> None:
        """Two entries."""
        for word in range(4):
            one, two = 4 * at + word, 4 * other + word
            self._array[one], self._array[two] = self._array[two], self._array[one]

    def _precedes(self, at: int, other: int) -> bool:
        """Whether one entry comes before another one."""
        one, two = 4 * at, 4 * other
        if self._array[one] != self._array[two]:
            return self._array[one] < self._array[two]
        if self._array[one + 1] != self._array[two + 1]:
            return self._array[one + 1] < self._array[two + 1]
        return self._array[one + 2] < self._array[two + 2]

    def _up(self, job: Job) -> None:
        """Put it at the end, and those above that it comes before below."""
        at = self._size + 1
        if at > len(self._jobs):
            self._move(max(LEAST_ROOM, 2 * self._size))
        self._size = at
        rank, tie, number, place = job.rank, job.tie, job.number, self._array[4 * at + 3]
        self._jobs[place] = job
        while at > 1:
            above = at >> 1
            word, to = 4 * above, 4 * at
            if self._array[word] < rank:
                break
            if self._array[word] == rank:
                if self._array[word + 1] < tie:
                    break
                if self._array[word + 1] == tie and self._array[word + 2] < number:
                    break
            self._array[to], self._array[to + 1] = self._array[word], self._array[word + 1]
            self._array[to + 2], self._array[to + 3] = self._array[word + 2], self._array[word + 3]
            at = above
        self._set(at, rank, tie, number, place)

    def _down(self, at: int, rank: int, tie: int, number: int, place: int) -> None:
        """Put an entry there, which is free, and those below that come before it above."""
        size = self._size
        while True:
            below = 2 * at
            if below > size:
                break
            word, to = 4 * below, 4 * at
            if below < size:
                # An addition, not a branch: which child is less cannot be predicted. Whether they are equal can.
                less = self._array[word + 4] < self._array[word]
                if self._array[word + 4] == self._array[word]:
                    less = self._array[word + 5] < self._array[word + 1]
                    if self._array[word + 5] == self._array[word + 1]:
                        less = self._array[word + 6] < self._array[word + 2]
                below += less
                word += 4 * less
            if rank < self._array[word]:
                break
            if rank == self._array[word]:
                if tie < self._array[word + 1]:
                    break
                if tie == self._array[word + 1] and number < self._array[word + 2]:
                    break
            self._array[to], self._array[to + 1] = self._array[word], self._array[word + 1]
            self._array[to + 2], self._array[to + 3] = self._array[word + 2], self._array[word + 3]
            at = below
        self._set(at, rank, tie, number, place)

    def _set(self, at: int, rank: int, tie: int, number: int, place: int) -> None:
        word = 4 * at
        self._array[word], self._array[word + 1] = rank, tie
        self._array[word + 2], self._array[word + 3] = number, place


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
