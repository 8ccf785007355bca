"""Which instances can influence a result, once bounds have been made from those of the certain costs step by step.

A *state* is a bound on everything that takes time: instances, links, sockets. The one that follows from the plan's own
costs always holds. A pass makes another of it with smaller costs: the response of a job at a node follows from the
costs of what its node ran in the busy period up to its end, and from how densely tuples came there meanwhile, which the
state before says. So after k passes a bound holds for a job if no instance of these took longer than its smaller cost:

- on its node, what was released within the longest busy period (by the plan's costs) before its end;
- for each stretch on the way to that node, what is so of a job that ended within that busy period and the longest way
  to there before it, after k - 1 passes.

A `Reach` says how long before the end of something, on each node, nothing may have taken longer. It is finite, so the
instances can be counted: there is no need to know that the past was good for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.system import System, Unit

Pair = tuple[str, str]
Place = str | Pair  # a node, or a link by its two ends
Reach = Mapping[str, int]  # by node, ns


def uncovered(system: System) -> str:
    """Why nothing is said of a plan, or nothing."""
    if system.windows:
        return "a window is in the plan, and when windows close is not covered by bounds with a confidence"
    if any(unit.sync is not None for unit in system.units.values()):
        return "an operator fuses its inputs, which is not covered by bounds with a confidence"
    return ""


@dataclass(frozen=True)
class _Inputs:
    """What influences how densely tuples come to a place: where they have been (`places`), and the longest time that
    they may take from there."""

    places: frozenset[Place]
    longest_ns: int


class Influence:
    """Of an analysis by the plan's costs."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis, self.system = analysis, analysis.system
        self._drained = analysis.charges.drained
        self._made = {stream: unit for unit in self.system.units.values() for stream in unit.exits}
        self._ways: dict[tuple[str, str], frozenset[Place]] = {}
        self._places: list[Place] = [
            *self.system.nodes,
            *(pair for pair, sent in analysis.streams.sent.items() if sent),
        ]
        self._inputs = {place: self._inputs_of(place) for place in self._places}

    def reaches(self, output: str, passes: int) -> Reach:
        """Before a result of an output, with bounds after so many passes."""
        found: dict[Place, dict[str, int]] = {place: {} for place in self._places}
        for _ in range(passes):
            found = {place: self._next(place, found) for place in self._places}
        one = self.system.outputs[output]
        way = self._way(one.stream, one.node)
        return _before(self._longest_ns(one.stream, one.node), [found[place] for place in way if place in found])

    def runs(self, reach: Reach) -> dict[str, int]:
        """The most instances of each operator among what is within reach."""
        found: dict[str, int] = {}
        for unit in self.system.units.values():
            if unit.node not in reach or unit.id not in self.analysis.streams.triggers:
                continue
            jobs = self.analysis.streams.triggers[unit.id].curve.count(reach[unit.node])
            for stage in unit.stages:
                found[stage.operator] = jobs
                jobs = stage.selectivity(jobs)
        return found

    def _next(self, place: Place, before: Mapping[Place, Reach]) -> dict[str, int]:
        inputs, own_ns = self._inputs[place], self._own_ns(place)
        found = _before(own_ns + inputs.longest_ns, [before[each] for each in inputs.places if each in before])
        if isinstance(place, str):
            found[place] = max(own_ns, found.get(place, 0))
        return found

    def _own_ns(self, place: Place) -> int:
        """The longest busy period of a node, or of a link."""
        delays = self.analysis.delays
        if not isinstance(place, str):
            return max(delays.links.get(place, 0), delays.large_links.get(place, 0))
        load = self.analysis.loads.get(place)
        return max(-int(-load.busy // 1) if load is not None else 0, delays.drains.get(place, 0))

    def _inputs_of(self, place: Place) -> _Inputs:
        if isinstance(place, str):
            streams = [*self._coming(place)]
            ways = [self._way(stream, place) for stream in streams]
            longest = [self._longest_ns(stream, place) for stream in streams]
        else:
            together = self.system.links[place].shared or (place,)
            sent = [(stream, pair) for stream, hops in self.system.hops.items() for pair in hops if pair in together]
            ways = [self._way(stream, start) for stream, (start, _) in sent]
            ways += [frozenset({start}) for _, (start, _) in sent if self._drained]
            ways += [frozenset({place[1]})] if self._drained else []
            longest = [self._longest_ns(stream, start) + self._drain_ns(start) for stream, (start, _) in sent]
        return _Inputs(frozenset().union(*ways), max(longest, default=0))

    def _coming(self, node: str) -> Iterator[str]:
        """Streams that units on a node read, or that its sockets bring."""
        found = dict.fromkeys(name for unit in self._units(node) for name in unit.inputs)
        found |= dict.fromkeys(self.system.nodes[node].sides)
        found |= dict.fromkeys(name for name, hops in self.system.hops.items() if any(end == node for _, end in hops))
        if self._drained:
            found |= dict.fromkeys(
                name for name, hops in self.system.hops.items() for start, _ in hops if start == node
            )
        yield from found

    def _units(self, node: str) -> Iterator[Unit]:
        return (unit for unit in self.system.units.values() if unit.node == node)

    def _way(self, stream: str, node: str) -> frozenset[Place]:
        """Where a stream's tuples have been before a node has them: on links, and on nodes where they had to wait."""
        if (stream, node) in self._ways:
            return self._ways[stream, node]
        found: set[Place] = set()
        for pair in self._hops(stream, node):
            found |= {pair, *(pair if self._drained else ())}
        if stream in self.system.sources:
            found |= {self.system.sources[stream].node} if self._drained else set()
        else:
            unit = self._made[stream]
            found |= {unit.node}.union(*(self._way(name, unit.node) for name in unit.inputs))
        return self._ways.setdefault((stream, node), frozenset(found))

    def _hops(self, stream: str, node: str) -> Iterator[Pair]:
        """To a node, the last first."""
        before = {end: start for start, end in self.system.hops.get(stream, ())}
        start = self.system.sources[stream].node if stream in self.system.sources else self._made[stream].node
        while node != start and node in before:
            yield before[node], node
            node = before[node]

    def _longest_ns(self, stream: str, node: str) -> int:
        """From admission until a stream's tuples are at a node."""
        flow = self.analysis.streams.flows.get((stream, node))
        return max((late.most_ns for late in flow.late.values()), default=0) if flow is not None else 0

    def _drain_ns(self, node: str) -> int:
        return self.analysis.delays.drains.get(node, 0) if self._drained else 0


def _before(ns: int, reaches: list[Reach]) -> dict[str, int]:
    """The furthest of all, from so much later on."""
    found: dict[str, int] = {}
    for reach in reaches:
        for node, each_ns in reach.items():
            found[node] = max(found.get(node, 0), ns + each_ns)
    return found
