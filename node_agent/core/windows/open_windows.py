"""The windows that are open: opening, closing, abandoning, each of them once.

Every number from the first one on is in just one of these: closed, abandoned (it was open), skipped (never opened). At
most `most` are open; what would be one more is skipped, because those that are open are nearer to their end. What
jumps over more than `most` windows at once skips the oldest of them.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush

from node_agent.core.windows.accumulator import Accumulator


class Cause(StrEnum):
    """Why a window gives no result."""

    REMOVED = "removed"  # a tuple that is or may be in it was shed or lost
    DEADLINE = "deadline"  # it cannot be in time any more
    CROWDED = "crowded"  # too many windows are open
    VALUE = "value"  # a tuple in it has no such field, or no number there
    MEMORY = "memory"  # its state has become too large
    ERROR = "error"  # a user's function failed


class UnfitError(ValueError):
    """A tuple or a state that a window cannot go on with."""

    def __init__(self, cause: Cause, why: str) -> None:
        super().__init__(why)
        self.cause = cause


@dataclass(slots=True, eq=False)
class Window:
    """[start, end) in positions (ns, or numbers); what its tuples were, and what its aggregate has of them. Windows by
    count hold the numbers [start - base, end - base) of the incarnation `epoch`."""

    number: int
    start: int
    end: int
    state: Accumulator
    count: int = 0
    oldest_ns: int = 0  # origin; of no meaning while count is 0
    youngest_ns: int = 0
    epoch: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A window begins."""

    number: int
    window: Window | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Closed:
    """A window is complete: what its accumulator gives is its exact result."""

    window: Window


@dataclass(frozen=True, slots=True)
class Abandoned:
    """An open window ends without a result."""

    number: int
    cause: Cause
    why: str = ""
    window: Window | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Windows first..last end without having been open."""

    first: int
    last: int
    cause: Cause


Command = Opened | Closed | Abandoned | Skipped


class OpenWindows:
    """`next`: the lowest window that has not begun. `commands`: what happened, until someone takes it."""

    def __init__(self, most: int, first: int) -> None:
        if most < 1:
            raise ValueError(f"at most {most} open windows are none")
        self.most, self.next = most, first
        self.open: dict[int, Window] = {}
        self.commands: list[Command] = []
        self._ends: list[tuple[int, int]] = []  # (end, number), also of windows that are gone
        self._due: list[tuple[int, int]] = []  # (instant, number), the same
        self._doomed: list[tuple[int, int]] = []  # numbers that must not open: first..last, disjoint, ascending

    def enter(self, window: Window, due_ns: int | None) -> None:
        """Window `next` begins; due_ns: it is of no use from then on."""
        number = window.number
        self.next = number + 1
        self.open[number] = window
        heappush(self._ends, (window.end, number))
        if due_ns is not None:
            self.expect(number, due_ns)
        self._tidy(self._ends)
        self.commands.append(Opened(number, window))

    def expect(self, number: int, due_ns: int) -> None:
        """The window is of no use from this instant on, or from an earlier one."""
        heappush(self._due, (due_ns, number))
        self._tidy(self._due)

    def wait(self) -> None:
        """No open window is of no use from some instant on any more."""
        self._due.clear()

    def _tidy(self, heap: list[tuple[int, int]]) -> None:
        """Forget what is gone, when it has become most of the heap."""
        if len(heap) > 4 * self.most + 16:
            best: dict[int, int] = {}
            for key, number in heap:
                if number in self.open:
                    best[number] = min(key, best.get(number, key))
            heap[:] = [(key, number) for number, key in best.items()]
            heapify(heap)

    def free(self, upto: int) -> bool:
        """Whether window `next` may open; windows below `upto` begin now. Those that may not are skipped."""
        while self.next < upto:
            doomed = self._doomed
            if doomed and doomed[0][0] <= self.next:
                last = doomed[0][1]
                if last >= self.next:
                    self.skip(min(last + 1, upto), Cause.REMOVED)
                if last < self.next:
                    doomed.pop(0)
            elif upto - self.next > self.most:
                self.skip(min(upto - self.most, doomed[0][0] if doomed else upto), Cause.CROWDED)
            elif len(self.open) >= self.most:
                self.skip(min(upto, doomed[0][0] if doomed else upto), Cause.CROWDED)
            else:
                return True
        return False

    def skip(self, upto: int, cause: Cause) -> None:
        """Windows next..upto - 1 never open."""
        if upto > self.next:
            self.commands.append(Skipped(self.next, upto - 1, cause))
            self.next = upto

    def close(self, watermark: int) -> None:
        """Everything that ends at or before it."""
        ends = self._ends
        while ends and ends[0][0] <= watermark:
            window = self.open.pop(heappop(ends)[1], None)
            if window is not None:
                self.commands.append(Closed(window))

    def abandon(self, number: int, cause: Cause, why: str = "") -> None:
        """An open window."""
        self.commands.append(Abandoned(number, cause, why, self.open.pop(number)))

    def clean(self, at_ns: int) -> None:
        """Abandon what is past its deadline."""
        due = self._due
        while due and due[0][0] <= at_ns:
            number = heappop(due)[1]
            if number in self.open:
                self.abandon(number, Cause.DEADLINE)

    @property
    def due_ns(self) -> int | None:
        """The earliest deadline of an open window."""
        due = self._due
        while due and due[0][1] not in self.open:
            heappop(due)
        return due[0][0] if due else None

    def doom(self, numbers: range, least: int, cause: Cause, why: str = "") -> None:
        """A tuple at position `least` or behind it is missing: open windows of these numbers that end behind it are
        abandoned, and those that have not begun will be skipped."""
        if not numbers:
            return
        oldest = next(iter(self.open), self.next)  # they open in the order of their numbers
        begun = range(max(numbers[0], oldest), min(numbers[-1] + 1, self.next))
        for number in sorted(self.open) if len(begun) > len(self.open) else begun:
            if number in begun and number in self.open and self.open[number].end > least:
                self.abandon(number, cause, why)
        if numbers[-1] >= self.next:
            self._mark(max(numbers[0], self.next), numbers[-1])

    def _mark(self, first: int, last: int) -> None:
        doomed = self._doomed
        low = bisect_left(doomed, (first, first))
        if low and doomed[low - 1][1] >= first - 1:
            low -= 1
        high = low
        while high < len(doomed) and doomed[high][0] <= last + 1:
            first, last = min(first, doomed[high][0]), max(last, doomed[high][1])
            high += 1
        doomed[low:high] = [(first, last)]
        if len(doomed) > self.most:  # too many to remember: what is between the last two goes as well
            doomed[-2:] = [(doomed[-2][0], doomed[-1][1])]

    @property
    def size(self) -> int:
        """Entries of all kinds, besides the states: at most 10 `most` + 32."""
        return len(self.open) + len(self._ends) + len(self._due) + len(self._doomed)


__all__ = ["Abandoned", "Cause", "Closed", "Command", "OpenWindows", "Opened", "Skipped", "UnfitError", "Window"]
