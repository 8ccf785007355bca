"""Ends of windows (closed, abandoned, skipped) and their openings, as events for the engine to apply.

A closed window enters the system as a tuple of its operator's own source, so that from there on it is in the ledger, in
bounds and verdicts like any other; one that gives no result is admitted and shed. Nothing of this is on the path of a
tuple that leads to no window.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Unit
from node_agent.core.windows.gaps import Gaps
from node_agent.core.windows.open_windows import Abandoned, Closed, Command, Opened, Skipped, Window
from node_agent.core.windows.results import Complete
from node_agent.core.windows.window_operator import WindowOperator, WindowOwner
from protos.records import (
    MOST_SKIPPED,
    WINDOW_ABANDONED,
    WINDOW_CAUSES,
    WINDOW_CLOSED,
    WINDOW_OPENED,
    WINDOW_SKIPPED,
)  # fmt: skip

STOPPED = WINDOW_CAUSES.index("stopped")
NO_CAUSE = 0
InFlight = Callable[[Iterable[Unit], int, int], Iterator[int]]
"""Of a source and incarnation, the numbers that wait for one of these units, or run."""


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """What has become of a window, or of a row of them: a WINDOW record, but for its operator and instant.
    result: to be admitted under that lineage. shed: windows that are admitted and give no result."""

    number: int
    state: int
    start: int
    end: int
    cause: int = NO_CAUSE
    tuples: int = 0
    result: tuple[Lineage, Complete] | None = None
    shed: Iterable[Lineage] = ()


class WindowEnds:
    """The window operators of all plans of an engine. epoch: of this incarnation; windows are admitted under it.
    numbered: by source of windows: above all numbers that it had; engines of one node share it."""

    __slots__ = ("epoch", "numbered", "operators")

    def __init__(self, epoch: int, numbered: dict[int, int]) -> None:
        self.epoch, self.numbered = epoch, numbered
        self.operators: list[WindowOperator] = []

    def load(self, loaded: CompiledPlan, owner: WindowOwner, in_flight: InFlight) -> None:
        """A plan's window operators. owner: what ends enters the system there."""
        for windowed in loaded.windows:
            assert isinstance(windowed, WindowOperator)
            windowed.attach(owner, partial(in_flight, _on_the_way(windowed)))
            self.operators.append(windowed)

    def unload(self, loaded: CompiledPlan) -> Iterator[tuple[WindowOperator, WindowEvent]]:
        """Windows that no newer plan goes on with end here, and are in no ledger."""
        for windowed in self._of(loaded):
            state = windowed.state
            state.members.remove(windowed)
            if state.newest is not windowed:
                continue
            state.stopped = True
            for number, window in state.store.live.open.items():
                state.count("abandoned", "stopped")
                yield windowed, _event(windowed, number, WINDOW_ABANDONED, STOPPED, window)
            state.store.live.open.clear()

    def forget(self, loaded: CompiledPlan) -> None:
        """The plan has been unloaded: nothing is in flight to its windows."""
        for windowed in self._of(loaded):
            windowed.detach()
            self.operators.remove(windowed)

    def _of(self, loaded: CompiledPlan) -> list[WindowOperator]:
        return [windowed for windowed in self.operators if windowed.loaded is loaded]

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do, if nothing comes before; None: never."""
        due = [windowed.state.intake.due_ns for windowed in self.operators if windowed.state.newest is windowed]
        return min((each for each in due if each is not None), default=None)

    def expire(self, at_ns: int) -> Iterator[WindowOperator]:
        """What is past its deadline, and numbers that have been missing for too long: the operators that may have
        something to say then, each before the next one is looked at."""
        for windowed in self.operators:
            state = windowed.state
            if state.newest is windowed and not state.stopped:
                state.intake.expire(state.now(at_ns))
                yield windowed

    def take(self, at_ns: int, windowed: WindowOperator) -> list[WindowEvent]:
        """What has happened to the windows of an operator of a plan that is loaded here, since the last time."""
        commands, begun = windowed.take()
        self._number_from(windowed, commands)
        events = []
        if begun is not None:
            events.append(_event(windowed, begun[0], WINDOW_SKIPPED, NO_CAUSE, last=begun[1]))
        for command in commands:
            if isinstance(command, Opened):
                windowed.state.counts["opened"] += 1
                events.append(_event(windowed, command.number, WINDOW_OPENED, NO_CAUSE, command.window))
            elif isinstance(command, Closed):
                events.append(self._closed(at_ns, windowed, command.window))
            elif isinstance(command, Abandoned):
                events.append(self._abandoned(at_ns, windowed, command))
            else:
                events.append(self._skipped(at_ns, windowed, command))
        return events

    def _number_from(self, windowed: WindowOperator, commands: list[Command]) -> None:
        """Numbers of a source do not repeat from plan to plan."""
        state, source = windowed.state, windowed.window.source
        if state.source != source:
            lowest = min((state.lowest, *(_first(command) for command in commands)))
            state.source, state.base = source, max(0, self.numbered.get(source, 0) - lowest)
            state.gaps = Gaps()  # they are of one source

    def _closed(self, at_ns: int, windowed: WindowOperator, window: Window) -> WindowEvent:
        store = windowed.state.store
        windowed.state.closed(window)
        lineage = self._lineage(windowed, window.number, windowed.origin_ns(at_ns, window.number, window))
        result = lineage, Complete(window, store.by_time)
        return _event(windowed, window.number, WINDOW_CLOSED, NO_CAUSE, window, result=result)

    def _abandoned(self, at_ns: int, windowed: WindowOperator, command: Abandoned) -> WindowEvent:
        windowed.state.count("abandoned", command.cause)
        windowed.state.why = command.why or windowed.state.why
        cause = WINDOW_CAUSES.index(command.cause.value)
        shed = [self._gone(at_ns, windowed, command.number, command.window)]
        return _event(windowed, command.number, WINDOW_ABANDONED, cause, command.window, shed=shed)

    def _skipped(self, at_ns: int, windowed: WindowOperator, command: Skipped) -> WindowEvent:
        windowed.state.count("skipped", command.cause, command.last + 1 - command.first)
        cause = WINDOW_CAUSES.index(command.cause.value)
        numbers = range(command.first, min(command.last + 1, command.first + MOST_SKIPPED))
        shed = [self._gone(at_ns, windowed, number, None) for number in numbers]
        self._number(windowed, command.last)
        return _event(windowed, command.first, WINDOW_SKIPPED, cause, last=command.last, shed=shed)

    def _gone(self, at_ns: int, windowed: WindowOperator, number: int, window: Window | None) -> Lineage:
        return self._lineage(windowed, number, windowed.origin_ns(at_ns, number, window))

    def _lineage(self, windowed: WindowOperator, number: int, origin_ns: int) -> Lineage:
        return windowed.window.source, self.epoch, self._number(windowed, number), 0, origin_ns, origin_ns

    def _number(self, windowed: WindowOperator, number: int) -> int:
        """As which the window is admitted."""
        source, seq = windowed.window.source, number + windowed.state.base
        if seq >= self.numbered.get(source, 0):
            self.numbered[source] = seq + 1
        return seq


def _event(
    windowed: WindowOperator, number: int, what: int, cause: int, window: Window | None = None, last: int | None = None,
    result: tuple[Lineage, Complete] | None = None, shed: Iterable[Lineage] = (),
) -> WindowEvent:  # fmt: skip
    start, end = windowed.bounds(number, window)
    if last is not None:
        end = windowed.bounds(last, None)[1]
    base = max(0, windowed.state.base)
    held = last + base if last is not None else 0
    if window is not None and what != WINDOW_OPENED:
        held = window.count
    return WindowEvent(number + base, what, start, end, cause, held, result, shed)


def _on_the_way(windowed: WindowOperator) -> list[Unit]:
    """The units that lead to its windows. Some lead elsewhere as well."""
    units = windowed.loaded.units
    return [
        unit for unit in units if unit.collects is windowed or any(each.route.counted for each in unit.punctuated_exits)
    ]


def _first(command: Command) -> int:
    if isinstance(command, Closed):
        return command.window.number
    return command.first if isinstance(command, Skipped) else command.number


__all__ = ["WindowEnds", "WindowEvent"]
