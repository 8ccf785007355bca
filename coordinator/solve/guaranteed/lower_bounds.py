"""Lower bounds of the analysis, which no sub-deadlines can change.

A tuple takes at least its own work at each unit on its way, and the latency of links. On each node that its way passes
it also waits for one job of another unit: one that is due later blocks for as much, one that is due sooner or together
goes before it. Once for units of the node that follow each other, and for none of these, since a way through them may
be one passage (`calculus.passage`), of which none of its own units blocks. At the first unit behind its source the last
of a burst also waits for the rest of it. Sockets are not counted.

The analysis counts as much whether it goes unit by unit or by whole ways: each of its passages begins where a tuple
comes to a node or later, and looks at a release at the beginning of a busy period, where all this has come. So an
output that is late even then is late under any sub-deadlines.

Units may be cut. Then a rival's job is one of a single operator, and a burst is waited for at the first operator alone.
What bursts take without rivals is in `lone_bursts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from coordinator.calculus.response import Response
from coordinator.guarantee.propagate import Delays, Streams, age, propagate
from coordinator.guarantee.streams import Flow
from coordinator.guarantee.system import System, Unit
from coordinator.guarantee.whole_ways.limited_flows import entered
from coordinator.solve.guaranteed.lone_bursts import lone_bursts
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import show_ns

Place = tuple[str, str]


def late(
    system: System, charges: RuntimeOverhead, spared: frozenset[str] = frozenset(), cut: bool = True
) -> str | None:
    """An output of this placement, none of `spared`, that is late under any sub-deadlines, in a sentence; None: nothing
    is proven. `cut`: also however units are cut; else with these units only."""
    for name, bound_ns in least_bounds(system, charges, cut).items():
        deadline_ns = system.outputs[name].deadline_ns
        if name not in spared and bound_ns > deadline_ns:
            return (
                f"output {name}: even if every unit on its way went before all others, its bound would be "
                f"{show_ns(bound_ns)}, its deadline is {show_ns(deadline_ns)}"
            )
    return None


def least_bounds(system: System, charges: RuntimeOverhead, cut: bool = True) -> dict[str, int]:
    """What each output's bound is at least, in ns from a tuple's origin on; `cut` as of `late`."""
    found = _with_rivals(system, charges, _first_bursts if cut else _whole_bursts, cut)
    for name, least_ns in lone_bursts(system, charges).items():
        found[name] = max(least_ns, found.get(name, 0))
    return found


def _with_rivals(
    system: System, charges: RuntimeOverhead, bursts: Callable[[Unit, int], list[int]], cut: bool
) -> dict[str, int]:
    """By output. `bursts`: jobs of each operator of a unit to which so many come at once."""
    delays = Delays()
    for pair, link in system.links.items():
        delays.links[pair] = link.latency_ns
    decision_ns = {name: charges.on(node.charges).decision_ns for name, node in system.nodes.items()}
    streams = propagate(system, delays, charges)
    for unit in system.units.values():
        if unit.id in streams.triggers and not unit.unsound:
            jobs = bursts(unit, _at_once(system, streams, unit))
            delays.units[unit.id] = _own(unit, jobs, decision_ns[unit.node])
    streams = propagate(system, delays, charges)
    waits = _Waits(system, streams, _longest_operator if cut else _longest_unit)
    found: dict[str, int] = {}
    for name, output in system.outputs.items():
        at = (output.stream, output.node)
        for source, each in (streams.flows[at].late if at in streams.flows else {}).items():
            oldest = age(system, streams, source)
            bound_ns = each.most_ns + waits.at(at, source) + (oldest.most_ns if oldest else 0)
            found[name] = max(bound_ns, found.get(name, 0))
    return found


def _at_once(system: System, streams: Streams, unit: Unit) -> int:
    """As a source admits them, where nothing else releases the unit; elsewhere a tuple alone."""
    (first, *others) = unit.inputs
    if others or (first not in system.sources and first not in system.windows):
        return 1
    return max(1, entered(system, streams, first).curve.count(0))


def _own(unit: Unit, jobs: list[int], decision_ns: int) -> Response:
    done, found = jobs[0] * decision_ns, list[int]()
    for stage, many in zip(unit.stages, jobs, strict=True):
        done += many * stage.cost_ns
        found.append(done)
    return Response(done, tuple(found))


def _whole_bursts(unit: Unit, jobs: int) -> list[int]:
    """As a unit runs them one after the other."""
    found = []
    for stage in unit.stages:
        found.append(jobs)
        jobs = stage.selectivity(jobs)
    return found


def _first_bursts(unit: Unit, jobs: int) -> list[int]:
    """At the first operator; behind it the tuple's own."""
    return [jobs, *_whole_bursts(unit, 1)[1:]]


def _longest_unit(unit: Unit) -> int:
    """Of one job, in ns."""
    return sum(jobs * stage.cost_ns for stage, jobs in zip(unit.stages, _whole_bursts(unit, 1), strict=True))


def _longest_operator(unit: Unit) -> int:
    """Of those that the first job comes to, in ns."""
    jobs = _whole_bursts(unit, 1)
    return max((stage.cost_ns for stage, many in zip(unit.stages, jobs, strict=True) if many), default=0)


@dataclass
class _Waits:
    """For rivals. `before`: by place and source, on nodes that a tuple has left behind; `through`: units of the place's
    node that it may have come through there."""

    system: System
    streams: Streams
    longest: Callable[[Unit], int]
    before: dict[Place, dict[str, int]] = field(default_factory=dict)
    through: dict[Place, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, source in self.system.sources.items():
            self._travel(name, source.node)
        for number in self.system.order:
            unit = self.system.units[number]
            if unit.id in self.streams.triggers:
                self._run(unit)
            for stream in unit.exits:
                if stream in self.system.windows:
                    self.before.pop((stream, unit.node), None)
                    self.through.pop((stream, unit.node), None)
                self._travel(stream, unit.node)

    def at(self, place: Place, source: str) -> int:
        """Of a source's tuples, from admission on."""
        return self.before.get(place, {}).get(source, 0) + self._here(place)

    def _here(self, place: Place) -> int:
        through = self.through.get(place, frozenset())
        if not through:
            return 0
        return max((self.longest(one) for one in self._rivals(place[1], through)), default=0)

    def _rivals(self, node: str, through: frozenset[int]) -> Iterable[Unit]:
        """Those that are ever released, but for what collects the windows that release one of these: it has ended."""
        closed = {
            name for number in through for name in self.system.units[number].inputs if name in self.system.windows
        }
        for one in self.system.units.values():
            if one.node != node or one.id in through or one.unsound or one.id not in self.streams.triggers:
                continue
            collects = any(stage.operator in closed for stage in one.stages)
            if not collects and self.streams.triggers[one.id].curve.count(0):
                yield one

    def _travel(self, stream: str, node: str) -> None:
        for start, end in self.system.hops.get(stream, ()):
            flow = self.streams.flows.get((stream, end))
            if flow is not None:
                self.before[stream, end] = {name: self.at((stream, start), name) for name in flow.late}

    def _run(self, unit: Unit) -> None:
        inputs = [(name, unit.node) for name in unit.inputs]
        flows = {place: self.streams.flows[place] for place in inputs if place in self.streams.flows}
        before: dict[str, int] = {}
        if unit.sync is None:  # behind a fusion the other inputs may have been waited for longer
            for name in self.streams.triggers[unit.id].late:
                before[name] = _more(flows, name, self.before)
        through = frozenset((unit.id,)).union(*(self.through.get(place, frozenset()) for place in inputs))
        for stream in unit.exits:
            self.before[stream, unit.node] = before
            self.through[stream, unit.node] = through if unit.sync is None else frozenset((unit.id,))


def _more(flows: Mapping[Place, Flow], name: str, before: Mapping[Place, Mapping[str, int]]) -> int:
    """How much later the last of a tuple's ways ends with what was waited for on each."""
    ways = [
        (flow.late[name].most_ns, before.get(place, {}).get(name, 0))
        for place, flow in flows.items()
        if name in flow.late
    ]
    return max(ns + more for ns, more in ways) - max(ns for ns, _ in ways) if ways else 0
