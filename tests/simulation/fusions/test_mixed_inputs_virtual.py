"""Fusions whose inputs are of different kinds, on the virtual cluster: the trace says what comes to each of them, the
definition by brute force what it makes of that, and its results are those. None is beyond its bound."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from node_agent.core import plan as plans
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from tests.node_agent.core.fusion_definition import Definition, Pairs
from tests.simulation.fusions.mixed_queries import KINDS, LENGTH_NS, MS, Clients, MixedQuery, cluster, registry
from tests.simulation.planned_queries import planned
from tests.simulation.windows.test_windows_guaranteed import check_releases, check_results

SETS = int(os.environ.get("SHIMEKIRI_SETS", "12"))
FIRST = int(os.environ.get("SHIMEKIRI_FIRST_SET", "0"))
NEVER_NS = 10**15

Lineage = tuple[int, int, int]  # source, epoch, number


class Arrival(NamedTuple):
    """A tuple that comes to a fusion at one of its inputs."""

    at_ns: int
    port: int
    lineage: Lineage


def lineage(record: Any) -> Lineage:
    return record.source, record.epoch, record.seq


def arrivals(plan: Plan, done: Simulation, fusion: str) -> Iterator[Arrival]:
    """In the order of the node's trace: from sources there, from other nodes, and from instances as they end."""
    node = plan.placement[fusion]
    local = plan.nodes[node]
    number = {each.name: each.id for each in local.streams}
    ports = {number[name]: port for port, name in enumerate(plan.graph.operators[fusion].inputs)}
    of_source = {each.id: each.stream for each in local.sources}
    exits = {unit.id: list(unit.exits) for unit in local.units}
    (trace,) = (each for each in done.traces if each.node == node)
    for record in records.unpack_records(trace.records):
        if isinstance(record, records.Admitted) and of_source.get(record.source_id) in ports:
            yield Arrival(record.at_ns, ports[of_source[record.source_id]], lineage(record))
        elif isinstance(record, records.Received) and record.stream in ports:
            yield Arrival(record.at_ns, ports[record.stream], lineage(record))
        elif isinstance(record, records.Ran) and not record.unfinished:
            for position, stream in enumerate(exits[record.unit]):
                if stream in ports and record.outputs >> 8 * position & 0xFF:
                    yield Arrival(record.end_ns, ports[stream], lineage(record))


def expected(plan: Plan, fusion: str, came: list[Arrival], stamps: dict[Lineage, int]) -> list[list[Any]]:
    """Of each result: the tuple of each input, None, or all of them where the fusion is of pairs."""
    how = plan.graph.operators[fusion].sync
    assert how is not None
    sync = plans.Sync(how.within_ns is not None, how.within_ns or 0, how.timeout_ns or 0, how.keep, how.each)
    ports = len(plan.graph.operators[fusion].inputs)
    if how.each:
        pairs = Pairs(sync, ports)
        met = [pairs.comes(each.port, number, stamps[each.lineage]) for number, each in enumerate(came)]
        return [[[came[number].lineage for number in near] for near in each] for each in met if all(each)]
    definition, told = Definition(sync, ports, NEVER_NS), []
    for number, each in enumerate(came):
        told += definition.comes(each.at_ns, each.port, number, stamps[each.lineage])
    told += definition.passes(NEVER_NS - 1)
    return [
        [None if number is None else came[number].lineage for number in numbers]
        for what, numbers in told
        if what == "fired"
    ]


class Values:
    """What each stream had, by lineage: of sources as their clients sent it, of others as an output delivered it."""

    def __init__(self, plan: Plan, world: Clients) -> None:
        sources = {name: one.id for name, one in plan.graph.sources.items()}
        sources |= {name: one.source for name, one in plan.graph.windows.items()}
        self.of: dict[str, dict[tuple[int, int], Any]] = {
            name: {(sources[name], seq): value for seq, value in enumerate(values, start=1)}
            for name, values in world.values.items()
        }
        for output, results in world.delivered.items():
            self.of[output.removeprefix("of_")] = {(sources[one.source], one.seq): one.payload for one in results}

    def __call__(self, stream: str, part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, list):
            return [self(stream, each) for each in part]
        return self.of[stream][part[0], part[2]]


def words(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def check(seed: int, counts: Counter[str]) -> list[float]:
    """One query. Returns how near results come to their bounds."""
    draw = Random(f"mixed {seed}")
    nodes = draw.choice(["a", "ab", "ab"])
    query = MixedQuery(draw, nodes)
    text = query.text()
    plan = planned(text, cluster(nodes), query.place, registry())
    analysis = analyse(read(plan), NOTHING)
    told = claims(analysis)
    world = Clients(plan, seed)
    scale = draw.choice([1.0, 0.6])
    done = simulate(plan, Scenario(seed=seed, bursts=LENGTH_NS // (20 * MS), cost_scale=scale), registry(), world)
    assert not done.failures, f"seed {seed}: {done.failures}"
    stamps = {
        lineage(one): (one.origin_lo_ns + one.origin_hi_ns) // 2
        for trace in done.traces
        for one in records.unpack_records(trace.records)
        if isinstance(one, records.Admitted)
    }
    values = Values(plan, world)
    for fusion, inputs in query.fusions.items():
        came = list(arrivals(plan, done, fusion))
        results = [
            {stream: values(stream, part) for stream, part in zip(inputs, parts, strict=True)}
            for parts in expected(plan, fusion, came, stamps)
        ]
        found = [each.payload for each in world.delivered[f"of_{fusion}"]]
        assert sorted(map(words, found)) == sorted(map(words, results)), f"seed {seed}: {fusion} of\n{text}"
        counts["results"] += len(results)
        counts["partial"] += sum(None in each.values() for each in results)
    counts.update(query.kinds if len(set(query.kinds)) > 1 else [])
    counts["bounded"] += told["of_F"].bound_ns is not None
    ratios = check_results(analysis, plan, told, done, seed)
    check_releases(analysis, done, seed)
    return ratios


def test_fusions_of_inputs_of_all_kinds_do_what_their_definition_says_within_their_bounds() -> None:
    counts: Counter[str] = Counter()
    ratios: list[float] = []
    for seed in range(FIRST, FIRST + SETS):
        ratios += check(seed, counts)
    print(f"\nsets from {FIRST} on: {dict(counts)}; worst / bound: largest {max(ratios):.3f}")
    assert all(counts[each] for each in (*KINDS, "results", "partial", "bounded")), counts
