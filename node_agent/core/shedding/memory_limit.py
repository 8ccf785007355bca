"""Memory limits: estimates the size of payloads, limits the queue of a unit, and tells when a node is full.

A queue's limit is for what its jobs occupy in this process: the payload as an object, which is several times as large
as it is encoded, and what is kept of the tuple beside it. Each payload is weighed as it is let in, and known by the
arrival number of its job, so that nothing has to be done as jobs leave.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from sys import getsizeof

from node_agent.core.model import Job, Queue
from node_agent.core.queues import in_order

JOB_BYTES = 430  # a job and its lineage, without the payload: measured, with CPython 3.11 on 64 bits
MESSAGE_BYTES, MESSAGE_FACTOR = 512, 2  # a protobuf message: at least, and per encoded byte
LOOKED_AT = 32  # elements of one container
DEEPEST = 8
FIXED = {float: 32, int: 32, bool: 0, type(None): 0}  # nothing is made for the last two

REFUSE, DROP_TAIL, FRONT = "refuse", "drop-tail", "front"


def size_estimate(payload: object) -> int:
    """Bytes that a payload occupies, about: of large containers a part is looked at."""
    return 0 if payload is None else _size_estimate(payload, DEEPEST)


def _size_estimate(value: object, depth: int) -> int:
    kind = value.__class__
    fixed = FIXED.get(kind)
    if fixed is not None:
        return fixed
    if kind is str or kind is bytes:
        return getsizeof(value) + 15 & ~15  # as they are allocated
    if value.__class__ is dict and len(value) <= LOOKED_AT and depth:
        total = getsizeof(value)
        for key, each in value.items():
            total += getsizeof(key) if key.__class__ is str else _size_estimate(key, depth - 1)
            fixed = FIXED.get(each.__class__)
            total += fixed if fixed is not None else _size_estimate(each, depth - 1)
        return total
    if not depth:
        return getsizeof(value)
    return _size_estimate_of_rare(value, depth)


def _size_estimate_of_rare(value: object, depth: int) -> int:
    if isinstance(value, list | tuple | set | frozenset | deque):
        return getsizeof(value) + _several(value if isinstance(value, list | tuple) else list(value), depth)
    if isinstance(value, Mapping):
        return getsizeof(value) + _several(list(value), depth) + _several(list(value.values()), depth)
    shown = getattr(value, "nbytes", None)  # of an array, a table: also where its memory is another's
    if shown.__class__ is int:
        return max(getsizeof(value), JOB_BYTES + int(shown or 0))
    encoded = getattr(value, "ByteSize", None)
    if encoded is not None:
        return MESSAGE_BYTES + MESSAGE_FACTOR * int(encoded())
    inside = getattr(value, "__dict__", None)
    slots = [getattr(value, name, None) for name in getattr(value.__class__, "__slots__", ()) if isinstance(name, str)]
    return getsizeof(value) + (_size_estimate(inside, depth - 1) if inside else 0) + _several(slots, depth)


def _several(values: Sequence[object], depth: int) -> int:
    count = len(values)
    if count <= LOOKED_AT:
        return sum(_size_estimate(each, depth - 1) for each in values)
    stride = count // LOOKED_AT
    looked_at = values[::stride]
    return sum(_size_estimate(each, depth - 1) for each in looked_at) * count // len(looked_at)


class QueueLimit:
    """The limit of one unit's queue: what it holds, by the jobs' arrival numbers.

    Where the queue is in the order of arrival its head says which jobs have left. Of a heap the numbers are compared
    with the queue's when an eighth of them has left at the latest; until then each counts for the mean.
    """

    __slots__ = ("_bytes", "_known", "_numbers", "front", "most_bytes")

    def __init__(self, most_bytes: int, front: bool) -> None:
        self.most_bytes, self.front = most_bytes, front
        self._numbers: deque[int] = deque()
        self._known: deque[int] = deque()  # bytes of each
        self._bytes = 0

    def held(self, queue: Queue) -> int:
        """Bytes in the queue."""
        numbers = self._numbers
        if not queue:
            numbers.clear()
            self._known.clear()
            self._bytes = 0
        elif in_order(queue):
            first = queue[0].number
            while numbers and numbers[0] < first:
                numbers.popleft()
                self._bytes -= self._known.popleft()
        elif len(numbers) > len(queue) + (len(queue) >> 3) + 16:
            left = {job.number for job in queue}
            kept = [each for each in zip(numbers, self._known, strict=True) if each[0] in left]
            self._numbers = deque(number for number, _ in kept)
            self._known = deque(size for _, size in kept)
            self._bytes = sum(self._known)
        elif len(numbers) > len(queue):
            return self._bytes * len(queue) // len(numbers)
        return self._bytes

    def fits(self, queue: Queue, size: int) -> bool:
        """Whether there is room for a job of so many bytes."""
        return self.held(queue) + size <= self.most_bytes

    def add(self, number: int, size: int) -> None:
        """A job has been let in."""
        self._numbers.append(number)
        self._known.append(size)
        self._bytes += size

    def withdrawn(self, job: Job) -> None:
        """A job has left from within the queue."""
        at = bisect_left(self._numbers, job.number)
        if at < len(self._numbers) and self._numbers[at] == job.number:
            self._bytes -= self._known[at]
            self._known[at] = 0


class Memory:
    """Whether the queues of an engine are full, by the mean of what comes in; for drivers that are no process of their
    own. jobs: how many are queued."""

    __slots__ = ("_jobs", "_weight_16", "most_bytes")

    def __init__(self, most_bytes: int, jobs: Callable[[], int]) -> None:
        self.most_bytes, self._jobs = most_bytes, jobs
        self._weight_16 = 0

    def came(self, payload: object) -> None:
        """A tuple is about to be admitted."""
        size = size_estimate(payload)
        self._weight_16 = self._weight_16 + size - (self._weight_16 >> 4) if self._weight_16 else size << 4

    def full(self) -> bool:
        """No more is to be let in."""
        return self._jobs() * (JOB_BYTES + (self._weight_16 >> 4)) >= self.most_bytes


__all__ = ["DROP_TAIL", "FRONT", "JOB_BYTES", "REFUSE", "Memory", "QueueLimit", "size_estimate"]
