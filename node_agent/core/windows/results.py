"""What a window operator is made with, and what its closed windows become: tuples that the operator behind it turns
into results."""

from collections.abc import Callable
from dataclasses import dataclass

from node_agent.core.windows.accumulator import Aggregate
from node_agent.core.windows.open_windows import Window


@dataclass(frozen=True, slots=True)
class Collecting:
    """Made once per window operator; kept from plan to plan as an operator's instance is. size: how long (ns) the
    window of its first tuple is; only where the data says so."""

    aggregate: Aggregate
    size: Callable[[object], int] | None = None

    def __call__(self) -> "Collecting":
        """What stands in a plan's calls, as all other operators do; the engine calls no window operator."""
        return self


@dataclass(frozen=True, slots=True)
class Complete:
    """The payload of a window that has closed. by_time: its bounds are instants, else numbers of its source."""

    window: Window
    by_time: bool

    def __repr__(self) -> str:
        return f"Complete(window {self.window.number} of {self.window.count})"


def result(complete: Complete) -> dict[str, object]:
    """As it goes on, with what the aggregate makes of its tuples: {"window", "start_ns", "end_ns", "count", ...};
    by count "first" and "last" are the numbers. Bounds by time are instants on the clock of the node. Raises what a
    user's `result` raises."""
    window = complete.window
    if complete.by_time:
        bounds = {"start_ns": window.start, "end_ns": window.end}
    else:
        bounds = {"first": window.start - window.base, "last": window.end - window.base - 1}
    return {"window": window.number, **bounds, "count": window.count, **window.state.result()}


__all__ = ["Collecting", "Complete", "result"]
