"""Ways of data in a plan: behind which results a datum is, through triggers, side inputs, fusions and windows.

A *place* is where a tuple comes and is followed back from: an output, a side input (of an operator of that name on a
node, the same from plan to plan), a fusion's inputs, a window's. Behind what comes there are its own tuple, the values
that the units on its way read, what fusions on its way merged into it, and the tuples of its window, each at a place of
its own. A side input that leads back to itself is not followed from there, so places form no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from coordinator.report.facts.clock_intervals import Interval
from coordinator.report.facts.plan_view import OUTPUT, SIDE, PlanView, SideAges, consumer_parts

WINDOW, PARTS = 16, 17  # kinds of places beside consumers'
MOST_LENGTHS = 16  # of windows in which a tuple may lie for all that clocks tell
COUNT = "count"  # the kind of windows that are parts of a source's numbers


class Slot(NamedTuple):
    """A side input that a unit reads. max_age_ns: of what counts as a value; strictest_ns: at all ports; 0: any."""

    place: int
    max_age_ns: int
    strictest_ns: int


@dataclass(frozen=True, slots=True)
class Place:
    """units: which a tuple has run through when it is there. sources: that it may be of, as records name them.
    below: the places whose tuples may be behind it, but for what leads back to it."""

    kind: int
    node: int
    name: str
    units: frozenset[int]
    sources: frozenset[int]
    below: tuple[int, ...] = ()


class _Key(NamedTuple):
    kind: int
    node: int
    ref: int
    name: str


@dataclass
class DataWays:
    """The places behind the outputs that ask for their data's age, or their reaction; by number.

    outputs, fusions, windows: places by the ids of outputs, of units that fuse, and of sources that admit windows.
    absorbs: side inputs' by (operator, stream). slots: which a unit reads. collects: the unit that collects a source's
    windows. canonical: a source's id in the last plan that has one of its name and node.
    """

    places: list[Place] = field(default_factory=list)
    outputs: dict[int, int] = field(default_factory=dict)
    absorbs: dict[tuple[int, int], int] = field(default_factory=dict)
    fusions: dict[int, int] = field(default_factory=dict)
    windows: dict[int, int] = field(default_factory=dict)
    collects: dict[int, int] = field(default_factory=dict)
    slots: dict[int, tuple[Slot, ...]] = field(default_factory=dict)
    canonical: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def depth(self) -> int:
        """How many places one behind the other there are at most."""
        found: dict[int, int] = {}

        def of(number: int) -> int:
            if number not in found:
                found[number] = 1 + max(map(of, self.places[number].below), default=0)
            return found[number]

        return max(map(of, range(len(self.places))), default=0)

    def places_behind(self, output: int) -> frozenset[int]:
        """Its own place, and those whose tuples may be behind its results."""
        found: set[int] = set()
        waiting = [self.outputs[output]]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self.places[number].below
        return frozenset(found)

    def behind(self, output: int) -> frozenset[int]:
        """The sources whose tuples may be behind its results, by their canonical ids."""
        sources = {source for number in self.places_behind(output) for source in self.places[number].sources}
        return frozenset(self.canonical[each] for each in sources - self.windows.keys())


def data_ways(plan: PlanView) -> DataWays:
    """Of the outputs that ask."""
    made = _Maker(plan)
    for output in sorted(plan.freshness):
        made.place(_Key(OUTPUT, plan.outputs[output].node, output, plan.outputs[output].name))
    return made.finished()


def positions(
    plan: PlanView, ways: DataWays, ahead: Mapping[tuple[int, int], Interval]
) -> dict[tuple[int, int], Interval]:
    """By the source that admits windows, and a node: what to add to origins on that node's clock for where its tuples
    lie among them; nothing where clocks are too far apart, or unknown. ahead: of the first node's clock to the other's.
    """
    return {
        (source, node): offset
        for source in ways.windows
        for (own, node), offset in ahead.items()
        if own == plan.windows[source].node and offset.hi - offset.lo <= MOST_LENGTHS * plan.windows[source].length_ns
    }


class _Maker:
    def __init__(self, plan: PlanView) -> None:
        self._plan = plan
        self._numbers: dict[_Key, int] = {}
        self._found: list[Place] = []
        self._below: list[set[int]] = []
        self._unit_of = {operator: unit for unit, operator in plan.before}
        self._made_by: dict[int, set[int]] = {}  # stream -> sources
        for source, (_, stream) in plan.sources.items():
            self._made_by.setdefault(stream, set()).add(source)
        self._sides: dict[_Key, set[tuple[int, int]]] = {}  # (operator, stream)
        self._read_by: dict[int, dict[_Key, SideAges]] = {}  # unit -> side input
        self._delivered: dict[int, set[int]] = {}  # output -> streams
        for (node, stream), consumers in plan.consumers.items():
            for kind, ref, _ in map(consumer_parts, consumers):
                if kind == SIDE:
                    name = f"{plan.operators[ref]}.{plan.streams[stream]}"
                    key = _Key(SIDE, node, 0, name)
                    self._sides.setdefault(key, set()).add((ref, stream))
                    if ref in self._unit_of:
                        read = self._read_by.setdefault(self._unit_of[ref], {})
                        read[key] = plan.side_ages.get((ref, stream), SideAges())
                elif kind == OUTPUT:
                    self._delivered.setdefault(ref, set()).add(stream)

    def place(self, key: _Key) -> int:
        """Its number; it is made, and what is behind it."""
        if key in self._numbers:
            return self._numbers[key]
        number = self._numbers[key] = len(self._found)
        units, sources = self._way(key)
        self._found.append(Place(key.kind, key.node, key.name, units, sources))
        self._below.append(set())
        below = [self.place(side) for unit in sorted(units) for side in self._read_by.get(unit, {})]
        below += [self.place(self._parts(unit)) for unit in sorted(units) if self._plan.units[unit].fuses]
        below += [self.place(self._window(each)) for each in sorted(sources) if each in self._plan.windows]
        self._below[number].update(below)
        return number

    def _parts(self, unit: int) -> _Key:
        view = self._plan.units[unit]
        return _Key(PARTS, view.node, unit, view.label)

    def _window(self, source: int) -> _Key:
        view = self._plan.windows[source]
        return _Key(WINDOW, view.node, source, view.name)

    def _way(self, key: _Key) -> tuple[frozenset[int], frozenset[int]]:
        """Units and sources of what comes there."""
        plan = self._plan
        if key.kind == OUTPUT:
            return self._back(self._delivered.get(key.ref, ()))
        if key.kind == SIDE:
            return self._back(stream for _, stream in self._sides[key])
        if key.kind == PARTS:
            return self._back(plan.units[key.ref].inputs)
        collects = self._collects(key.ref)
        units, sources = self._back(plan.units[collects].inputs)
        return units | {collects}, sources

    def _collects(self, source: int) -> int:
        return self._unit_of[self._plan.windows[source].operators[0]]

    def _back(self, streams: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
        units: set[int] = set()
        sources: set[int] = set()
        seen: set[int] = set()
        waiting = list(streams)
        while waiting:
            stream = waiting.pop()
            if stream in seen:
                continue
            seen.add(stream)
            sources |= self._made_by.get(stream, set())
            if stream in self._plan.producer:
                unit, _ = self._plan.producer[stream]
                units.add(unit)
                waiting += self._plan.units[unit].inputs
        return frozenset(units), frozenset(sources)

    def finished(self) -> DataWays:
        """Of the places that were made."""
        cut = self._without_feedback()
        places = [
            Place(p.kind, p.node, p.name, p.units, p.sources, tuple(sorted(below)))
            for p, below in zip(self._found, cut, strict=True)
        ]
        by_kind: dict[int, dict[int, int]] = {OUTPUT: {}, PARTS: {}, WINDOW: {}}
        absorbs: dict[tuple[int, int], int] = {}
        for key, number in self._numbers.items():
            if key.kind == SIDE:
                absorbs.update(dict.fromkeys(self._sides[key], number))
            else:
                by_kind[key.kind][key.ref] = number
        slots = {
            unit: tuple(Slot(self._numbers[key], *ages) for key, ages in read.items() if key in self._numbers)
            for unit, read in self._read_by.items()
        }
        return DataWays(
            places=places,
            outputs=by_kind[OUTPUT],
            absorbs=absorbs,
            fusions=by_kind[PARTS],
            windows=by_kind[WINDOW],
            collects={source: self._collects(source) for source in by_kind[WINDOW]},
            slots={unit: found for unit, found in slots.items() if found},
            canonical=_canonical(self._plan),
        )

    def _without_feedback(self) -> list[set[int]]:
        reach = [self._reached(number) for number in range(len(self._found))]
        return [
            {each for each in below if self._found[each].kind != SIDE or number not in reach[each]}
            for number, below in enumerate(self._below)
        ]

    def _reached(self, number: int) -> set[int]:
        found: set[int] = set()
        waiting = [number]
        while waiting:
            for each in self._below[waiting.pop()] - found:
                found.add(each)
                waiting.append(each)
        return found


def _canonical(plan: PlanView) -> dict[int, int]:
    """A source goes on from plan to plan, and so do its numbers."""
    first: dict[tuple[int, str], int] = {}
    for source, (node, stream) in sorted(plan.sources.items()):
        first.setdefault((node, plan.streams[stream]), source)
    return {source: first[node, plan.streams[stream]] for source, (node, stream) in plan.sources.items()}


__all__ = ["COUNT", "PARTS", "WINDOW", "DataWays", "Place", "Slot", "data_ways", "positions"]
