"""The windows of one operator and their states: what windows of all kinds have in common."""

from dataclasses import dataclass

from node_agent.core.windows.accumulator import Accumulator, Aggregate
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.open_windows import Cause, OpenWindows, UnfitError, Window
from node_agent.core.windows.sequence import NEVER
from node_agent.problems import UnusableValueError

FAILURES = (Exception, SystemExit)  # what a user's function may do to its window; its exit() ends no node


@dataclass(frozen=True, slots=True)
class Deadline:
    """A window is of no use `after_ns` after its end; `oldest`: after its oldest tuple (without one: after its end)."""

    after_ns: int
    oldest: bool = False


class WindowStore:
    """Opens windows with a new state and adds tuples to them; a window whose aggregate fails is abandoned. by_time:
    positions are origins, else numbers of a source. at_ns: when the last report came, which never decreases."""

    __slots__ = ("aggregate", "at_ns", "by_time", "deadline", "grid", "live")

    def __init__(self, grid: Grid, aggregate: Aggregate, deadline: Deadline | None, live: OpenWindows, by_time: bool):
        if deadline is not None and deadline.after_ns <= 0:
            raise UnusableValueError("out_of_range", f"a deadline of {deadline.after_ns} ns")
        self.grid, self.aggregate, self.deadline, self.live, self.by_time = grid, aggregate, deadline, live, by_time
        self.at_ns = NEVER

    def clean(self, at_ns: int) -> None:
        """End what is past its deadline, by time also what nothing has opened."""
        self.at_ns = at_ns
        self.live.clean(at_ns)
        if self.by_time and self.deadline is not None:
            self.live.skip(self.grid.first(at_ns - self.deadline.after_ns), Cause.DEADLINE)

    def enter(self, start: int, end: int, epoch: int = 0, base: int = 0) -> None:
        """Open the next window."""
        number = self.live.next
        due_ns = end + self.deadline.after_ns if self.deadline is not None and self.by_time else None
        try:
            state: Accumulator = self.aggregate.start()
            failed: BaseException | None = None
        except FAILURES as error:  # a user's function
            state, failed = _NeverStarted(), error
        self.live.enter(Window(number, start, end, state, epoch=epoch, base=base), due_ns)
        if failed is not None:
            self.live.abandon(number, Cause.ERROR, f"{type(failed).__name__}: {failed}")

    def put(self, window: Window, source: int, origin_ns: int, payload: object) -> None:
        """Add a tuple to an open window."""
        try:
            window.state.add(source, payload)
        except UnfitError as unfit:
            self.live.abandon(window.number, unfit.cause, str(unfit))
            return
        except FAILURES as error:  # a user's function
            self.live.abandon(window.number, Cause.ERROR, f"{type(error).__name__}: {error}")
            return
        window.count += 1
        if window.count == 1:
            window.oldest_ns = window.youngest_ns = origin_ns
        elif origin_ns < window.oldest_ns:
            window.oldest_ns = origin_ns
        elif origin_ns > window.youngest_ns:
            window.youngest_ns = origin_ns
            return
        else:
            return
        if self.deadline is not None and self.deadline.oldest:
            self.live.expect(window.number, origin_ns + self.deadline.after_ns)
            self.live.clean(self.at_ns)


class _NeverStarted:
    """Of a window that is abandoned as it opens: nothing is added to it."""

    def add(self, source: int, payload: object) -> None:
        raise AssertionError("a tuple for a window that never started")

    def result(self) -> dict[str, object]:
        raise AssertionError("the result of a window that never started")


__all__ = ["FAILURES", "Deadline", "WindowStore"]
