"""The aggregate operator of [S], completed: reports of tuples in, windows out.

At each report, in this order: windows past their deadline go, then number by number what the report settles; there,
removed ranges abandon what they meet, what has ended is closed, what begins is opened, and the tuple is added to the
windows that are open. A closed window holds exactly the tuples that were admitted, passed the filters, are not late and
lie in it. The cost of a tuple is that of the windows it is in.
"""

from collections.abc import Callable
from collections.abc import Sequence as Many
from typing import Protocol

from node_agent.core.windows.accumulator import Aggregate
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Intake, Limits
from node_agent.core.windows.open_windows import Cause, OpenWindows
from node_agent.core.windows.sequence import NEVER, Sequence
from node_agent.core.windows.window_store import FAILURES, Deadline, WindowStore


def time_windows(
    grid: Grid, aggregate: Aggregate, limits: Limits, sources: int = 1, deadline: Deadline | None = None,
    from_ns: int = 0,
) -> Intake:  # fmt: skip
    """Sliding and tumbling windows of origins, of one source or several. The first window is the first one that begins
    at or after `from_ns`."""
    store = WindowStore(grid, aggregate, deadline, OpenWindows(limits.windows, grid.from_(from_ns)), by_time=True)
    return Intake(store, TimeWindows(store, GridLengths(grid), sources), sources, limits)


def sized_windows(
    grid: Grid, size: Callable[[object], int], aggregate: Aggregate, limits: Limits, deadline: Deadline | None = None,
    from_ns: int = 0,
) -> Intake:  # fmt: skip
    """Windows whose length the data tells. One source."""
    store = WindowStore(grid, aggregate, deadline, OpenWindows(limits.windows, grid.from_(from_ns)), by_time=True)
    return Intake(store, TimeWindows(store, TupleLengths(grid, size), 1), 1, limits)


def count_windows(grid: Grid, aggregate: Aggregate, limits: Limits, deadline: Deadline | None = None) -> Intake:
    """Windows of a source's admitted numbers. One source. A deadline is from the oldest tuple, or from the youngest
    when the window closes."""
    live = OpenWindows(limits.windows, grid.from_(limits.number))
    store = WindowStore(grid, aggregate, deadline, live, by_time=False)
    return Intake(store, CountWindows(store), 1, limits)


class Watermark:
    """The lowest watermark of all sources."""

    __slots__ = ("_of_sources", "lowest_ns")

    def __init__(self, sources: int) -> None:
        self._of_sources = [NEVER] * sources
        self.lowest_ns = NEVER

    def advance(self, sequence: Sequence) -> bool:
        """By what a source has settled; whether the lowest one has risen."""
        self._of_sources[sequence.source] = sequence.watermark_ns
        lowest_ns = min(self._of_sources)
        if lowest_ns <= self.lowest_ns:
            return False
        self.lowest_ns = lowest_ns
        return True


class Lengths(Protocol):
    """How long windows of origins are. by_tuple: as a tuple says, so no window opens before it is known."""

    by_tuple: bool

    def ask(self, origin_ns: int, payload: object) -> bool:
        """A tuple opens windows; whether their lengths are known by it."""

    def of(self, begin_ns: int) -> int:
        """Of the window that begins there."""


class GridLengths:
    """All windows are as long as the grid says."""

    __slots__ = ("_length",)

    by_tuple = False

    def __init__(self, grid: Grid) -> None:
        self._length = grid.length

    def ask(self, origin_ns: int, payload: object) -> bool:
        """Known without it."""
        return True

    def of(self, begin_ns: int) -> int:
        """The grid's."""
        return self._length


class TupleLengths:
    """Window i begins at its place on the grid, and the first tuple by number that is at or behind this place tells how
    long it is: `size(payload)` ns, from 1 to the grid's length. A tuple beyond the grid's length from there tells
    nothing: the window is as long as the grid says."""

    __slots__ = ("_first", "_length", "_size")

    by_tuple = True

    def __init__(self, grid: Grid, size: Callable[[object], int]) -> None:
        self._length, self._size = grid.length, size
        self._first: tuple[int, int] = NEVER, 0  # origin and size of the tuple that opens windows

    def ask(self, origin_ns: int, payload: object) -> bool:
        """False where the user's function fails."""
        try:
            size = int(self._size(payload))
        except FAILURES:
            return False
        self._first = origin_ns, max(1, min(size, self._length))
        return True

    def of(self, begin_ns: int) -> int:
        """The first tuple's size where the window may contain it."""
        origin_ns, size = self._first
        return size if begin_ns <= origin_ns < begin_ns + self._length else self._length


class TimeWindows:
    """Windows of origins: a source's watermark closes them and opens empty ones."""

    __slots__ = ("_lengths", "_store", "_watermark")

    def __init__(self, store: WindowStore, lengths: Lengths, sources: int) -> None:
        self._store, self._lengths, self._watermark = store, lengths, Watermark(sources)

    def begin(self, number: int) -> None:
        """Windows of origins do not depend on numbers."""

    def add(self, sequence: Sequence, number: int, origin_ns: int, payload: object) -> None:
        """Close what ends with it, open what begins, add it to what is open."""
        self.advanced(sequence)  # before it is the first of anything
        store = self._store
        end = store.grid.last(origin_ns) + 1
        if end > store.live.next:
            if not self._lengths.ask(origin_ns, payload):
                self.span(sequence, number, number, origin_ns, origin_ns)
                return
            self._reach(end)
        live = store.live.open
        for window in [live[i] for i in store.grid.of(origin_ns) if i in live]:
            if origin_ns < window.end:
                store.put(window, sequence.source, origin_ns, payload)

    def _reach(self, end: int) -> None:
        store = self._store
        while store.live.free(end):
            begin = store.grid.begin(store.live.next)
            store.enter(begin, begin + self._lengths.of(begin))

    def span(self, sequence: Sequence, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """Every window that contains a position of it has no exact result. Where tuples tell lengths, a removed one may
        be the first of every window that has not begun by then."""
        grid, live = self._store.grid, self._store.live
        lowest = grid.first(least_ns)
        if self._lengths.by_tuple:
            lowest = min(lowest, live.next)
        live.doom(range(lowest, grid.last(greatest_ns) + 1), least_ns, Cause.REMOVED)

    def restarted(self, sequence: Sequence, least_ns: int, greatest_ns: int) -> None:
        """What the incarnation before it may have admitted."""
        self.span(sequence, 0, 0, least_ns, greatest_ns)

    def advanced(self, sequence: Sequence) -> None:
        """Close what has ended, and open what no tuple opens, or can open any more: empty windows have results as
        well."""
        if self._watermark.advance(sequence):
            watermark_ns, grid, live = self._watermark.lowest_ns, self._store.grid, self._store.live
            live.close(watermark_ns)
            end = grid.first(watermark_ns) if self._lengths.by_tuple else grid.last(watermark_ns) + 1
            if end > live.next:
                self._reach(end)
                live.close(watermark_ns)


class CountWindows:
    """Window i holds those of its numbers that pass the filters. An incarnation goes on with the next window; what the
    one before left incomplete is abandoned."""

    __slots__ = ("_base", "_store")

    def __init__(self, store: WindowStore) -> None:
        self._store = store
        self._base = 0  # position = base + number

    def begin(self, number: int) -> None:
        """Windows that began at lower numbers are not given."""
        self._store.live.next = self._store.grid.from_(number)

    def add(self, sequence: Sequence, number: int, origin_ns: int, payload: object) -> None:
        """By its number."""
        store, position = self._store, self._base + number
        self._reach(store.grid.last(position) + 1, sequence)
        live = store.live.open
        for window in [live[i] for i in store.grid.of(position) if i in live]:
            store.put(window, sequence.source, origin_ns, payload)

    def _reach(self, end: int, sequence: Sequence) -> None:
        store = self._store
        while store.live.free(end):
            begin = store.grid.begin(store.live.next)
            store.enter(begin, begin + store.grid.length, sequence.epoch or 0, self._base)

    def span(self, sequence: Sequence, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """By the numbers; their origins do not matter."""
        least = self._base + first
        self._store.live.doom(self._store.grid.meets(least, self._base + last), least, Cause.REMOVED)

    def restarted(self, sequence: Sequence, least_ns: int, greatest_ns: int) -> None:
        """Numbers begin anew: the next window begins with the first of them."""
        grid, live = self._store.grid, self._store.live
        reached, begin = self._base + sequence.next, grid.begin(live.next)
        live.doom(grid.meets(reached, begin - 1), reached, Cause.REMOVED)
        self._base = begin - sequence.first

    def advanced(self, sequence: Sequence) -> None:
        """Close what has all its numbers; open what has begun."""
        store, position = self._store, self._base + sequence.next
        self._reach(store.grid.last(position - 1) + 1, sequence)
        if store.deadline is not None and not store.deadline.oldest:
            for number in self._complete(position):
                window = store.live.open[number]
                if window.count and window.youngest_ns + store.deadline.after_ns <= store.at_ns:
                    store.live.abandon(number, Cause.DEADLINE)
        store.live.close(position)

    def _complete(self, position: int) -> Many[int]:
        grid, open_ = self._store.grid, self._store.live.open
        return [i for i in grid.of(position - 1) if i in open_ and open_[i].end <= position]


__all__ = ["count_windows", "sized_windows", "time_windows"]
