"""How long a tuple takes from its admission to a place, in one piece: less than the sum of what each unit takes at most.

Along each way the latest instants at which the tuple, and those just before it, come to a place are carried from unit
to unit (`calculus.passage`). A burst is then waited for once: where it kept the tuple long on one node it comes to the
next one apart, and where it comes at once it has run before. Units of one node that follow each other are one passage,
in which who delays a tuple counts once.

Each limit follows from streams and responses that hold, so it holds as well; and so do the streams and responses that
follow from the limits, and so on: any number of rounds is sound.

There are limits where a source's tuples come once at most and in their order: not behind a fusion, a union of two ways
from one source, or an operator that makes several results of a tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coordinator.calculus.curves import Curve, Staircase, Time, TooLongError
from coordinator.calculus.demand import Load
from coordinator.calculus.flow import Known, jittered, least, total
from coordinator.calculus.passage import Passage, ends, fold
from coordinator.guarantee.streams import Delays, Flow, Late, Part, Streams
from coordinator.guarantee.system import System, Unit

Place = tuple[str, str]
Came = tuple[Time, ...]
MOST_BEFORE = 64  # tuples before one whose instants are carried
MOST_WORK = 400_000  # ends times tasks that are looked at in one round


@dataclass(frozen=True)
class _Entered:
    """Units of a node that follow each other: what comes to the first, by source, and the units with the operator that
    the next one, or the stream, comes from."""

    came: Mapping[str, Came]
    units: tuple[tuple[Unit, int], ...]

    def then(self, unit: Unit, stage: int) -> _Entered:
        """One more."""
        return replace(self, units=(*self.units, (unit, stage)))


@dataclass
class _Walk:
    """Of one round. `came`: per place and source; `runs`: per stream at the node that makes it, the units that it has
    come through there."""

    system: System
    delays: Delays
    streams: Streams
    loads: Mapping[str, Load]
    came: dict[Place, dict[str, Came]] = field(default_factory=dict)
    runs: dict[Place, _Entered] = field(default_factory=dict)
    work: int = 0

    def go(self) -> None:
        """Through all streams."""
        for name, source in self.system.sources.items():
            self._admitted(name, source.node)
        for number in self.system.order:
            unit = self.system.units[number]
            if unit.id in self.streams.triggers and unit.node in self.loads:
                self._through(unit)
            for stream in unit.exits:
                if stream in self.system.windows:
                    self._admitted(stream, unit.node)
                else:
                    self._travel(stream)

    def _admitted(self, name: str, node: str) -> None:
        flow = self.streams.flows.get((name, node))
        if flow is not None and isinstance(flow.curve, Known):
            limit = max(flow.curve.asked, flow.curve.stairs.limit)
            stairs = Staircase.of(flow.curve, limit)
            spans = [stairs.span(n) for n in range(1, MOST_BEFORE + 1)]
            self.came[name, node] = {name: tuple(-(limit if span is None else span) for span in spans)}
            self._travel(name)

    def _travel(self, stream: str) -> None:
        drains = self.delays.drains
        for start, end in self.system.hops.get(stream, ()):
            if (stream, start) in self.came and (stream, end) in self.streams.flows:
                large = self.delays.large_links.get((start, end), 0)
                link_ns = max(self.delays.links.get((start, end), 0), large)
                more_ns = drains.get(start, 0) + link_ns + drains.get(end, 0)
                before = self.came[stream, start]
                self.came[stream, end] = {name: tuple(at + more_ns for at in came) for name, came in before.items()}

    def _through(self, unit: Unit) -> None:
        response, trigger = self.delays.units.get(unit.id), self.streams.triggers[unit.id]
        single = self.system.nodes[unit.node].batch == 1
        if response is None or not single or unit.sync is not None:
            return
        alone = _Entered(self._entering(unit, trigger), ())
        before = self.runs.get((unit.inputs[0], unit.node)) if len(unit.inputs) == 1 else None
        for stream, stage in unit.exits.items():
            if any(each.selectivity(1) > 1 for each in unit.stages[: stage + 1]):
                continue
            took = response.stages[stage]
            left = {name: tuple(at + took for at in came) for name, came in alone.came.items()}
            run = (before or alone).then(unit, stage)
            for entered in (alone.then(unit, stage), run) if before else (run,):
                for name, came in entered.came.items():
                    if name in left:
                        left[name] = _lesser(left[name], self._passed(entered, name, came))
            self.came[stream, unit.node] = left
            self.runs[stream, unit.node] = run

    def _entering(self, unit: Unit, trigger: Flow) -> dict[str, Came]:
        """By source whose tuples release it once at most, and in their order."""
        every = [self.came.get((name, unit.node), {}) for name in unit.inputs]
        flows = [self.streams.flows[name, unit.node] for name in unit.inputs]
        found = {}
        for name in trigger.late:
            ways = [came for came, flow in zip(every, flows, strict=True) if name in flow.late]
            if all(name in each for each in ways) and (unit.join or len(ways) == 1):
                found[name] = tuple(max(each) for each in zip(*(way[name] for way in ways), strict=True))
        return found

    def _passed(self, entered: _Entered, name: str, came: Came) -> Came:
        """When the tuples of a source leave; all at once too late where that takes too long to find."""
        first, (last, stage) = entered.units[0][0], entered.units[-1]
        load = self.loads[last.node]
        steps = {each.task.name: each for each in load.steps}
        units = tuple(steps[unit.name] for unit, _ in entered.units)
        self.work += len(load.steps) * len(units[0].times) * units[0].counts[-1]
        if self.work > MOST_WORK or (len(units) == 1 and units[0].counts[-1] == 1):
            return came[:0]
        after, at = [], 0
        for unit, exit_ in entered.units:
            after.append(at)
            at += _whole(self.delays.units[unit.id].stages[exit_])
        others = self._others(self.streams.triggers[first.id], entered, name)
        try:
            found = ends(load, Passage(units, tuple(after), stage, others))
        except TooLongError:
            return came[:0]
        return tuple(fold(came, found))

    def _others(self, trigger: Flow, entered: _Entered, name: str) -> Curve | None:
        names = [each for each in trigger.late if each != name]
        if not names:
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


def path_limits(
    system: System, delays: Delays, streams: Streams, loads: Mapping[str, Load]
) -> dict[Place, dict[str, int]]:
    """From admission on, in ns, by place and source."""
    walk = _Walk(system, delays, streams, loads)
    walk.go()
    return {
        place: {name: _whole(came[0]) for name, came in found.items()} for place, found in walk.came.items() if found
    }


def limited(system: System, streams: Streams, flow: Flow, limits: Mapping[str, int] | None) -> Flow:
    """A stream at a place for which there are limits: its tuples take no longer, and come no more densely than those of
    its sources do, each delayed by something between the least and that."""
    if not limits:
        return flow
    late = {name: _sooner(each, limits[name]) if name in limits else each for name, each in flow.late.items()}
    if any(name not in limits for name in late):
        return replace(flow, late=late)
    once = total([_component(system, streams, name, each) for name, each in late.items()])
    curve = Known(least([flow.curve, once]))
    return Flow(curve, curve if flow.events is flow.curve else flow.events, late, flow.max_bytes)


def _sooner(late: Late, most_ns: int) -> Late:
    """What is waited for less is taken from the last parts: when the tuple comes there, so much more of it has run."""
    less_ns = late.most_ns - most_ns
    if less_ns <= 0:
        return late
    parts: list[Part] = []
    for part in reversed(late.parts):
        cut_ns = min(less_ns, part.ns - part.work_ns)
        less_ns -= cut_ns
        blocking_ns = min(part.blocking_ns, part.ns - part.work_ns - cut_ns)
        parts.append(
            replace(part, ns=part.ns - cut_ns, blocking_ns=blocking_ns, sooner_ns=part.sooner_ns + cut_ns)
        )
    found = tuple(part for part in reversed(parts) if part.ns)
    return replace(late, most_ns=most_ns + less_ns, parts=found)


def _whole(t: Time) -> int:
    return int(-(-t // 1))


__all__ = ["limited", "path_limits"]
