"""How long a tuple takes from its admission to a place, in one piece: less than the sum of what units take at most.

Along each way the latest instants at which the tuple, and those just before it, come to a place are carried from unit
to unit (`calculus.passage`). A burst is then waited for once: where it kept the tuple long on one node it comes to the
next one apart, and where it comes at once it has run before. Units of one node that follow each other are one passage,
in which who delays a tuple counts once.

They are found once everything has a bound unit by unit (`analysis`), and follow from those bounds and the curves that
go with them.

There are limits where a source's tuples come once at most and in their order: not behind a fusion, a union of two ways
from one source, or an operator that makes several results of a tuple. Streams of several sources have limits from the
release of the unit that brings them together on as well: from there on it is the order of that stream that counts, so
a burst of another source is waited for once, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coordinator.calculus.curves import Time
from coordinator.calculus.demand import Load
from coordinator.calculus.selectivity import ONE, Selectivity
from coordinator.guarantee.streams import Delays, Flow, Limits, Streams, WholeWays
from coordinator.guarantee.system import System, Unit
from coordinator.guarantee.whole_ways.dense_arrivals import MOST_BEFORE, Came, dense, dense_releases, dense_within
from coordinator.guarantee.whole_ways.passages import Origin, Passages, Run

Place = tuple[str, str]


@dataclass
class _Walk:
    """Of one round. `came`: per place and origin; `runs`: per stream at the node that makes it, the units that it has
    come through there; `reached`: per place and source, from admission on; `released`: the same of units' releases;
    `collected`: per stream of windows, of the exit that collects; `joins`: of their releases; `wanted`: how many tuples
    before one the readers of a stream ask for. All of it follows from what is before a place."""

    system: System
    delays: Delays
    streams: Streams
    loads: Mapping[str, Load]
    came: dict[Place, dict[Origin, Came]] = field(default_factory=dict)
    passes: dict[Place, dict[Origin, tuple[Selectivity, ...]]] = field(default_factory=dict)
    runs: dict[Place, tuple[Run, ...]] = field(default_factory=dict)
    reached: dict[Place, dict[str, Time]] = field(default_factory=dict)
    released: dict[int, dict[str, Time]] = field(default_factory=dict)
    collected: dict[str, dict[str, Time]] = field(default_factory=dict)
    joins: dict[int, Limits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.passages = Passages(self.system, self.delays, self.streams, self.loads)
        self.wanted = self._wanted()

    def go(self) -> None:
        """Through all streams."""
        for name, source in self.system.sources.items():
            self._admitted(name, source.node)
        for number in self.system.order:
            unit = self.system.units[number]
            if unit.id in self.streams.triggers and unit.node in self.loads:
                self._released(unit)
                self._through(unit)
            for stream in unit.exits:
                if stream in self.system.windows:
                    self.collected[stream] = self.reached.get((stream, unit.node), {})
                    self._admitted(stream, unit.node)
                else:
                    self._travel(stream)

    def _wanted(self) -> dict[str, int]:
        """An output asks for a tuple alone; a unit for as many before as may be in its way, and more of each."""
        wanted = dict.fromkeys(self.system.sources, 1)
        filtered = self._filtered()
        for number in reversed(self.system.order):
            unit = self.system.units[number]
            own = self.passages.steps(unit)
            if own is None:
                continue
            most = max((wanted.get(each, 1) for each in unit.exits if each not in self.system.windows), default=1)
            most = MOST_BEFORE if unit.id in filtered else min(MOST_BEFORE, most - 1 + own.counts[-1])
            for name in unit.inputs:
                wanted[name] = max(wanted.get(name, 1), most)
        return wanted

    def _filtered(self) -> set[int]:
        """Units to which not all tuples come."""
        streams, found = set[str](), set[int]()
        for number in self.system.order:
            unit = self.system.units[number]
            if not streams.isdisjoint(unit.inputs):
                found.add(unit.id)
            if unit.id in found or any(stage.selectivity != ONE for stage in unit.stages):
                streams.update(each for each in unit.exits if each not in self.system.windows)
        return found

    def _admitted(self, name: str, node: str) -> None:
        flow = self.streams.flows.get((name, node))
        if flow is None:
            return
        if name not in self.system.windows:
            came = self.delays.reuse.of(("dense", flow), lambda: dense(flow.curve))
        else:
            busy = self.loads[node].busy if node in self.loads else 0
            came = self.delays.reuse.of(("dense", flow, busy), lambda: dense_within(flow.curve, busy))
        self.came[name, node] = {name: came[: self.wanted.get(name, 1)]}
        self.reached[name, node] = {name: 0}
        self._travel(name)

    def _travel(self, stream: str) -> None:
        drains = self.delays.drains
        for start, end in self.system.hops.get(stream, ()):
            if (stream, start) in self.reached and (stream, end) in self.streams.flows:
                large = self.delays.large_links.get((start, end), 0)
                link_ns = max(self.delays.links.get((start, end), 0), large)
                more_ns = drains.get(start, 0) + link_ns + drains.get(end, 0)
                before = self.came.get((stream, start), {})
                self.came[stream, end] = {origin: tuple(at + more_ns for at in came) for origin, came in before.items()}
                self.passes[stream, end] = self.passes.get((stream, start), {})
                self.reached[stream, end] = {name: at + more_ns for name, at in self.reached[stream, start].items()}

    def _released(self, unit: Unit) -> None:
        """When a unit is, by source: with the last of the inputs that a source comes by, or as its fusion has it."""
        late = self.streams.triggers[unit.id].late
        places = [self.reached.get((name, unit.node), {}) for name in unit.inputs]
        if unit.sync is not None or any(all(name not in each for each in places) for name in late):
            self.released[unit.id] = {name: each.most_ns for name, each in late.items()}
        else:
            self.released[unit.id] = {name: max(each[name] for each in places if name in each) for name in late}

    def _through(self, unit: Unit) -> None:
        response, trigger = self.delays.units.get(unit.id), self.streams.triggers[unit.id]
        if response is None:
            return
        for stream, stage in unit.exits.items():
            took = response.stages[stage]
            self.reached[stream, unit.node] = {name: at + took for name, at in self.released[unit.id].items()}
        if self.system.nodes[unit.node].batch > 1 or unit.sync is not None:
            return
        alone = Run(self._entering(unit, trigger), self._passing(unit))
        if unit.join:
            self.joins[unit.id] = _limits(self.released[unit.id], alone.came)
        for stream, stage in unit.exits.items():
            if any(each.selectivity(1) > 1 for each in unit.stages[: stage + 1]):
                continue
            took, wanted = response.stages[stage], self.wanted.get(stream, 1)
            left = {origin: tuple(at + took for at in came[:wanted]) for origin, came in alone.came.items()}
            runs = [alone.then(unit, stage)]
            if not unit.join:
                runs += [run.then(unit, stage, self._beside(unit, name)) for name, run in self._before(unit)]
            for each in runs:
                for origin in each.came:
                    if origin in left:
                        left[origin] = _lesser(left[origin], self.passages.left(each, origin, wanted))
            more = tuple(each.selectivity for each in unit.stages[: stage + 1])
            self.came[stream, unit.node] = left
            self.passes[stream, unit.node] = {origin: (*alone.passes.get(origin, ()), *more) for origin in left}
            self.runs[stream, unit.node] = tuple(runs[1:] or runs)
            self._sooner(self.reached[stream, unit.node], left)

    def _before(self, unit: Unit) -> list[tuple[str, Run]]:
        """Units of the same node that an input has come through, by input."""
        return [(name, run) for name in unit.inputs for run in self.runs.get((name, unit.node), ())]

    def _beside(self, unit: Unit, name: str) -> tuple[Flow, ...]:
        """What comes to a unit by its other inputs."""
        return tuple(self.streams.flows[each, unit.node] for each in unit.inputs if each != name)

    def _passing(self, unit: Unit) -> dict[Origin, tuple[Selectivity, ...]]:
        """What its tuples have passed, by origin; of a join, by one of its inputs."""
        found: dict[Origin, tuple[Selectivity, ...]] = {}
        for name in unit.inputs:
            found |= self.passes.get((name, unit.node), {})
        return found

    def _entering(self, unit: Unit, trigger: Flow) -> dict[Origin, Came]:
        """By origin of which each tuple releases the unit once at most, in their order. Itself is one where it brings
        streams together."""
        every = [self.came.get((name, unit.node), {}) for name in unit.inputs]
        flows = [self.streams.flows[name, unit.node] for name in unit.inputs]
        found: dict[Origin, Came] = {}
        for origin in dict.fromkeys(origin for came in every for origin in came):
            ways = [came for came, flow in zip(every, flows, strict=True) if origin in came or origin in flow.late]
            if unit.join:  # it is released by what all of its inputs bring
                fits = all(origin in each for each in every)
            else:
                fits = len(every) == 1 or (len(ways) == 1 and isinstance(origin, str))
            if fits and all(origin in each for each in ways):
                found[origin] = tuple(max(each) for each in zip(*(way[origin] for way in ways), strict=False))
        if len(every) > 1 and not unit.join:
            own = self.passages.steps(unit)
            assert own is not None
            found[unit.id] = dense_releases(own, self.loads[unit.node].busy)
        return found

    def _sooner(self, reached: dict[str, Time], came: Mapping[Origin, Came]) -> None:
        """Where whole ways are known to take less."""
        for name, at in list(reached.items()):
            ways = [came[name][0]] if name in came else []
            for origin, each in came.items():
                if isinstance(origin, int) and name in self.released[origin]:
                    ways.append(self.released[origin][name] + each[0])
            reached[name] = min([at, *ways])

    def limits(self) -> WholeWays:
        """Where there are some."""
        found = {}
        for place, reached in self.reached.items():
            limits = _limits(reached, self.came.get(place, {}))
            collected = {name: _whole(at) for name, at in self.collected.get(place[0], {}).items()}
            found[place] = replace(limits, collected=collected)
        return WholeWays(found, self.joins)


def _limits(reached: Mapping[str, Time], came: Mapping[Origin, Came]) -> Limits:
    units = {origin: _whole(each[0]) for origin, each in came.items() if isinstance(origin, int)}
    once = frozenset(origin for origin in came if isinstance(origin, str))
    return Limits({name: _whole(at) for name, at in reached.items()}, units, once)


def _lesser(one: Came, other: Came) -> Came:
    """Both hold; what comes before another has come no later than that."""
    found: list[Time] = []
    for q, at in enumerate(one):
        both = min(at, other[q]) if q < len(other) else at
        found.append(min(both, found[-1]) if found else both)
    return tuple(found)


def path_limits(system: System, delays: Delays, streams: Streams, loads: Mapping[str, Load]) -> WholeWays:
    """That follow from streams, and from how long units and links take at most."""
    walk = _Walk(system, delays, streams, loads)
    walk.go()
    return walk.limits()


def _whole(t: Time) -> int:
    return int(-(-t // 1))


__all__ = ["path_limits"]
