"""A plan as the analysis needs it: units with worst and least costs, streams, hops, links, arrivals.

Read from the plan alone, so that it can be analysed wherever it is, and what plan and analysis say is about the same
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from graphlib import TopologicalSorter
from math import ceil

from coordinator.calculus.curves import Bursts, Curve, Jcp, RateBurst, Recorded
from coordinator.calculus.flow import jittered
from coordinator.calculus.selectivity import ONE, Selectivity, UndeclaredError, declared
from coordinator.guarantee.facts import Facts
from coordinator.guarantee.window_sources import (
    EntryShedder,
    Windows,
    passes_all,
    read_entry_shedders,
    read_windows,
    whole,
)
from coordinator.spec.quality import NOTHING, Confidence, Freshness, Qos
from coordinator.units import show_ns
from protos import plan_pb2
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan.charges import NodeCharges
from protos.plan.cluster import Cluster
from protos.plan.operators import Operator, SideRule, Sync
from protos.plan.sources import Pull
from protos.plan.sources import Source as PlanSource

UNMATCHED_NS = 10**9  # and twice the longest deadline: after that a tuple that waits to be fused is in no set


@dataclass(frozen=True)
class Side:
    """A side input of an operator. `max_age_ns`: a value that may be older counts as absent, 0: of any age; `shed`:
    without a value the tuple is shed."""

    port: str
    stream: str
    max_age_ns: int = 0
    shed: bool = False


@dataclass(frozen=True)
class Stage:
    """One operator of a unit on its node: its worst and its least CPU time per tuple, its selectivity; `sides`: what it
    reads beside its tuple; `drops`: why not every tuple that it runs on has a result, or nothing; `sheds`: why it may
    not run on each as declared, side inputs apart, or nothing; `sums_ns`: what 1, 2, ... runs in a row take at most,
    where that is less than so many times the cost."""

    operator: str
    cost_ns: int
    best_ns: int
    selectivity: Selectivity
    sides: tuple[Side, ...] = ()
    drops: str = ""
    sheds: str = ""
    sums_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unit:
    """A task unit. `inputs`: streams that trigger it, all of one lineage together if `join`; `exits`: stream to the
    stage that it leaves after; `unsound`: why nothing bounds what it does, or nothing; `queue_bytes`: that may wait for
    it, 0: as the node's memory allows; `sync`: how its inputs are fused; `whole`: of each input whether every tuple of
    its sources comes by, but for what is late; `droppers`: of each input, operators on its way that drop or degrade
    what is older than so many ns; `required`: side inputs without which it sheds its tuple, in words; `last_ns`: the
    longest deadline behind it."""

    id: int
    node: str
    stages: tuple[Stage, ...]
    sub_deadline_ns: int
    inputs: tuple[str, ...]
    join: bool
    exits: Mapping[str, int]
    unsound: str
    queue_bytes: int = 0
    sync: Sync | None = None
    whole: tuple[bool, ...] = ()
    droppers: tuple[Mapping[str, int], ...] = ()
    required: tuple[str, ...] = ()
    last_ns: int = 0

    @property
    def unmatched_ns(self) -> int:
        """For how long a tuple waits to be fused, where nothing times out, until it is in no set."""
        return 2 * self.last_ns + UNMATCHED_NS

    @property
    def name(self) -> str:
        """`unit 3 (O4 to O21)`."""
        first, last = self.stages[0].operator, self.stages[-1].operator
        return f"unit {self.id} ({first if first == last else f'{first} to {last}'})"


@dataclass(frozen=True)
class Node:
    """A node: its policy, the largest batch (0: no limit), side inputs that operators read there (one entry each), its
    charges where they were measured."""

    name: str
    policy: str
    batch: int
    sides: tuple[str, ...]
    charges: NodeCharges | None = None


@dataclass(frozen=True)
class Link:
    """One direction; bandwidth 0: sending takes no time. `shared`: the pairs of nodes whose tuples wait for each other
    on it, itself among them: all between the cores of two hosts; empty: itself only. `apart`: the two have clocks of
    their own."""

    latency_ns: int
    bandwidth_bps: int
    shared: tuple[tuple[str, str], ...] = ()
    apart: bool = True


@dataclass(frozen=True)
class Source:
    """Where tuples enter. `curve` None: nothing bounds them, `why` says so; `max_age_ns` 0: of any age;
    `tolerance_ns`: how much later than its instant a tuple may come; `limit`: of what goes on, None: all does;
    `beat_ns`: how often its node says how far it is, where it leads to windows; `rarely_ns`: where it may say so more
    rarely, at least so often; `gap_ns`: a tuple comes so often at least, 0: nothing says so; `call_ns`: CPU time of a
    call on its node, where that makes its tuples itself; `every_ns`: between two ticks that call, 0: an iterator;
    `timer`: whether its tuples are ticks and nothing else."""

    name: str
    node: str
    curve: Curve | None
    max_age_ns: int
    why: str = ""
    tolerance_ns: int = 0
    limit: Bursts | None = None
    beat_ns: int = 0
    rarely_ns: int = 0
    gap_ns: int = 0
    call_ns: int = 0
    every_ns: int = 0
    timer: bool = False


@dataclass(frozen=True)
class Output:
    """A stream delivered at a node, and what is asked of it beyond its deadline."""

    stream: str
    node: str
    deadline_ns: int
    qos: Qos = NOTHING
    age: Freshness | None = None
    reaction: Freshness | None = None
    confidence: Confidence | None = None


@dataclass(frozen=True)
class System:
    """Everything. `order`: units so that each stands after those that trigger it; `hops`: per stream (from, to) in the
    order of travel; `marked`: streams that carry absence punctuation; `windows`: by the operator that collects them,
    whose stream they leave on, and which are released when they close; `entry_shedders`: where tuples are shed before
    them; `max_bytes`: of a payload of each stream that declares it."""

    nodes: Mapping[str, Node]
    units: Mapping[int, Unit]
    order: tuple[int, ...]
    sources: Mapping[str, Source]
    outputs: Mapping[str, Output]
    hops: Mapping[str, tuple[tuple[str, str], ...]]
    links: Mapping[tuple[str, str], Link]
    marked: frozenset[str]
    windows: Mapping[str, Windows] = field(default_factory=dict)
    entry_shedders: tuple[EntryShedder, ...] = ()
    max_bytes: Mapping[str, int] = field(default_factory=dict)


def arrival_curve(arrival: Arrival) -> Curve:
    """The curve of declared arrivals. Raises ValueError where they contradict themselves."""
    match arrival:
        case BurstArrival():
            return Bursts(arrival.burst, arrival.period_ns)
        case JcpArrival():
            return Jcp(arrival.period_ns, arrival.min_gap_ns, arrival.early_ns + arrival.late_ns)
        case RateArrival():  # instants in whole ns may be early by one
            return jittered(RateBurst(arrival.burst, Fraction(str(arrival.rate_per_s)) / 10**9), 1)
        case TraceArrival():
            return Recorded(arrival.counts, arrival.spans_ns)


def read(plan: Facts) -> System:
    """The system of a plan."""
    graph, cluster = plan.graph, plan.cluster
    names = {facts.index: name for name, facts in cluster.nodes.items()}
    streams = {facts.id: name for name, facts in graph.streams.items()}
    by_id = {operator.id: name for name, operator in graph.operators.items()}
    units = {
        unit.id: _unit(plan, node, unit, [by_id[each] for each in unit.operators], streams)
        for node, local in plan.nodes.items()
        for unit in local.units
    }
    links = _links(cluster)
    admitting = {source.name: source for local in plan.nodes.values() for source in local.sources}
    sides: dict[str, list[str]] = {node: [] for node in plan.nodes}
    for name, operator in graph.operators.items():
        sides[plan.placement[name]] += operator.side.values()
    return System(
        nodes={
            node: Node(
                node, local.policy.name, local.policy.largest_batch, tuple(sides[node]), cluster.nodes[node].charges
            )
            for node, local in plan.nodes.items()
        },
        units=units,
        order=_order(units),
        sources={
            name: _source(name, source, admitting.get(name, plan_pb2.Source()), cluster.nodes[source.at].speed)
            for name, source in graph.sources.items()
        },
        outputs={
            name: Output(
                one.origin,
                one.at,
                one.deadline_ns,
                Qos.read(one.qos),
                Freshness.read(one.age_ns, one.age_without),
                Freshness.read(one.reaction_ns, one.reaction_without),
                Confidence.read(one.confidence),
            )
            for name, one in graph.outputs.items()
        },
        hops=_hops(plan, names, streams),
        links=links,
        marked=frozenset(stream.name for local in plan.nodes.values() for stream in local.streams if stream.marked),
        windows=read_windows(plan),
        entry_shedders=read_entry_shedders(plan),
        max_bytes={name: facts.max_bytes for name, facts in graph.streams.items() if facts.max_bytes},
    )


def _links(cluster: Cluster) -> dict[tuple[str, str], Link]:
    """By pair of nodes, each way."""
    host = {name: facts.host for name, facts in cluster.nodes.items()}
    every = {pair: link for link in cluster.links for pair in (link.between, (link.between[1], link.between[0]))}
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one, other in every:
        shared.setdefault((host[one], host[other]), []).append((one, other))
    groups = {hosts: tuple(pairs) if len(pairs) > 1 else () for hosts, pairs in shared.items()}
    return {
        (one, other): Link(
            link.latency_ns, link.bandwidth_bps, groups[host[one], host[other]], host[one] != host[other]
        )
        for (one, other), link in every.items()
    }


def _source(name: str, source: PlanSource, local: plan_pb2.Source, speed: float) -> Source:
    """local: what its node's part of the plan has of it."""
    curve, why = None, ""
    try:
        curve = arrival_curve(source.arrival)
    except ValueError as error:
        why = f"the arrivals of source {name} are unbounded: {error}"
    limit = Bursts(local.limit.tuples, local.limit.span_ns) if local.HasField("limit") else None
    tolerance_ns = source.arrival.tolerance_ns
    pull = source.pull or Pull()
    call_ns = ceil(pull.cost_ns / Fraction(str(speed)))
    return Source(
        name,
        source.at,
        curve,
        source.max_age_ns,
        why,
        tolerance_ns,
        limit,
        local.beat_ns,
        call_ns=call_ns,
        gap_ns=0 if limit is not None or pull.run else _gap_ns(source.arrival),  # a call may give nothing
        every_ns=pull.every_ns,
        timer=source.pull is not None and not pull.run,
    )


def _gap_ns(arrival: Arrival) -> int:
    """The longest time without a tuple, of arrivals with a period; 0: nothing bounds it."""
    match arrival:
        case BurstArrival():
            return arrival.period_ns + arrival.tolerance_ns
        case JcpArrival():
            return arrival.period_ns + arrival.early_ns + arrival.late_ns + arrival.tolerance_ns
        case _:
            return 0


def _unit(plan: Facts, node: str, unit: plan_pb2.Unit, names: Sequence[str], streams: Mapping[int, str]) -> Unit:
    stages, unsound = [], ""
    for name in names:
        try:
            stages.append(_stage(plan, node, name))
        except UndeclaredError as error:
            unsound = f"operator {name} {error}"
            stages.append(Stage(name, 1, 0, Selectivity(())))
    exits = {streams[each]: names.index(streams[each]) for each in unit.exits}
    adds = [facts.add for facts in plan.graph.windows.values()]
    exits |= {name: position for position, name in enumerate(names) if name in adds}  # as windows
    first = plan.graph.operators[names[0]]
    return Unit(
        unit.id,
        node,
        tuple(stages),
        unit.sub_deadline_ns,
        first.inputs,
        first.join,
        exits,
        unsound,
        unit.queue_bytes,
        first.sync,
        tuple(_whole(plan, name) for name in first.inputs) if first.sync is not None else (),
        tuple(_droppers(plan, name) for name in first.inputs) if first.sync is not None else (),
        tuple(each for name in names for each in _required(plan, name)),
        unit.last_deadline_ns or unit.deadline_ns,
    )


def _required(plan: Facts, name: str) -> Iterator[str]:
    rules = plan.graph.operators[name].side_rules
    for port, rule in rules.items():
        if rule.shed:
            age = f" of at most {show_ns(rule.max_age_ns)}" if rule.max_age_ns else ""
            yield f"{name} sheds a tuple while its side input {port} has no value{age}"


def _whole(plan: Facts, stream: str) -> bool:
    """Whether every tuple of a stream's sources is to come by it unless it is late, and none waits for another."""
    operators = [plan.graph.operators[name] for name in _before(plan, stream)]
    for one in operators:
        shedding = one.queue or any(rule.shed for rule in one.side_rules.values())
        if one.kind not in ("map", "union") or shedding or one.closes:
            return False
    return whole(plan, [stream])


def _droppers(plan: Facts, stream: str) -> dict[str, int]:
    """Operators on the way to a stream that drop or degrade what is late, and from which age on."""
    names = _before(plan, stream)
    every = (one for local in plan.nodes.values() for one in local.operators)
    return {one.name: one.late.late_ns for one in every if one.name in names and one.HasField("late")}


def _before(plan: Facts, stream: str) -> list[str]:
    """Operators that a stream comes from through trigger inputs."""
    operators, found, waiting = plan.graph.operators, dict[str, None](), [stream]
    while waiting:
        name = waiting.pop()
        if name in operators and name not in found:
            found[name] = None
            waiting += operators[name].inputs
    return list(found)


def _stage(plan: Facts, node: str, name: str) -> Stage:
    """An emulated node uses at least what it emulates; elsewhere a tuple may cost nothing."""
    operator, facts = plan.graph.operators[name], plan.cluster.nodes[node]
    cost_ns = ceil(operator.cost_ns / Fraction(str(facts.speed)))
    least_ns = facts.emulate_cost_ns
    cost_ns = max(cost_ns, ceil(variant_ns(plan, node, name) / Fraction(str(facts.speed))))
    sheds = _sheds(name, operator)
    if any(each.add == name for each in plan.graph.windows.values()):
        return Stage(name, max(cost_ns, least_ns), least_ns, ONE, sheds=sheds)  # what leaves it are windows
    drops = "" if passes_all(operator) else f"{name} does not declare a result of every tuple"
    sigma = declared(operator.declared.at_most, Fraction(str(operator.declared.mean)))
    return Stage(name, max(cost_ns, least_ns), least_ns, sigma, _sides(operator), drops, sheds)


def _sides(operator: Operator) -> tuple[Side, ...]:
    found = []
    for port, stream in operator.side.items():
        rule = operator.side_rules.get(port, SideRule())
        found.append(Side(port, stream, rule.max_age_ns, rule.shed))
    return tuple(found)


def _sheds(name: str, operator: Operator) -> str:
    if operator.on_late is not None:
        return f"{name} does not run late tuples as the others"
    return f"{name} has a queue, and what is beyond its limit is shed" if operator.queue is not None else ""


def variant_ns(plan: Facts, node: str, name: str) -> int:
    """What may run in the place of an operator costs: it is there to be cheaper, but nobody checks that."""
    for operator in plan.nodes[node].operators:
        if operator.name == name:
            return operator.late.cost_ns
    return 0


def _order(units: Mapping[int, Unit]) -> tuple[int, ...]:
    made = {stage.operator: unit.id for unit in units.values() for stage in unit.stages}
    edges = {unit.id: [made[name] for name in unit.inputs if name in made] for unit in units.values()}
    return tuple(TopologicalSorter(edges).static_order())


def _hops(plan: Facts, names: Mapping[int, str], streams: Mapping[int, str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Per stream, each hop after the one that brings the stream to where it starts."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node, local in plan.nodes.items():
        for send in local.sends:
            found.setdefault(streams[send.stream], []).append((node, names[send.peer]))
    ordered = {}
    for stream, pairs in found.items():
        start = plan.placement.get(stream) or plan.graph.sources[stream].at
        reached, travelled = {start}, []
        while left := [pair for pair in pairs if pair not in travelled]:
            ready = [pair for pair in left if pair[0] in reached]
            if not ready:
                break  # a hop that nothing feeds
            travelled += ready
            reached |= {end for _, end in ready}
        ordered[stream] = tuple(travelled)
    return ordered
