"""What windows mean to the engine: marks come to them, and a window that ends enters the system as a tuple.

A closed window is admitted as a tuple of its operator's own source, so that from there on it is in the ledger, in
bounds and verdicts like any other; one that gives no result is admitted and shed. Nothing of this is on the path of a
tuple that leads to no window.
"""

from collections.abc import Iterable
from typing import Any

from node_agent.core.facts import Facts
from node_agent.core.parts import ABSENT, Lineage, Loaded, Mark, Quiet, Removed, Route, Withheld
from node_agent.core.windowed import Windowed
from node_agent.core.windows.gaps import Gaps
from node_agent.core.windows.live import Abandoned, Closed, Command, Opened, Skipped, Window
from node_agent.core.windows.results import Complete
from protos.records import (
    ADMITTED,
    MOST_SKIPPED,
    NO_REF,
    POLICY_WINDOW,
    SHED,
    WINDOW,
    WINDOW_ABANDONED,
    WINDOW_CAUSES,
    WINDOW_CLOSED,
    WINDOW_OPENED,
    WINDOW_SKIPPED,
)  # fmt: skip

STOPPED = WINDOW_CAUSES.index("stopped")
NO_CAUSE = 0


class Closings:
    """The part of the engine that knows windows. epoch: of this incarnation; windows are admitted under it."""

    __slots__ = ("epoch", "facts", "loaded", "lost_by", "numbered", "shed_by", "windows")

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.epoch = 0
        self.loaded: list[Loaded] = []
        self.windows: list[Windowed] = []
        self.numbered: dict[int, int] = {}  # by source of windows: above all numbers that it had
        self.shed_by: dict[int, int] = {}  # tuples, windows and results that were shed, by the number of the policy
        self.lost_by: dict[int, int] = {}  # tuples, by the number of the cause

    def admit(
        self, at_ns: int, loaded: Loaded, source: int, lineage: Lineage, payload: Any, size: int, sent_ns: int = 0
    ) -> None:
        """A tuple enters the system here."""
        raise NotImplementedError

    def _absent(self, at_ns: int, route: Route, lineage: Lineage, mark: Mark = ABSENT) -> None:
        raise NotImplementedError

    def _under_way(self, windowed: Windowed, source: int, epoch: int) -> Iterable[int]:
        """Numbers of a source that wait for a unit on their way to windows, or run; the lowest among them."""
        raise NotImplementedError

    def _count_shed(self, policy: int, tuples: int = 1) -> None:
        """Whoever writes SHED facts says so here."""
        self.shed_by[policy] = self.shed_by.get(policy, 0) + tuples

    def _count_lost(self, cause: int) -> None:
        self.lost_by[cause] = self.lost_by.get(cause, 0) + 1

    # -- heartbeats, and what was shed before it went anywhere

    def beat(self, at_ns: int, loaded: Loaded, source: int, epoch: int, upto: int, first: int, origin_ns: int) -> None:
        """Of a source that leads to windows: its numbers below `upto` were admitted (`first`: the lowest of them under
        this plan, or `upto`), and what comes is not older than origin_ns, an instant on this node's clock."""
        route = loaded.source_routes[source]
        if not route.counted:
            return
        if route.withheld is not None:
            self._hand_on(at_ns, route)
        self._absent(at_ns, route, (source, epoch, upto, 0, origin_ns, max(origin_ns, at_ns)), Quiet(first))

    def _withhold(self, at_ns: int, route: Route, lineage: Lineage) -> None:
        """An arrival was shed at once: its mark waits for the next one that is not, or for a heartbeat, so that a run
        of them is one mark."""
        if not route.counted:
            return
        if route.withheld is not None and not route.withheld.add(lineage):
            self._hand_on(at_ns, route)
        if route.withheld is None:
            route.withheld = Withheld(lineage)

    def _hand_on(self, at_ns: int, route: Route) -> None:
        """The removed range of a source's arrivals goes its way, before what comes next."""
        withheld, route.withheld = route.withheld, None
        if withheld is not None:
            self._absent(at_ns, route, withheld.lineage, Removed(withheld.first, withheld.exact))

    # -- windows

    def _tell(self, at_ns: int, windowed: Windowed, lineage: Lineage, mark: Mark) -> None:
        """A mark has come to a window operator."""
        if isinstance(mark, Removed):
            windowed.removed(at_ns, lineage, mark.first, mark.exact)
        elif isinstance(mark, Quiet):
            windowed.quiet(at_ns, lineage, mark.first)
        else:
            windowed.filtered(at_ns, lineage)
        release(at_ns, windowed)

    @property
    def window_due_ns(self) -> int | None:
        """When `expire` has something to do for windows, if nothing comes before; None: never."""
        due = [windowed.state.intake.due_ns for windowed in self.windows if windowed.state.newest is windowed]
        return min((each for each in due if each is not None), default=None)

    def _expire_windows(self, at_ns: int) -> None:
        for windowed in self.windows:
            state = windowed.state
            if state.newest is windowed and not state.stopped:
                state.intake.expire(state.now(at_ns))
                release(at_ns, windowed)

    def _add_windows(self, loaded: Loaded) -> None:
        for windowed in loaded.windows:
            windowed.engine = self
            self.windows.append(windowed)

    def _stop_windows(self, at_ns: int, loaded: Loaded) -> None:
        """The plan is unloaded: windows that no newer plan goes on with end here, and are in no ledger."""
        for windowed in loaded.windows:
            self.windows.remove(windowed)
            state = windowed.state
            state.members.remove(windowed)
            if state.newest is not windowed:
                continue
            state.stopped = True
            for number, window in state.intake.live.open.items():
                state.count("abandoned", "stopped")
                self._write_window(at_ns, windowed, number, WINDOW_ABANDONED, STOPPED, window)
            state.intake.live.open.clear()

    def _ended(self, at_ns: int, windowed: Windowed, commands: list[Command]) -> None:
        """What has happened to the windows of an operator of a plan that is loaded here."""
        state, source = windowed.state, windowed.window.source
        if state.source != source:  # numbers of a source do not repeat, whatever plans there were
            lowest = min((state.lowest, *(_first(command) for command in commands)))
            state.source, state.base = source, max(0, self.numbered.get(source, 0) - lowest)
            state.gaps = Gaps()  # they are of one source
        if windowed.begun is not None:
            begun, windowed.begun = windowed.begun, None
            self._write_window(at_ns, windowed, begun[0], WINDOW_SKIPPED, NO_CAUSE, last=begun[1])
        for command in commands:
            if isinstance(command, Opened):
                state.counts["opened"] += 1
                self._write_window(at_ns, windowed, command.number, WINDOW_OPENED, NO_CAUSE, command.window)
            elif isinstance(command, Closed):
                self._closed(at_ns, windowed, command.window)
            elif isinstance(command, Abandoned):
                self._abandoned(at_ns, windowed, command)
            elif isinstance(command, Skipped):
                self._skipped(at_ns, windowed, command)

    def _closed(self, at_ns: int, windowed: Windowed, window: Window) -> None:
        state = windowed.state
        state.closed(window)
        self._write_window(at_ns, windowed, window.number, WINDOW_CLOSED, NO_CAUSE, window)
        lineage = self._lineage(windowed, window.number, windowed.origin_ns(at_ns, window.number, window))
        complete = Complete(window, state.intake.aggregate, state.intake.by_time)
        self.admit(at_ns, windowed.loaded, lineage[0], lineage, complete, 0)

    def _abandoned(self, at_ns: int, windowed: Windowed, command: Abandoned) -> None:
        windowed.state.count("abandoned", command.cause)
        windowed.state.why = command.why or windowed.state.why
        cause = WINDOW_CAUSES.index(command.cause.value)
        self._write_window(at_ns, windowed, command.number, WINDOW_ABANDONED, cause, command.window)
        self._shed_window(at_ns, windowed, command.number, command.window)

    def _skipped(self, at_ns: int, windowed: Windowed, command: Skipped) -> None:
        windowed.state.count("skipped", command.cause, command.last + 1 - command.first)
        cause = WINDOW_CAUSES.index(command.cause.value)
        self._write_window(at_ns, windowed, command.first, WINDOW_SKIPPED, cause, last=command.last)
        for number in range(command.first, min(command.last + 1, command.first + MOST_SKIPPED)):
            self._shed_window(at_ns, windowed, number, None)
        self._number(windowed, command.last)

    def _shed_window(self, at_ns: int, windowed: Windowed, number: int, window: Window | None) -> None:
        """It is admitted and gives no result."""
        loaded, flags, write = windowed.loaded, windowed.loaded.flags, self.facts.write
        origin_ns = windowed.origin_ns(at_ns, number, window)
        source, epoch, seq, _, _, _ = self._lineage(windowed, number, origin_ns)
        self.facts.admitted += 1
        write(ADMITTED, flags, source, source, epoch, seq, at_ns, origin_ns, origin_ns, 0, 0, 0)
        write(SHED, flags, NO_REF, source, epoch, seq, at_ns, POLICY_WINDOW, 0, loaded.source_routes[source].stream)
        self._count_shed(POLICY_WINDOW)

    def _lineage(self, windowed: Windowed, number: int, origin_ns: int) -> Lineage:
        return windowed.window.source, self.epoch, self._number(windowed, number), 0, origin_ns, origin_ns

    def _number(self, windowed: Windowed, number: int) -> int:
        """As which the window is admitted."""
        source, seq = windowed.window.source, number + windowed.state.base
        if seq >= self.numbered.get(source, 0):
            self.numbered[source] = seq + 1
        return seq

    def _write_window(
        self, at_ns: int, windowed: Windowed, number: int, what: int, cause: int, window: Window | None = None,
        last: int | None = None,
    ) -> None:  # fmt: skip
        start, end = windowed.bounds(number, window)
        if last is not None:
            end = windowed.bounds(last, None)[1]
        base = max(0, windowed.state.base)
        held = last + base if last is not None else 0
        if window is not None and what != WINDOW_OPENED:
            held = window.count
        self.facts.write(
            WINDOW, windowed.loaded.flags, windowed.operator_id, windowed.window.source, self.epoch, number + base,
            at_ns, what, start, end, cause, held,
        )  # fmt: skip


def release(at_ns: int, windowed: Windowed) -> None:
    """What has ended enters the system, under the newest plan that the operator is in and where this one is loaded."""
    state = windowed.state
    if state.intake.live.commands or windowed.begun is not None:
        newest = state.newest
        if newest is not windowed:
            newest.begun, windowed.begun = windowed.begun, None
        assert newest.engine is not None
        newest.engine._ended(at_ns, newest, newest.take())


def _first(command: Command) -> int:
    return command.window.number if isinstance(command, Closed) else _number_of(command)


def _number_of(command: Opened | Abandoned | Skipped) -> int:
    return command.first if isinstance(command, Skipped) else command.number


__all__ = ["Closings", "release"]
