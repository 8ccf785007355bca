"""What a plan says, as the analysis needs it: units with worst and least costs, streams, hops, links, arrivals.

Read from plan.json alone, so that a plan can be analysed wherever it is, and what plan and analysis say is about the
same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import TopologicalSorter
from math import ceil
from typing import Any

from coordinator.guarantee.charges import NodeCharges
from coordinator.guarantee.curves import Bursts, Curve, Jcp, RateBurst, Recorded
from coordinator.guarantee.flow import jittered
from coordinator.guarantee.qos import NOTHING, Qos
from coordinator.guarantee.selectivity import ONE, Selectivity, UndeclaredError, declared
from coordinator.guarantee.windowed import Door, Windows, read_doors, read_windows

Plan = Mapping[str, Any]


@dataclass(frozen=True)
class Stage:
    """One operator of a unit on its node: its worst and its least CPU time per tuple, its selectivity."""

    operator: str
    cost_ns: int
    best_ns: int
    selectivity: Selectivity


@dataclass(frozen=True)
class Unit:
    """A task unit. `inputs`: streams that trigger it, all of one lineage together if `join`; `exits`: stream to the
    stage that it leaves after; `unsound`: why nothing bounds what it does, or nothing; `queue_bytes`: that may wait for
    it, 0: as the node's memory allows."""

    id: int
    node: str
    stages: tuple[Stage, ...]
    deadline_ns: int
    inputs: tuple[str, ...]
    join: bool
    exits: Mapping[str, int]
    unsound: str
    queue_bytes: int = 0

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
    rarely, at least so often."""

    name: str
    node: str
    curve: Curve | None
    max_age_ns: int
    why: str = ""
    tolerance_ns: int = 0
    limit: Bursts | None = None
    beat_ns: int = 0
    rarely_ns: int = 0


@dataclass(frozen=True)
class Output:
    """A stream delivered at a node, and what is asked of it beyond its deadline."""

    stream: str
    node: str
    deadline_ns: int
    qos: Qos = NOTHING


@dataclass(frozen=True)
class System:
    """Everything. `order`: units so that each stands after those that trigger it; `hops`: per stream (from, to) in the
    order of travel; `marked`: streams that carry absence marks; `windows`: by the operator that collects them, whose
    stream they leave on, and which are released when they close; `doors`: where tuples are shed before them."""

    nodes: Mapping[str, Node]
    units: Mapping[int, Unit]
    order: tuple[int, ...]
    sources: Mapping[str, Source]
    outputs: Mapping[str, Output]
    hops: Mapping[str, tuple[tuple[str, str], ...]]
    links: Mapping[tuple[str, str], Link]
    marked: frozenset[str]
    windows: Mapping[str, Windows] = field(default_factory=dict)
    doors: tuple[Door, ...] = ()


def arrival_curve(arrival: Mapping[str, Any]) -> Curve:
    """The curve of an `arrival` of plan.json. Raises ValueError where it contradicts itself or says nothing."""
    kind = arrival.get("kind")
    if kind == "burst":
        return Bursts(arrival["burst"], arrival["period_ns"])
    if kind == "jcp":
        return Jcp(arrival["period_ns"], arrival["min_gap_ns"], arrival["early_ns"] + arrival["late_ns"])
    if kind == "rate":  # instants in whole ns may be early by one
        return jittered(RateBurst(arrival["burst"], Fraction(str(arrival["rate_per_s"])) / 10**9), 1)
    if kind == "trace" and "spans_ns" in arrival:
        return Recorded(tuple(arrival["counts"]), tuple(arrival["spans_ns"]))
    raise ValueError(f"arrivals of kind {kind!r} are given without a curve")


def read(plan: Plan) -> System:
    """The system of a parsed plan.json."""
    graph, cluster = plan["graph"], plan["cluster"]
    names = {facts["index"]: name for name, facts in cluster["nodes"].items()}
    streams = {facts["id"]: name for name, facts in graph["streams"].items()}
    by_id = {operator["id"]: name for name, operator in graph["operators"].items()}
    units = {
        unit["id"]: _unit(plan, node, unit, [by_id[each] for each in unit["operators"]], streams)
        for node, local in plan["nodes"].items()
        for unit in local.get("units", [])
    }
    links = _links(cluster)
    limits = _sources(plan)
    sides: dict[str, list[str]] = {node: [] for node in plan["nodes"]}
    for name, operator in graph["operators"].items():
        sides[plan["placement"][name]] += operator["side"].values()
    return System(
        nodes={
            node: _node(node, local, tuple(sides[node]), cluster["nodes"][node].get("charges"))
            for node, local in plan["nodes"].items()
        },
        units=units,
        order=_order(units),
        sources={
            name: replace(_source(name, source), **limits.get(name, {})) for name, source in graph["sources"].items()
        },
        outputs={
            name: Output(one["from"], one["at"], one["deadline_ns"], Qos.read(one.get("qos")))
            for name, one in graph["outputs"].items()
        },
        hops=_hops(plan, names, streams),
        links=links,
        marked=frozenset(
            stream["name"]
            for local in plan["nodes"].values()
            for stream in local.get("streams", [])
            if stream.get("marked")
        ),
        windows=read_windows(plan),
        doors=read_doors(plan),
    )


def _sources(plan: Plan) -> dict[str, dict[str, Any]]:
    """What local plans say of sources that the graph does not."""
    found = {}
    for local in plan["nodes"].values():
        for source in local.get("sources", []):
            limit = source.get("limit")
            found[source["name"]] = {
                "limit": Bursts(int(limit["tuples"]), int(limit["span_ns"])) if limit else None,
                "beat_ns": int(source.get("beat_ns", 0)),
            }
    return found


def _links(cluster: Mapping[str, Any]) -> dict[tuple[str, str], Link]:
    """By pair of nodes, each way."""
    host = {name: facts.get("host", name) for name, facts in cluster["nodes"].items()}
    every = {
        pair: link for link in cluster["links"] for pair in (tuple(link["between"]), tuple(reversed(link["between"])))
    }
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one, other in every:
        shared.setdefault((host[one], host[other]), []).append((one, other))
    groups = {hosts: tuple(pairs) if len(pairs) > 1 else () for hosts, pairs in shared.items()}
    return {
        (one, other): Link(
            link["latency_ns"], link["bandwidth_bps"], groups[host[one], host[other]], host[one] != host[other]
        )
        for (one, other), link in every.items()
    }


def _node(name: str, local: Mapping[str, Any], sides: tuple[str, ...], charges: Mapping[str, Any] | None) -> Node:
    policy = local["policy"]
    own = NodeCharges.read(charges) if charges else None
    return Node(name, policy["name"], policy.get("largest_batch", 0), sides, own)


def _source(name: str, source: Mapping[str, Any]) -> Source:
    try:
        arrival = source["arrival"]
        tolerance_ns = int(arrival.get("tolerance_ns", 0))
        return Source(name, source["at"], arrival_curve(arrival), source["max_age_ns"], tolerance_ns=tolerance_ns)
    except (ValueError, KeyError) as error:
        return Source(
            name, source["at"], None, source["max_age_ns"], f"the arrivals of source {name} are unbounded: {error}"
        )


def _unit(plan: Plan, node: str, unit: Mapping[str, Any], names: Sequence[str], streams: Mapping[int, str]) -> Unit:
    stages, unsound = [], ""
    for name in names:
        try:
            stages.append(_stage(plan, node, name))
        except UndeclaredError as error:
            unsound = f"operator {name} {error}"
            stages.append(Stage(name, 1, 0, Selectivity(())))
    exits = {streams[each]: names.index(streams[each]) for each in unit.get("exits", [])}
    adds = [facts["add"] for facts in plan["graph"].get("windows", {}).values()]
    exits |= {name: position for position, name in enumerate(names) if name in adds}  # as windows
    first = plan["graph"]["operators"][names[0]]
    return Unit(
        unit["id"],
        node,
        tuple(stages),
        int(unit["sub_deadline_ns"]),
        tuple(first["in"]),
        first["join"],
        exits,
        unsound,
        int(unit.get("queue_bytes", 0)),
    )


def _stage(plan: Plan, node: str, name: str) -> Stage:
    """An emulated node uses at least what it emulates; elsewhere a tuple may cost nothing."""
    operator, facts = plan["graph"]["operators"][name], plan["cluster"]["nodes"][node]
    cost_ns = ceil(operator["cost_ns"] / Fraction(str(facts["speed"])))
    least_ns = int(facts["emulate_cost_ns"])
    cost_ns = max(cost_ns, ceil(_variant_ns(plan, node, name) / Fraction(str(facts["speed"]))))
    if any(each["add"] == name for each in plan["graph"].get("windows", {}).values()):
        return Stage(name, max(cost_ns, least_ns), least_ns, ONE)  # what leaves it are windows
    said = operator["selectivity"] or {"mean": 1, "at_most": []}
    sigma = declared(said["at_most"], Fraction(str(said["mean"])))
    return Stage(name, max(cost_ns, least_ns), least_ns, sigma)


def _variant_ns(plan: Plan, node: str, name: str) -> int:
    """What may run in the place of an operator costs: it is there to be cheaper, but nobody checks that."""
    for operator in plan["nodes"][node].get("operators", []):
        if operator["name"] == name and "late" in operator:
            return int(operator["late"].get("cost_ns", 0))
    return 0


def _order(units: Mapping[int, Unit]) -> tuple[int, ...]:
    made = {stage.operator: unit.id for unit in units.values() for stage in unit.stages}
    edges = {unit.id: [made[name] for name in unit.inputs if name in made] for unit in units.values()}
    return tuple(TopologicalSorter(edges).static_order())


def _hops(plan: Plan, names: Mapping[int, str], streams: Mapping[int, str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Per stream, each hop after the one that brings the stream to where it starts."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node, local in plan["nodes"].items():
        for send in local.get("sends", []):
            found.setdefault(streams[send["stream"]], []).append((node, names[send.get("peer", 0)]))
    ordered = {}
    for stream, pairs in found.items():
        start = plan["placement"].get(stream) or plan["graph"]["sources"][stream]["at"]
        reached, travelled = {start}, []
        while left := [pair for pair in pairs if pair not in travelled]:
            ready = [pair for pair in left if pair[0] in reached]
            if not ready:
                break  # a hop that nothing feeds
            travelled += ready
            reached |= {end for _, end in ready}
        ordered[stream] = tuple(travelled)
    return ordered
