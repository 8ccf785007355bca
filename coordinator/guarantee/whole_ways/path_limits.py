"""How long a tuple takes from its admission to a place, in one piece: less than the sum of what units take at most.

Along each way the latest instants at which the tuple, and those just before it, come to a place are carried from unit
to unit (`calculus.passage`). A burst is then waited for once: where it kept the tuple long on one node it comes to the
next one apart, and where it comes at once it has run before. Units of one node that follow each other are one passage,
in which who delays a tuple counts once.

They are part of the state that the fixed point of `analysis` is found for. A limit follows from what is before its
place (limits there, responses, curves up to the instant at which it would be exceeded), never from itself.

There are limits where a source's tuples come once at most and in their order: not behind a fusion, a union of two ways
from one source, or an operator that makes several results of a tuple. Streams of several sources have limits from the
release of the unit that brings them together on as well: from there on it is the order of that stream that counts, so
a burst of another source is waited for once, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coordinator.calculus.curves import Curve, Time, TooLongError
from coordinator.calculus.demand import Load
from coordinator.calculus.flow import Known, jittered, least, total
from coordinator.calculus.passage import Passage, ends, fold
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee.streams import Delays, Flow, Late, Limits, Part, Streams
from coordinator.guarantee.system import System, Unit

Place = tuple[str, str]
Origin = str | int  # a source, or the unit that brought streams together
Came = tuple[Time, ...]
MOST_BEFORE = 64  # tuples before one whose instants are carried
MOST_WORK = 60_000  # tasks that are looked at in one round, about
GROUPS = 24  # of tuples before one, about


@dataclass(frozen=True)
class _Entered:
    """Units of a node that follow each other: what comes to the first, by origin, and what it passed before; the units
    with the operator that the next one, or the stream, comes from, and what comes to them by another way."""

    came: Mapping[Origin, Came]
    passes: Mapping[Origin, tuple[Selectivity, ...]]
    units: tuple[tuple[Unit, int, Curve | None], ...] = ()

    def then(self, unit: Unit, stage: int, beside: Curve | None = None) -> _Entered:
        """One more."""
        return replace(self, units=(*self.units, (unit, stage, beside)))


@dataclass
class _Walk:
    """Of one round. `came`: per place and origin; `runs`: per stream at the node that makes it, the units that it has
    come through there; `reached`: per place and source, from admission on; `released`: the same of units' releases.
    All of it follows from what is before a place, never from what was known of the place itself."""

    system: System
    delays: Delays
    streams: Streams
    loads: Mapping[str, Load]
    came: dict[Place, dict[Origin, Came]] = field(default_factory=dict)
    passes: dict[Place, dict[Origin, tuple[Selectivity, ...]]] = field(default_factory=dict)
    runs: dict[Place, tuple[_Entered, ...]] = field(default_factory=dict)
    reached: dict[Place, dict[str, Time]] = field(default_factory=dict)
    released: dict[int, dict[str, Time]] = field(default_factory=dict)
    work: int = 0

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
                    self._admitted(stream, unit.node)
                else:
                    self._travel(stream)

    def _admitted(self, name: str, node: str) -> None:
        flow = self.streams.flows.get((name, node))
        if flow is not None:
            self.came[name, node] = {name: _dense(flow.curve)}
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
        alone = _Entered(self._entering(unit, trigger), self._passing(unit))
        for stream, stage in unit.exits.items():
            if any(each.selectivity(1) > 1 for each in unit.stages[: stage + 1]):
                continue
            took = response.stages[stage]
            left = {origin: tuple(at + took for at in came) for origin, came in alone.came.items()}
            entered = [alone.then(unit, stage)]
            if not unit.join:
                entered += [run.then(unit, stage, self._beside(unit, name)) for name, run in self._before(unit)]
            for each in entered:
                for origin, came in each.came.items():
                    if origin in left:
                        left[origin] = _lesser(left[origin], self._passed(each, origin, came))
            more = tuple(each.selectivity for each in unit.stages[: stage + 1])
            self.came[stream, unit.node] = left
            self.passes[stream, unit.node] = {origin: (*alone.passes.get(origin, ()), *more) for origin in left}
            self.runs[stream, unit.node] = tuple(entered[1:] or entered)
            self._sooner(self.reached[stream, unit.node], left)

    def _before(self, unit: Unit) -> list[tuple[str, _Entered]]:
        """Units of the same node that an input has come through, by input."""
        return [(name, run) for name in unit.inputs for run in self.runs.get((name, unit.node), ())]

    def _beside(self, unit: Unit, name: str) -> Curve | None:
        """What comes to a unit by its other inputs."""
        others = [self.streams.flows[each, unit.node].curve for each in unit.inputs if each != name]
        return total(others) if others else None

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
                found[origin] = tuple(max(each) for each in zip(*(way[origin] for way in ways), strict=True))
        if len(every) > 1 and not unit.join:
            found[unit.id] = _dense(trigger.curve)
        return found

    def _sooner(self, reached: dict[str, Time], came: Mapping[Origin, Came]) -> None:
        """Where whole ways are known to take less."""
        for name, at in list(reached.items()):
            ways = [came[name][0]] if name in came else []
            for origin, each in came.items():
                if isinstance(origin, int) and name in self.released[origin]:
                    ways.append(self.released[origin][name] + each[0])
            reached[name] = min([at, *ways])

    def limits(self) -> dict[Place, Limits]:
        """At all places where there are some."""
        found = {}
        for place, reached in self.reached.items():
            came = self.came.get(place, {})
            units = {origin: _whole(each[0]) for origin, each in came.items() if isinstance(origin, int)}
            once = frozenset(origin for origin in came if isinstance(origin, str))
            found[place] = Limits({name: _whole(at) for name, at in reached.items()}, units, once)
        return found

    def _passed(self, entered: _Entered, origin: Origin, came: Came) -> Came:
        """When tuples leave; nothing where that takes too long to find."""
        first, (last, stage, _) = entered.units[0][0], entered.units[-1]
        load = self.loads[last.node]
        steps = {each.task.name: each for each in load.steps}
        units = tuple(steps[unit.name] for unit, *_ in entered.units)
        looks = sum(len(each.times) for each in load.steps)
        self.work += len(load.steps) * looks * min(units[0].counts[-1], GROUPS)
        if self.work > MOST_WORK or (len(units) == 1 and units[0].counts[-1] == 1):
            return came[:0]
        after, at = list[Time](), 0
        for unit, exit_, _ in entered.units:
            after.append(at)
            at += _whole(self.delays.units[unit.id].stages[exit_])
        others = self._others(self.streams.triggers[first.id], entered, origin)
        besides = tuple(beside for *_, beside in entered.units)
        try:
            found = ends(load, Passage(units, tuple(after), stage, others, besides))
        except TooLongError:
            return came[:0]
        return tuple(fold(came, found, entered.passes.get(origin, ())))

    def _others(self, trigger: Flow, entered: _Entered, origin: Origin) -> Curve | None:
        names = [each for each in trigger.late if each != origin]
        if isinstance(origin, int) or not names:
            return None
        if any(each not in entered.came for each in names):
            return trigger.curve
        return total([_component(self.system, self.streams, each, trigger.late[each]) for each in names])


def _lesser(one: Came, other: Came) -> Came:
    """Both hold; what comes before another has come no later than that."""
    found: list[Time] = []
    for q, at in enumerate(one):
        both = min(at, other[q]) if q < len(other) else at
        found.append(min(both, found[-1]) if found else both)
    return tuple(found)


def _component(system: System, streams: Streams, name: str, late: Late) -> Curve:
    """Of a source's tuples at a place where each comes once at most."""
    node = system.windows[name].node if name in system.windows else system.sources[name].node
    return jittered(streams.flows[name, node].curve, late.most_ns - late.least_ns)


def _dense(curve: Curve) -> Came:
    """Latest instants of tuples before one, itself first: as near to it as the curve has them, as far as it was asked
    for anyway."""
    assert isinstance(curve, Known)
    spans = [curve.stairs.span(n) for n in range(1, MOST_BEFORE + 1)]
    return tuple(-(curve.stairs.limit if span is None else span) for span in spans)


def path_limits(system: System, delays: Delays, streams: Streams, loads: Mapping[str, Load]) -> dict[Place, Limits]:
    """That follow from streams, and from how long units and links take at most."""
    walk = _Walk(system, delays, streams, loads)
    walk.go()
    return walk.limits()


def limited(system: System, streams: Streams, flow: Flow, limits: Limits | None) -> Flow:
    """A stream at a place for which there are limits: its tuples take no longer, and come no more densely than those of
    its sources do, each delayed by something between the least and that. Likewise since a unit all come through."""
    if limits is None:
        return flow
    late = {name: _within(each, limits.sources.get(name, each.most_ns)) for name, each in flow.late.items()}
    curves = [jittered(streams.triggers[unit].curve, since_ns) for unit, since_ns in limits.units.items()]
    if limits.once.issuperset(late):
        curves.append(total([_component(system, streams, name, each) for name, each in late.items()]))
    if not curves:
        return replace(flow, late=late)
    curve = Known(least([flow.curve, *curves]))
    return Flow(curve, curve if flow.events is flow.curve else flow.events, late, flow.max_bytes)


def _within(late: Late, most_ns: int) -> Late:
    """What is waited for less is taken from the last parts: when the tuple comes there, so much more of it has run."""
    less_ns = late.most_ns - most_ns
    if less_ns <= 0:
        return late
    parts: list[Part] = []
    for part in reversed(late.parts):
        cut_ns = min(less_ns, part.ns - part.work_ns)
        less_ns -= cut_ns
        blocking_ns = min(part.blocking_ns, part.ns - part.work_ns - cut_ns)
        parts.append(replace(part, ns=part.ns - cut_ns, blocking_ns=blocking_ns, sooner_ns=part.sooner_ns + cut_ns))
    return replace(late, most_ns=most_ns + less_ns, parts=tuple(reversed(parts)))


def _whole(t: Time) -> int:
    return int(-(-t // 1))


__all__ = ["limited", "path_limits"]
