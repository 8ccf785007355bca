"""A window operator of a compiled plan: routes tuples and punctuation to its windows, by source.

`WindowState` holds the windows and the numbers that are settled of each source. The same operator of a newer plan
inherits it: both plans then report to one state, and windows that close are released under the newest plan.

Windows begin after the first heartbeat of every source. A heartbeat says that numbers below n were admitted: they are
not younger than this instant, so a window that begins later needs only n and later numbers.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

from node_agent.core import plan as plans
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.punctuation import Progress, Punctuation, Removal
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.gaps import Gaps
from node_agent.core.windows.intake import Intake, Limits
from node_agent.core.windows.open_windows import Command, Window
from node_agent.core.windows.results import Collecting
from node_agent.core.windows.sequence import NEVER
from node_agent.core.windows.window_kinds import count_windows, sized_windows, time_windows
from node_agent.core.windows.window_store import Deadline

AGELESS_NS = NEVER // 2  # no lower bound was known, on some node that the tuple came by
FAR_NS = 1 << 62  # after any instant
IDLE = 1 << 60  # the next window of an operator that has not heard of all its sources
MOST_BOUNDS = 64  # per source
LEAST_OPEN = 1024  # windows that may be open at least
FIRST = 1  # number of an incarnation whose heartbeats were not heard yet; what it has lower was admitted before


class OriginBounds:
    """Lower bounds by heartbeats of one source: numbers from n on are not older than an instant. Both ascend."""

    __slots__ = ("epoch", "row")

    def __init__(self) -> None:
        self.epoch = -1
        self.row: list[tuple[int, int]] = []

    def add(self, epoch: int, next_number: int, origin_ns: int) -> None:
        """By a heartbeat. Bounds of an incarnation end with it."""
        if epoch > self.epoch:
            self.epoch, self.row = epoch, []
        row = self.row
        if epoch < self.epoch or (row and (next_number < row[-1][0] or origin_ns <= row[-1][1])):
            return
        if row and row[-1][0] == next_number:
            row.pop()
        row.append((next_number, origin_ns))
        if len(row) > MOST_BOUNDS:
            del row[0]

    def event_ns(self, epoch: int, number: int, origin_ns: int) -> int:
        """A lower bound of an origin, not below what was promised of that number. Bounds of one instant that come on
        different ways, or at different times, differ by what clocks are known to; so one may contradict a promise."""
        if epoch == self.epoch and (known := bisect_right(self.row, (number, FAR_NS))):
            return max(origin_ns, self.row[known - 1][1])
        return origin_ns


class WindowState:
    """What goes on from plan to plan. newest: the operator that the windows belong to now. members: the
    operators that report to them, which may be in engines of their own."""

    __slots__ = (
        "at_ns", "base", "counts", "gaps", "intake", "members", "missing", "newest", "origin_bounds", "source",
        "stopped", "store", "why",
    )  # fmt: skip

    def __init__(self, newest: "WindowOperator", collecting: Collecting) -> None:
        self.newest, self.members = newest, [newest]
        self.intake = _intake(newest.window, collecting)
        self.store = self.intake.store
        if self.store.by_time:
            self.store.live.next = IDLE
        self.missing = set(range(len(newest.window.feeds)))  # sources that were not heard of yet
        self.origin_bounds = [OriginBounds() for _ in newest.window.feeds]
        for index, sequence in enumerate(self.intake.sources):
            sequence.queued = partial(self.queued, index)
        self.counts = dict.fromkeys(("opened", "closed", "abandoned", "skipped", "empty", "empty_within"), 0)
        self.gaps = Gaps()
        self.why = ""  # the last window that a tuple, or a user's function, has spoilt: what was wrong
        self.at_ns = 0
        self.source = self.base = -1  # as what windows are admitted, and what is added to their numbers
        self.stopped = False

    def queued(self, index: int, epoch: int) -> int | None:
        """The lowest number of a source that waits for a unit on its way to these windows, or runs, on this node."""
        numbers = (
            number
            for windowed in self.members
            if windowed.in_flight is not None
            for number in windowed.in_flight(windowed.window.feeds[index][0], epoch)
        )
        return min(numbers, default=None)

    def now(self, at_ns: int) -> int:
        """Instants of reports never decrease."""
        self.at_ns = max(self.at_ns, at_ns)
        return self.at_ns

    def count(self, end: str, cause: str, windows: int = 1) -> None:
        """Windows that gave no result, and why: `abandoned_removed`."""
        why = f"{end}_{cause}"
        self.counts[end] += windows
        self.counts[why] = self.counts.get(why, 0) + windows

    def closed(self, window: Window) -> None:
        """A window that gives its result; one without tuples is also `empty`, and `empty_within` as soon as it is known
        to lie within a feed."""
        self.counts["closed"] += 1
        self.counts["empty"] += not window.count
        self.counts["empty_within"] += self.gaps.closed(window.number, window.count)

    @property
    def lowest(self) -> int:
        """No window that has not ended has a lower number."""
        return min((*self.store.live.open, self.store.live.next))


class WindowOwner(Protocol):
    """Where a plan is loaded: windows enter the system there."""

    def end_windows(self, at_ns: int, windowed: "WindowOperator") -> None:
        """Something has happened to windows of an operator of a plan that is loaded here."""


class WindowOperator:
    """The operator under one plan. owner: where the plan is loaded; plans of one operator may be in engines of their
    own. in_flight: by source and incarnation, the numbers that wait for a unit on their way to the windows, or run."""

    __slots__ = ("begun", "in_flight", "index", "loaded", "name", "operator_id", "owner", "state", "window")

    def __init__(self, loaded: CompiledPlan, operator: plans.Operator, collecting: Collecting) -> None:
        assert operator.window is not None
        self.loaded, self.operator_id, self.window = loaded, operator.id, operator.window
        closing = (each.name for each in loaded.plan.operators if each.closes == operator.id)
        self.name = next(closing, operator.name)  # as the query has it
        self.index: Mapping[int, int] = {source: i for i, (source, _) in enumerate(self.window.feeds)}
        self.owner: WindowOwner | None = None
        self.in_flight: Callable[[int, int], Iterator[int]] | None = None
        self.begun: tuple[int, int] | None = None  # windows first..last that began before all sources were heard of
        self.state = WindowState(self, collecting)

    def attach(self, owner: WindowOwner, in_flight: Callable[[int, int], Iterator[int]]) -> None:
        """The plan is loaded there."""
        self.owner, self.in_flight = owner, in_flight

    def detach(self) -> None:
        """The plan is loaded nowhere any more; it still reports to the newest one's owner."""
        self.in_flight = None

    def release_resources(self) -> None:
        """Release all references to the windows, after the plan was unloaded."""
        if self.state.newest is self:
            self.state.intake.sources = ()
        del self.state

    def report(self, at_ns: int) -> None:
        """What has ended enters the system, under the newest plan that the operator is in and where that is loaded."""
        newest = self.news
        if newest is not None:
            assert newest.owner is not None
            newest.owner.end_windows(at_ns, newest)

    def on_punctuation(self, at_ns: int, lineage: Lineage, punctuation: Punctuation) -> None:
        """Apply punctuation."""
        if isinstance(punctuation, Removal):
            self.removed(at_ns, lineage, punctuation.first, punctuation.exact)
        elif isinstance(punctuation, Progress):
            self.progress(at_ns, lineage, punctuation.first)
        else:
            self.filtered(at_ns, lineage)

    def present(self, at_ns: int, lineage: Lineage, payload: object) -> None:
        """A tuple, as the work of an instance. Raises KeyError for one of a source that the plan does not tell of."""
        source, epoch, number, ordinal, origin_ns, _ = lineage
        state, index = self.state, self.index[source]
        if ordinal or origin_ns < AGELESS_NS:  # numbers do not tell several results apart; or it has no known place
            self.removed(at_ns, lineage, number)
        elif index not in state.missing and not state.stopped:
            event_ns = state.origin_bounds[index].event_ns(epoch, number, origin_ns)
            state.intake.present(index, state.now(at_ns), epoch, number, event_ns, payload)

    def filtered(self, at_ns: int, lineage: Lineage) -> None:
        """Apply an absence."""
        source, epoch, number, ordinal, origin_ns, _ = lineage
        index, state = self.index.get(source), self.state
        if ordinal or origin_ns < AGELESS_NS:
            self.removed(at_ns, lineage, number)
        elif index is not None and index not in state.missing and not state.stopped:
            event_ns = state.origin_bounds[index].event_ns(epoch, number, origin_ns)
            state.intake.filtered(index, state.now(at_ns), epoch, number, event_ns)

    def removed(self, at_ns: int, lineage: Lineage, first: int, exact: bool = False) -> None:
        """Numbers `first` to the lineage's were shed or lost."""
        source, epoch, last, _, least_ns, greatest_ns = lineage
        index, state = self.index.get(source), self.state
        if index is None or index in state.missing or state.stopped:
            return
        least_ns = state.origin_bounds[index].event_ns(epoch, first, least_ns)
        origins = least_ns, max(least_ns, state.origin_bounds[index].event_ns(epoch, last, greatest_ns))
        state.intake.lost(index, state.now(at_ns), epoch, (first, last), origins, exact)

    def progress(self, at_ns: int, lineage: Lineage, first: int) -> None:
        """A heartbeat: numbers below the lineage's were admitted."""
        source, epoch, next_number, _, origin_ns, _ = lineage
        index, state = self.index.get(source), self.state
        if index is None or state.stopped:
            return
        at_ns = state.now(at_ns)
        sequence = state.intake.sources[index]
        if index in state.missing:
            state.intake.begin(index, epoch, next_number)
            state.missing.remove(index)
            if not state.missing:
                self.begun = self._begin(at_ns, next_number)
        elif sequence.epoch is not None and epoch > sequence.epoch:
            sequence.first = first
        state.origin_bounds[index].add(epoch, next_number, origin_ns)
        state.intake.progress(index, at_ns, epoch, next_number, origin_ns)

    def _begin(self, at_ns: int, next_number: int) -> tuple[int, int] | None:
        """All sources were heard of: the first window is the next one. Returns those that are on the way."""
        live, grid = self.state.store.live, self.state.store.grid
        if self.state.store.by_time:
            live.next = grid.from_(at_ns + 1)
            first = grid.first(at_ns)
        else:
            first = grid.first(next_number)
        return (max(0, first), live.next - 1) if max(0, first) < live.next else None

    @property
    def news(self) -> "WindowOperator | None":
        """Of whose windows something has happened: the newest one. None: nothing has."""
        state = self.state
        if not state.store.live.commands and self.begun is None:
            return None
        if state.newest is not self:
            state.newest.begun, self.begun = self.begun, None
        return state.newest

    def take(self) -> tuple[list[Command], tuple[int, int] | None]:
        """What has happened since the last time, and windows first..last that began before all sources were heard
        of."""
        begun, self.begun = self.begun, None
        return self.state.intake.take(), begun

    def inherit(self, old: "WindowOperator") -> None:
        """The same operator of an older plan: its windows go on here."""
        self.state = state = old.state
        state.newest = self
        state.members.append(self)
        state.store.deadline = _deadline(self.window)
        for sequence in state.intake.sources:
            sequence.wait_ns = self.window.wait_ns

    def drains(self) -> None:
        """Nothing more is admitted under the plan, and no newer one goes on with its windows. Those that are open close
        when all has been heard of that they need, or end with the plan; no later one is expected, so none is given up
        for want of heartbeats."""
        if self.state.newest is self:
            self.state.store.deadline = None
            self.state.store.live.wait()

    def origin_ns(self, at_ns: int, number: int, window: Window | None) -> int:
        """Of the tuple that the window ends as; not in the future."""
        by_time, first, grid = self.state.store.by_time, self.window.first, self.state.store.grid
        if window is not None and window.count and (first or not by_time):
            return min(at_ns, window.oldest_ns if first else window.youngest_ns)
        if not by_time:
            return at_ns
        return min(at_ns, grid.end(number) if window is None else window.end)

    def bounds(self, number: int, window: Window | None) -> tuple[int, int]:
        """Where it begins and ends: instants, or numbers of its source."""
        if window is not None:
            return window.start - window.base, window.end - window.base
        grid = self.state.store.grid
        return grid.begin(number), grid.end(number)


def _deadline(window: plans.Window) -> Deadline | None:
    return Deadline(window.useful_ns, window.first) if window.useful_ns else None


def grid_of(window: plans.Window) -> Grid:
    """Where its windows are. By count window 0 begins with number 1, which is the first one of a source."""
    return Grid(window.length, window.hop, FIRST if window.kind == "count" else 0)


def _intake(window: plans.Window, collecting: Collecting) -> Intake:
    grid = grid_of(window)
    most = max(LEAST_OPEN, 4 * -(-window.length // window.hop))
    limits, deadline = Limits(window.lateness_ns, window.wait_ns, most, number=FIRST), _deadline(window)
    if window.kind == "count":
        return count_windows(grid, collecting.aggregate, limits, deadline)
    if window.kind == "sized":
        assert collecting.size is not None
        return sized_windows(grid, collecting.size, collecting.aggregate, limits, deadline)
    return time_windows(grid, collecting.aggregate, limits, len(window.feeds), deadline)


__all__ = ["WindowOperator", "WindowOwner", "WindowState", "grid_of"]
