"""One pass over all that is behind some outputs, side inputs too: each place after those that its data come from.

A side input may lead back to its own operator; then what is behind it is left out of the order, and the reader says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Protocol, TypeVar

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.propagate import age
from coordinator.guarantee.streams import Flow, Part
from coordinator.guarantee.system import Side, Source, System, Unit
from coordinator.guarantee.window_closing import clocks
from coordinator.spec.runtime_charges import RuntimeOverhead

Value = TypeVar("Value")
Place = tuple[str, str]  # stream, node


@dataclass(frozen=True)
class Stretch:
    """What is on the way between two places: at most its parts, at least `least_ns`."""

    parts: tuple[Part, ...] = ()
    least_ns: int = 0

    @property
    def most_ns(self) -> int:
        """The sum of the parts."""
        return sum(part.ns for part in self.parts)


class Rules(Protocol[Value]):
    """What is found of each place."""

    def admitted(self, source: Source) -> Value:
        """Of a source at its node."""

    def travelled(self, value: Value, stretch: Stretch) -> Value:
        """After a hop."""

    def released(self, unit: Unit, inputs: Sequence[Value]) -> Value:
        """Of what releases a unit."""

    def left(self, unit: Unit, stage: int, released: Value, found: Mapping[Place, Value]) -> Value:
        """Of what leaves a unit after one of its stages."""

    def missing(self, stream: str, why: str) -> Value:
        """Of a stream that the analysis does not bound."""


@dataclass(frozen=True)
class DataWalk:
    """`order`: the operators behind the outputs that ask; `sources`: likewise; `back`: side inputs (operator, port)
    that what comes of their operator leads to; `stages`: of each operator its unit, and its place in that; `origins`:
    of each stream where its lineages begin, at sources, fusions and windows."""

    analysis: Analysis
    order: tuple[str, ...]
    sources: tuple[str, ...]
    back: frozenset[tuple[str, str]]
    stages: Mapping[str, tuple[Unit, int]]
    origins: Mapping[str, frozenset[str]]

    @property
    def system(self) -> System:
        """What is analysed."""
        return self.analysis.system

    @property
    def charges(self) -> RuntimeOverhead:
        """What the runtime costs."""
        return self.analysis.charges

    def flow(self, place: Place) -> Flow | None:
        """None: the analysis bounds none there."""
        return self.analysis.streams.flows.get(place)

    def left_after(self, unit: Unit, stage: int) -> Stretch:
        """From a unit's release until a result leaves that stage."""
        flow = self.flow((unit.stages[stage].operator, unit.node))
        return Stretch() if flow is None else between(self.analysis.streams.triggers[unit.id], flow)

    def read_after(self, unit: Unit, stage: int) -> Part:
        """From the read of a side input by an operator of a unit until a result leaves that stage: an instance is not
        interrupted, but for what goes before all instances."""
        took, node = self.left_after(unit, stage), unit.node
        most_ns = took.most_ns
        if self.charges.drained:
            most_ns = min(most_ns, self.analysis.delays.drains.get(node, most_ns))
        elif node in self.analysis.loads and not any(one.task.chore for one in self.analysis.loads[node].steps):
            task = next(one.task for one in self.analysis.loads[node].steps if one.task.name == unit.name)
            most_ns = min(most_ns, -int(-task.work(task.batch, stage + 1) // 1))
        return Part("unit", f"{unit.name} on {node}, since it read", most_ns, node, most_ns, 0, unit.id, stage)

    def value_age_ns(self, place: Place, gap_ns: int | None) -> int | None:
        """How old the latest tuple of a stream may be by its own origin; None: of any age."""
        flow = self.flow(place)
        if flow is None or gap_ns is None or not flow.late:
            return None
        found = []
        for name, late in flow.late.items():
            admitted = age(self.system, self.analysis.streams, name)
            if admitted is None:
                return None
            found.append(admitted.most_ns + late.most_ns)
        return gap_ns + max(found)

    def apart_ns(self, place: Place) -> int:
        """How much older than it is a tuple of a stream may look, where clocks are apart."""
        analysis, flow = self.analysis, self.flow(place)
        names = () if flow is None else flow.late
        apart = (clocks(self.system, analysis.delays, analysis.charges, place[0], name)[0] for name in names)
        return max(apart, default=0)

    def is_back(self, unit: Unit, stage: int, side: Side) -> bool:
        """Whether what comes of the operator leads to its side input."""
        return (unit.stages[stage].operator, side.port) in self.back

    def complete(self, unit: Unit) -> list[bool]:
        """Of a join by lineage: of each input whether all lineages of it come by the other inputs too."""
        common = self.origins[unit.stages[0].operator]
        return [self.origins[stream] == common for stream in unit.inputs]

    def leading(self, stream: str) -> Sequence[str]:
        """Sources and operators that lead to a stream through trigger inputs, itself among them; of windows those that
        collect."""
        found, waiting = dict.fromkeys([stream]), [stream]
        while waiting:
            name = waiting.pop()
            before = _inputs(*self.stages[name]) if name in self.stages else ()
            waiting += [one for one in before if one not in found]
            found |= dict.fromkeys(before)
        return tuple(found)


def walk(analysis: Analysis, streams: Sequence[str]) -> DataWalk:
    """Of what is behind these streams."""
    system = analysis.system
    stages = {
        stage.operator: (unit, place) for unit in system.units.values() for place, stage in enumerate(unit.stages)
    }
    back: set[tuple[str, str]] = set()
    sorter: TopologicalSorter[str] = TopologicalSorter()
    wanted = behind(stages, streams)
    for name in sorted(wanted & stages.keys()):
        unit, place = stages[name]
        before = set(_inputs(unit, place))
        for side in unit.stages[place].sides:
            if name in behind(stages, [side.stream]):
                back.add((name, side.port))
            else:
                before.add(side.stream)
        sorter.add(name, *sorted(before & stages.keys()))
    sources = tuple(sorted(wanted & system.sources.keys()))
    order = tuple(sorter.static_order())
    return DataWalk(analysis, order, sources, frozenset(back), stages, _origins(system, stages, sources, order))


def _origins(
    system: System, stages: Mapping[str, tuple[Unit, int]], sources: Sequence[str], order: Sequence[str]
) -> dict[str, frozenset[str]]:
    found = {name: frozenset([name]) for name in sources}
    for name in order:
        unit, place = stages[name]
        before = [found[one] for one in _inputs(unit, place)]
        if name in system.windows or (place == 0 and unit.sync is not None):
            found[name] = frozenset([name])
        else:
            joins = place == 0 and unit.join
            found[name] = frozenset.intersection(*before) if joins else frozenset[str]().union(*before)
    return found


def behind(stages: Mapping[str, tuple[Unit, int]], streams: Sequence[str]) -> set[str]:
    """Sources and operators whose data come to one of these streams, the streams themselves among them."""
    found: set[str] = set()
    waiting = list(streams)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name in stages:
            unit, place = stages[name]
            waiting += _inputs(unit, place)
            waiting += [side.stream for side in unit.stages[place].sides]
    return found


def _inputs(unit: Unit, place: int) -> Sequence[str]:
    return unit.inputs if place == 0 else (unit.stages[place - 1].operator,)


def between(before: Flow, behind_it: Flow) -> Stretch:
    """Of one stream, or of a unit's releases and what leaves it."""
    name = next((one for one in behind_it.late if one in before.late), None)
    if name is None:
        return Stretch()
    start, end = before.late[name], behind_it.late[name]
    parts = tuple(part.alone for part in end.parts[len(start.parts) :])
    return Stretch(parts, end.least_ns - start.least_ns)


def follow(walked: DataWalk, rules: Rules[Value]) -> dict[Place, Value]:
    """What the rules find of each place."""
    found: dict[Place, Value] = {}
    released: dict[int, Value] = {}
    for name in walked.sources:
        source = walked.system.sources[name]
        _enter(walked, rules, (name, source.node), rules.admitted(source), found)
    for name in walked.order:
        unit, stage = walked.stages[name]
        if stage == 0:
            released[unit.id] = _released(walked, rules, unit, found)
        if name in unit.exits:
            place = (name, unit.node)
            known = walked.flow(place) is not None
            value = rules.left(unit, stage, released[unit.id], found) if known else _missing(walked, rules, place)
            _enter(walked, rules, place, value, found)
    return found


def _released(walked: DataWalk, rules: Rules[Value], unit: Unit, found: Mapping[Place, Value]) -> Value:
    if unit.id not in walked.analysis.streams.triggers:
        name = unit.stages[0].operator
        return rules.missing(name, walked.analysis.streams.unreleased.get(unit.id, f"nothing releases {name}"))
    places = [(one, unit.node) for one in unit.inputs]
    return rules.released(unit, [found[one] if one in found else _missing(walked, rules, one) for one in places])


def _enter(walked: DataWalk, rules: Rules[Value], place: Place, value: Value, found: dict[Place, Value]) -> None:
    """Where a stream begins, and along its hops."""
    stream = place[0]
    found[place] = value if walked.flow(place) is not None else _missing(walked, rules, place)
    for start, end in walked.system.hops.get(stream, ()):
        before, there = walked.flow((stream, start)), walked.flow((stream, end))
        if before is None or there is None:
            found[stream, end] = _missing(walked, rules, (stream, end))
        else:
            found[stream, end] = rules.travelled(found[stream, start], between(before, there))


def _missing(walked: DataWalk, rules: Rules[Value], place: Place) -> Value:
    stream, node = place
    why = walked.analysis.streams.why.get(place, f"stream {stream} never reaches node {node}")
    return rules.missing(stream, why)


__all__ = ["DataWalk", "Place", "Rules", "Stretch", "behind", "between", "follow", "walk"]
