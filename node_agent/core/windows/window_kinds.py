"""The aggregate operator of [S], completed: reports of tuples in, windows out.

At each report, in this order: windows past their deadline go, then number by number what the report settles; there,
removed ranges abandon what they meet, what has ended is closed, what begins is opened, and the tuple is added to the
windows that are open. A closed window holds exactly the tuples that were admitted, passed the filters, are not late and
lie in it. The cost of a tuple is that of the windows it is in.
"""

from collections.abc import Callable
from collections.abc import Sequence as Many
from typing import Any

from node_agent.core.windows.aggregates import Aggregate
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import FAILURES, Deadline, Intake, Limits
from node_agent.core.windows.open_windows import Cause
from node_agent.core.windows.sequence import NEVER


class TimeWindows(Intake):
    """Sliding and tumbling windows of origins, of one source or several. The first window is the first one that begins
    at or after `from_ns`."""

    def __init__(
        self, grid: Grid, aggregate: Aggregate, limits: Limits, sources: int = 1, deadline: Deadline | None = None,
        from_ns: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(grid, aggregate, sources, limits, deadline, grid.from_(from_ns))
        self.watermark_ns = NEVER

    def add(self, source: int, number: int, origin_ns: int, payload: object) -> None:
        """Close what ends with it, open what begins, add it to what is open."""
        self.advanced(source)
        end = self.grid.last(origin_ns) + 1
        if end > self.live.next:
            self._reach(end)
        live = self.live.open
        for window in [live[i] for i in self.grid.of(origin_ns) if i in live]:
            if origin_ns < window.end:
                self._put(window, source, origin_ns, payload)

    def _reach(self, end: int) -> None:
        while self.live.free(end):
            begin = self.grid.begin(self.live.next)
            self._enter(self.live.next, begin, begin + self.grid.length)

    def span(self, source: int, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """Every window that contains a position of it has no exact result."""
        self.live.doom(self.grid.meets(least_ns, greatest_ns), least_ns, Cause.REMOVED)

    def restarted(self, source: int, least_ns: int, greatest_ns: int) -> None:
        """What the incarnation before it may have admitted."""
        self.span(source, 0, 0, least_ns, greatest_ns)

    def advanced(self, source: int) -> None:
        """Close what has ended, and open what no tuple opens: empty windows have results as well."""
        watermark_ns = min(each.watermark_ns for each in self.sources)
        if watermark_ns > self.watermark_ns:
            self.watermark_ns = watermark_ns
            self.live.close(watermark_ns)
            end = self._begun(watermark_ns)
            if end > self.live.next:
                self._reach(end)
                self.live.close(watermark_ns)

    def _begun(self, watermark_ns: int) -> int:
        return self.grid.last(watermark_ns) + 1

    def _clean(self, at_ns: int) -> None:
        """Also what nothing has opened."""
        super()._clean(at_ns)
        if self.deadline is not None:
            self.live.skip(self.grid.first(at_ns - self.deadline.after_ns), Cause.DEADLINE)


class SizedWindows(TimeWindows):
    """Windows whose length the data tells: window i begins at its place on the grid, and the first tuple by number that
    is at or behind this place tells how long it is: `size(payload)` ns, from 1 to the grid's length. A tuple beyond the
    grid's length from there tells nothing: the window is as long as the grid says. One source.
    """

    def __init__(
        self, grid: Grid, size: Callable[[Any], int], aggregate: Aggregate, limits: Limits,
        deadline: Deadline | None = None, from_ns: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(grid, aggregate, limits, 1, deadline, from_ns)
        self._size = size
        self._first: tuple[int, int] = NEVER, 0  # origin and size of the tuple that opens windows

    def add(self, source: int, number: int, origin_ns: int, payload: object) -> None:
        """Ask it for a length where it is a window's first."""
        self.advanced(source)  # before it is the first of anything
        if self.grid.last(origin_ns) >= self.live.next:
            try:
                size = int(self._size(payload))
            except FAILURES:  # a user's function
                self.span(source, number, number, origin_ns, origin_ns)
                return
            self._first = origin_ns, max(1, min(size, self.grid.length))
        super().add(source, number, origin_ns, payload)

    def _reach(self, end: int) -> None:
        origin_ns, size = self._first
        while self.live.free(end):
            begin = self.grid.begin(self.live.next)
            contains_first = begin <= origin_ns < begin + self.grid.length
            self._enter(self.live.next, begin, begin + (size if contains_first else self.grid.length))

    def span(self, source: int, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """A removed tuple may be the first of every window that has not begun by then."""
        lowest = min(self.grid.first(least_ns), self.live.next)
        self.live.doom(range(lowest, self.grid.last(greatest_ns) + 1), least_ns, Cause.REMOVED)

    def _begun(self, watermark_ns: int) -> int:
        """Those that no tuple can open any more."""
        return self.grid.first(watermark_ns)


class CountWindows(Intake):
    """Windows of a source's admitted numbers: window i holds those of its numbers that pass the filters. One source. An
    incarnation goes on with the next window; what the one before left incomplete is abandoned. A deadline is from the
    oldest tuple, or from the youngest when the window closes."""

    by_time = False

    def __init__(self, grid: Grid, aggregate: Aggregate, limits: Limits, deadline: Deadline | None = None) -> None:
        super().__init__(grid, aggregate, 1, limits, deadline, grid.from_(limits.number))
        self._base = 0  # position = base + number

    def begin(self, source: int, epoch: int, number: int) -> None:
        """Windows that began at lower numbers are not given."""
        super().begin(source, epoch, number)
        self.live.next = self.grid.from_(number)

    def add(self, source: int, number: int, origin_ns: int, payload: object) -> None:
        """By its number."""
        position = self._base + number
        self._reach(self.grid.last(position) + 1)
        live = self.live.open
        for window in [live[i] for i in self.grid.of(position) if i in live]:
            self._put(window, source, origin_ns, payload)

    def _reach(self, end: int) -> None:
        while self.live.free(end):
            begin = self.grid.begin(self.live.next)
            self._enter(self.live.next, begin, begin + self.grid.length, self._base)

    def span(self, source: int, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """By the numbers; their origins do not matter."""
        least = self._base + first
        self.live.doom(self.grid.meets(least, self._base + last), least, Cause.REMOVED)

    def restarted(self, source: int, least_ns: int, greatest_ns: int) -> None:
        """Numbers begin anew: the next window begins with the first of them."""
        reached, begin = self._base + self.sources[0].next, self.grid.begin(self.live.next)
        self.live.doom(self.grid.meets(reached, begin - 1), reached, Cause.REMOVED)
        self._base = begin - self.sources[0].first

    def advanced(self, source: int) -> None:
        """Close what has all its numbers; open what has begun."""
        position = self._base + self.sources[0].next
        self._reach(self.grid.last(position - 1) + 1)
        if self.deadline is not None and not self.deadline.oldest:
            for number in self._complete(position):
                window = self.live.open[number]
                if window.count and window.youngest_ns + self.deadline.after_ns <= self._at_ns:
                    self.live.abandon(number, Cause.DEADLINE)
        self.live.close(position)

    def _complete(self, position: int) -> Many[int]:
        open_ = self.live.open
        return [i for i in self.grid.of(position - 1) if i in open_ and open_[i].end <= position]


__all__ = ["CountWindows", "SizedWindows", "TimeWindows"]
