"""Heartbeats of sources that lead to windows, in virtual time, and how long they go on.

A source's node says at the commit of a plan and then every `beat_ns` how far the source is. A run has an end, so they
stop when no window is open any more that an admitted tuple lies in: windows that would begin later are empty.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from node_agent.core import plan as core
from node_agent.core.model import CompiledPlan
from node_agent.virtual.event_queue import BEAT, Events

MOST_BEATS = 100_000  # of one source after the last admission


class Node(Protocol):
    """What tells how far a source is."""

    def beat(self, at_ns: int, loaded: CompiledPlan, source: core.Source, upto: int, first: int) -> None:
        """Numbers below `upto` were admitted, from `first` on under that plan."""

    def look(self, at_ns: int) -> None:
        """What is due may be waited for longer now."""


@dataclass(slots=True, eq=False)
class _Source:
    node: str
    loaded: CompiledPlan
    spec: core.Source
    first: int
    next_ns: int | None = None  # None: it has stopped


class Heartbeats:
    """Of one trial. numbers: the last number of each source so far, by name. tail_ns: for how long after an admission
    windows may be open that have to do with it."""

    def __init__(self, events: Events, nodes: Mapping[str, Node], numbers: Callable[[str], int], tail_ns: int) -> None:
        self._events, self._nodes, self._numbers, self._tail_ns = events, nodes, numbers, tail_ns
        self._sources: dict[tuple[str, str], _Source] = {}  # by node and name
        self.until_ns = events.now_ns

    def committed(self, at_ns: int, node: str, loaded: CompiledPlan) -> None:
        """At once, and from now on under this plan; under the one before for the last time."""
        for key, source in list(self._sources.items()):
            if source.node == node:
                del self._sources[key]
                self._say(at_ns, source)
        for spec in loaded.plan.sources:
            if spec.beat_ns and not spec.window:
                source = self._sources[node, spec.name] = _Source(node, loaded, spec, self._numbers(spec.name) + 1)
                self._tell(at_ns, source)

    def extend(self, at_ns: int) -> None:
        """Something is admitted at that instant, which may be a later one."""
        if at_ns + self._tail_ns <= self.until_ns:
            return
        self.until_ns = at_ns + self._tail_ns
        for source in self._sources.values():
            if source.next_ns is None:
                self._plan(self._events.now_ns, source)
        for node in self._nodes.values():
            node.look(self._events.now_ns)

    def _tell(self, at_ns: int, source: _Source) -> None:
        if self._sources.get((source.node, source.spec.name)) is not source:
            return  # another plan's turn
        self._say(at_ns, source)
        self._plan(at_ns, source)

    def _say(self, at_ns: int, source: _Source) -> None:
        upto = self._numbers(source.spec.name) + 1
        self._nodes[source.node].beat(at_ns, source.loaded, source.spec, upto, source.first)

    def _plan(self, at_ns: int, source: _Source) -> None:
        """The next one, if there is to be one."""
        if at_ns > self.until_ns:
            source.next_ns = None
            return
        source.next_ns = at_ns + max(source.spec.beat_ns, self._tail_ns // MOST_BEATS)
        self._events.at(source.next_ns, BEAT, self._tell, source)


def tail_ns(plans: Iterable[core.Plan], latency_ns: int | None, oldest_ns: int) -> int:
    """How long after an admission windows may have to do with it, in all plans: until the longest of them has ended and
    is of no use any more, what is missing was given up and every join has, over every link one after the other.

    latency_ns: of every link; None: the plans'. oldest_ns: a tuple's greatest age.
    """
    windows = joins = beats = ages = links = 0
    for plan in plans:
        for operator in plan.operators:
            if (window := operator.window) is not None:
                length_ns = 0 if window.kind == "count" else window.length + window.hop
                windows = max(windows, length_ns + window.lateness_ns + window.useful_ns + window.wait_ns)
            elif operator.join:  # as `parts.Join` waits
                joins = max([joins, *(2 * stream.last_ns + 1_000_000_000 for stream in plan.streams)])
        beats = max([beats, *(source.beat_ns for source in plan.sources)])
        ages = max([ages, *(source.max_age_ns for source in plan.sources)])
        links += sum(peer.latency_ns if latency_ns is None else latency_ns for peer in plan.peers)
    return windows + joins + 2 * beats + max(ages, oldest_ns) + links


__all__ = ["Heartbeats", "tail_ns"]
