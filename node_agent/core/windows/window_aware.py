"""`window-aware` shedding: a window is admitted, whole, when it opens, or none of it is.

With a backlog of q tuples, a cost of c per tuple and lambda tuples per time, window [o, o + Z) is admitted iff what is
left of the work when it ends is done in time, q c + (lambda c - 1) Z <= L, and the queue holds it,
q + (lambda - 1/c) Z <= M. Where nothing waits a window may need luck: what comes may have to be less than expected, by
two standard deviations. A tuple is shed only when no admitted window of any grid needs it.

An admitted window is looked at again every period until it ends, with the rest of Z: where it would need more luck than
that it is given up, and so is one of which a tuple found the queue full. What waits for it alone is shed as well. So a
window that turns out too dear costs the node little, and measurements may be quick rather than exact.

[S] sheds by rate and has no such rule. Its margins of before, 0.9 L and 0.95 M, left out every window at a load at
which a window takes all of L, such as 2 with Z = L.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isqrt

from node_agent.core.windows.allocator import Grid
from node_agent.problems import UnusableValueError

MOST = 1024  # windows remembered beside those that overlap


@dataclass(slots=True)
class Load:
    """Measured: tuples queued, cost per tuple and time between arrivals in ns (0: not known yet).

    work_ns: what is queued costs; None: each the same. number_ns: mean time between admitted numbers, where filters are
    before the entry; 0: as between arrivals.
    """

    queued: int
    cost_ns: int
    gap_ns: int
    work_ns: int | None = None
    number_ns: int = 0

    @property
    def backlog_ns(self) -> int:
        """Work that is queued."""
        return self.queued * self.cost_ns if self.work_ns is None else self.work_ns


@dataclass(frozen=True, slots=True)
class Kind:
    """Windows over the stream: their grid, and how long after its end a window is of use (0: as long as it is).

    counted: the grid is of numbers, not of origins. oldest: latency_ns counts from where it begins.
    """

    grid: Grid
    latency_ns: int
    counted: bool = False
    oldest: bool = False

    def span_ns(self, load: Load, positions: int) -> int:
        """How long a stretch of the grid takes."""
        return positions * (load.number_ns or load.gap_ns) if self.counted else positions


class _Row:
    """Windows of one kind."""

    def __init__(self, kind: Kind, first: int) -> None:
        self.kind, self.next = kind, first
        self.admitted: set[int] = set()
        self.resting = False  # a run of windows goes
        self.busy_until = 0  # where the last admitted window ends
        self.opened = self.denied = self.given_up = 0

    def remembers_from(self, position: int, most: int) -> int:
        """Tuples older than that wait no more, as the youngest is at that position."""
        kind = self.kind
        return position - (most if kind.counted else kind.latency_ns) - 2 * kind.grid.length

    def begin(self, position: int) -> None:
        """Positions begin here, or begin anew."""
        self.next = self.kind.grid.first(position)
        self.admitted.clear()
        self.busy_until = self.kind.grid.begin(self.next)

    def decide(self, end: int, load: Load, most: int) -> None:
        """On windows next..upto - 1, which open now."""
        grid = self.kind.grid
        kept = -(-grid.length // grid.hop)
        if end - self.next > kept:  # all but those have passed without a tuple, and cost nothing
            passed = end - kept - self.next
            self.opened += passed
            self.next += passed
        for window in range(self.next, end):
            begin = grid.begin(window)
            fits = fit(load, self.kind, most, grid.length, by_luck=not load.queued)
            if self.resting and (begin < self.busy_until or not self._rested(load)):
                fits = False
            self.resting = not fits
            self.opened += 1
            if fits:
                self.admitted.add(window)
                self.busy_until = grid.end(window)
            else:
                self.denied += 1
        self.next = max(self.next, end)

    def _rested(self, load: Load) -> bool:
        """With strong overlap a new run begins when the backlog is nearly gone: a short run costs nearly as many tuples
        as a long one and gives fewer windows."""
        grid = self.kind.grid
        return grid.length < 2 * grid.hop or 4 * load.backlog_ns <= self.kind.span_ns(load, grid.hop)

    def give_up(self, windows: Iterable[int]) -> None:
        """These are not given any more, where they were admitted."""
        for window in windows:
            if window in self.admitted:
                self.admitted.discard(window)
                self.given_up += 1
                self.busy_until = self.kind.grid.end(max(self.admitted, default=self.next - 1))

    def hopeless(self, position: int, load: Load, most: int) -> list[int]:
        """Admitted windows that are open at that position and would need more than luck."""
        grid, kind = self.kind.grid, self.kind
        open_ = [window for window in grid.of(position) if window in self.admitted]
        return [each for each in open_ if not fit(load, kind, most, grid.end(each) - position, by_luck=True)]

    def forget(self, position: int) -> None:
        """Windows that end at or before it, which no punctuation to come can meet; the older half where there are too
        many (windows that no tuple came in): punctuation may then cost one of them."""
        grid = self.kind.grid
        first = grid.first(position)
        if len(self.admitted) > 2 * max(0, self.next - first) + 8:
            self.admitted = {window for window in self.admitted if window >= first}
        if len(self.admitted) > 4 * (grid.length // grid.hop) + MOST:
            self.admitted = set(sorted(self.admitted)[len(self.admitted) // 2 :])


def fit(load: Load, kind: Kind, most: int, positions: int, by_luck: bool) -> bool:
    """Whether a window is in time and has room if it takes in that much more of its grid. Without measurements: it is.
    by_luck: also if the rest has to be two standard deviations smaller than expected, as of a Poisson stream with
    exponential costs."""
    cost, gap = load.cost_ns, load.gap_ns
    if not cost or not gap:
        return load.queued <= most
    length, rest = kind.span_ns(load, kind.grid.length), kind.span_ns(load, positions)
    latency = kind.latency_ns or length
    if kind.oldest and kind.latency_ns:
        latency = max(0, latency - length)
    spare = isqrt(8 * rest // gap) if by_luck else 0
    left = load.backlog_ns * gap + rest * (cost - gap)  # q c + lambda c Z - Z, times gap
    room = load.queued * gap * cost + rest * (cost - gap)  # q + (lambda - 1/c) Z, times gap and c
    return left <= (latency + spare * cost) * gap and room <= (most + spare) * gap * cost


class WindowAware:
    """Over one stream, for all kinds of windows on it, by time or by count. most: tuples the queue holds. lateness_ns:
    decisions are remembered longer by that. first_ns: windows that begin before it are not given; None: as soon as
    tuples come.

    Where overlap is strong (Z >= 2 H) whole runs of windows go: what a single one of them needs is nearly all needed by
    its neighbours, so leaving it out sheds nothing. After a window that is denied, none is admitted that overlaps the
    last one that was, nor before the backlog is a quarter of a hop.
    """

    def __init__(self, kinds: Sequence[Kind], most: int, lateness_ns: int, first_ns: int | None = 0) -> None:
        if not kinds or most < 1 or lateness_ns < 0:
            raise UnusableValueError(
                "out_of_range", f"{len(kinds)} kinds of windows, a queue of {most}, lateness {lateness_ns} ns"
            )
        self._rows = [_Row(kind, kind.grid.from_(first_ns or 0)) for kind in kinds]
        self._most, self._lateness_ns = most, lateness_ns
        self._begun = first_ns is not None
        self._youngest_ns = self._settled_ns = first_ns or 0  # of all; of those up to the last that was kept

    def begin(self, position: int) -> None:
        """Positions begin here, or begin anew: what was decided before is forgotten."""
        for row in self._rows:
            row.begin(position)
        self._begun, self._youngest_ns, self._settled_ns = True, position, position

    def keeps(self, origin_ns: int, load: Load) -> bool:
        """Whether an arriving tuple is kept; windows that begin with it are decided now. Nothing is kept that the queue
        has no room for. By count: the number in place of the origin."""
        if not self._begun:
            self.begin(origin_ns)
        kept = False
        for row in self._rows:
            grid = row.kind.grid
            end = grid.last(origin_ns) + 1
            if end > row.next:
                row.decide(end, load, self._most)
                row.forget(row.remembers_from(self._settled_ns - self._lateness_ns, self._most))
            kept = kept or any(window in row.admitted for window in grid.of(origin_ns))
        self._youngest_ns = max(self._youngest_ns, origin_ns)
        if kept and load.queued >= self._most:  # the measurements were wrong: these windows are lost
            for row in self._rows:
                row.give_up(row.kind.grid.of(origin_ns))
            return False
        if kept:
            self._settled_ns = self._youngest_ns
        return kept

    def give_up(self, load: Load) -> bool:
        """Give up the windows that cannot be had any more. Returns whether there were any."""
        before = self.given_up
        for row in self._rows:
            row.give_up(row.hopeless(self._youngest_ns, load, self._most))
        return self.given_up > before

    def needs(self, origin_ns: int) -> bool:
        """Whether an admitted window needs a tuple that was let in."""
        return any(window in row.admitted for row in self._rows for window in row.kind.grid.of(origin_ns))

    @property
    def given_up(self) -> int:
        """Windows that were admitted, and are not given all the same."""
        return sum(row.given_up for row in self._rows)

    def free(self, least_ns: int, greatest_ns: int) -> bool:
        """Whether no admitted window meets that span: for `RemovedRanges`."""
        for row in self._rows:
            met = row.kind.grid.meets(least_ns, greatest_ns)
            if any(window in met for window in row.admitted):
                return False
        return True

    @property
    def opened(self) -> int:
        """Windows decided on so far."""
        return sum(row.opened for row in self._rows)

    @property
    def denied(self) -> int:
        """Of them, not admitted when they opened."""
        return sum(row.denied for row in self._rows)


__all__ = ["Kind", "Load", "WindowAware", "fit"]
