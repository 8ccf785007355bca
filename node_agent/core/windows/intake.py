"""Where the reports of a window operator come in and its commands go out; what all kinds of windows have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from node_agent.core.windows.aggregates import Aggregate
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.open_windows import Cause, Command, OpenWindows, UnfitError, Window
from node_agent.core.windows.sequence import NEVER, Sequence
from node_agent.problems import UnusableValueError

FAILURES = (Exception, SystemExit)  # what a user's function may do to its window; its exit() ends no node


@dataclass(frozen=True, slots=True)
class Deadline:
    """A window is of no use `after_ns` after its end; `oldest`: after its oldest tuple (without one: after its end)."""

    after_ns: int
    oldest: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """lateness_ns: how much older than a lower number a tuple may be. wait_ns: how long a number may be missing.
    windows: how many may be open. ahead: reports per source that may wait for lower numbers. number: what an
    incarnation begins with."""

    lateness_ns: int
    wait_ns: int
    windows: int = 1024
    ahead: int = 4096
    number: int = 0


class Intake(ABC):
    """What the kinds have in common. Reports carry the instant they came at; it never decreases."""

    def __init__(
        self, grid: Grid, aggregate: Aggregate, sources: int, limits: Limits, deadline: Deadline | None, first: int
    ) -> None:
        if sources < 1:
            raise UnusableValueError("no_source", "a window without a source")
        if deadline is not None and deadline.after_ns <= 0:
            raise UnusableValueError("out_of_range", f"a deadline of {deadline.after_ns} ns")
        self.grid, self.aggregate, self.deadline = grid, aggregate, deadline
        self.live = OpenWindows(limits.windows, first)
        lateness_ns = limits.lateness_ns if self.by_time else None
        self.sources = tuple(
            Sequence(source, self, lateness_ns, limits.wait_ns, limits.ahead, limits.number)
            for source in range(sources)
        )
        self._at_ns = NEVER

    by_time = True

    def begin(self, source: int, epoch: int, number: int) -> None:
        """All that the source admits in this incarnation from that number on belongs here, and nothing did before.
        Without this call each window that begins before the first report was heard of is skipped."""
        self.sources[source].begin(epoch, number)

    def present(self, source: int, at_ns: int, epoch: int, number: int, origin_ns: int, payload: Any) -> None:
        """A tuple has come."""
        self._clean(at_ns)
        self.sources[source].present(at_ns, epoch, number, origin_ns, payload)

    def filtered(self, source: int, at_ns: int, epoch: int, number: int, origin_ns: int) -> None:
        """A tuple was admitted and did not pass a filter on its way."""
        self._clean(at_ns)
        self.sources[source].filtered(at_ns, epoch, number, origin_ns)

    def lost(
        self, source: int, at_ns: int, epoch: int, numbers: tuple[int, int], origins: tuple[int, int],
        exact: bool = False,
    ) -> None:  # fmt: skip
        """Numbers first..last were removed, with origins in least..greatest; exact: one of them has the greatest."""
        self._clean(at_ns)
        self.sources[source].lost(at_ns, epoch, *numbers, *origins, exact)

    def quiet(self, source: int, at_ns: int, epoch: int, upto: int, origin_ns: int) -> None:
        """Numbers below `upto` were admitted; what comes later is not older than this."""
        self._clean(at_ns)
        self.sources[source].quiet(at_ns, epoch, upto, origin_ns)

    def expire(self, at_ns: int) -> None:
        """Time has passed; of use at `due_ns` and after."""
        self._clean(at_ns)
        for sequence in self.sources:
            sequence.expire(at_ns)

    def take(self) -> list[Command]:
        """What happened since the last time, in order."""
        commands, self.live.commands = self.live.commands, []
        return commands

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do, if nothing comes before."""
        due = [self.live.due_ns, *(each.due_ns for each in self.sources)]
        return min((each for each in due if each is not None), default=None)

    def _clean(self, at_ns: int) -> None:
        self._at_ns = at_ns
        self.live.clean(at_ns)

    def _enter(self, number: int, start: int, end: int, base: int | None = None) -> None:
        due_ns = end + self.deadline.after_ns if self.deadline is not None and self.by_time else None
        try:
            state = self.aggregate.start()
            failed: BaseException | None = None
        except FAILURES as error:  # a user's function
            state, failed = None, error
        window = Window(number, start, end, state)
        if base is not None:
            window.epoch, window.base = self.sources[0].epoch or 0, base
        self.live.enter(window, due_ns)
        if failed is not None:
            self.live.abandon(number, Cause.ERROR, f"{type(failed).__name__}: {failed}")

    def _put(self, window: Window, source: int, origin_ns: int, payload: Any) -> None:
        try:
            self.aggregate.add(window.state, source, payload)
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
            self.live.clean(self._at_ns)

    @abstractmethod
    def add(self, source: int, number: int, origin_ns: int, payload: Any) -> None:
        """As the sequences tell it."""

    @abstractmethod
    def span(self, source: int, first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """As the sequences tell it."""

    @abstractmethod
    def advanced(self, source: int) -> None:
        """As the sequences tell it."""

    @abstractmethod
    def restarted(self, source: int, least_ns: int, greatest_ns: int) -> None:
        """As the sequences tell it."""


__all__ = ["FAILURES", "Deadline", "Intake", "Limits"]
