"""Sources that nodes make themselves, planned and run: what is released keeps to the curves that the bounds rest on, no
bound is exceeded, and nothing is shed or missed, where each look at ticks waits for instances and each call costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED
from node_agent.operators.registry import Registry
from node_agent.ports import Returned
from node_agent.sdk import Tick, source
from node_agent.virtual.cluster import node
from node_agent.virtual.cluster.node import VirtualNode
from node_agent.virtual.immediate_calls import ImmediateCaller, ImmediateCallers
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario, virtual_plan
from protos import records
from tests.sampling import sample
from tests.seeds import seeds
from tests.simulation.guarantees.socket_nodes import facts_of, use_sockets
from tests.simulation.guarantees.test_sockets_virtual import FromAdmission
from tests.simulation.planned_queries import planned

MS = 1_000_000
COSTS_NS = {"camera": 3 * MS, "lidar": 1 * MS}
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 1}
  b: {address: "127.0.0.1:7710", cap: 1}
links: [{between: [a, b], latency: 1 ms, bandwidth: 20 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""
QUERY = """
shimekiri: 1
query: robot
sources:
  beat: {at: a, every: 20 ms, offset: OFFSET us}
  slow: {at: b, every: 45 ms}
  camera: {at: a, run: t.camera, every: 40 ms, offset: 7 ms, cost: 3 ms, max_age: 30 ms}
  lidar: {at: b, run: t.lidar, arrival: {burst: 2, period: 50 ms}, cost: 1 ms, max_age: 20 ms}
operators:
  see: {run: pass, in: camera, cost: 5 ms}
  scan: {run: pass, in: lidar, cost: 2 ms}
  watch: {run: union, in: [beat, slow], cost: 1 ms}
  half: {run: filter, in: see, with: {keep: 1, of: 2}, cost: 2 ms, selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  all: {run: union, in: [half, scan, watch], cost: 500 us}
outputs:
  seen: {from: half, at: a, deadline: 300 ms}
  watched: {from: watch, at: b, deadline: 300 ms}
  moved: {from: all, at: a, deadline: 300 ms}
"""


@source("t.camera")
def camera(*, tick: Tick) -> Any:
    return tick.number


@source("t.lidar")
def lidar() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


class ChargedCallers(ImmediateCallers):
    """A call takes its cost from the scheduling thread, at the worst instant."""

    work: Callable[[int], None]

    def open(self, name: str, returned: Callable[[Returned], None], paced: bool = False) -> ImmediateCaller:
        caller = super().open(name, returned, paced)
        end = caller.end

        def charged() -> None:
            self.work(COSTS_NS[name])
            end()

        caller.end = charged  # type: ignore[method-assign]
        return caller


def use_charged_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    use_sockets(monkeypatch)
    monkeypatch.setattr(node, "ImmediateCallers", ChargedCallers)
    before = VirtualNode.commit

    def commit(self: VirtualNode, plan_hash: str) -> None:
        assert isinstance(self._callers, ChargedCallers)
        self._callers.work = self._stack.work
        before(self, plan_hash)

    monkeypatch.setattr(VirtualNode, "commit", commit)


@pytest.mark.parametrize("seed", sample(seeds(range(12)), 3))
def test_ticks_and_calls_keep_to_their_curves_and_every_bound_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_charged_calls(monkeypatch)
    dice, registry = Random(seed), Registry(operators=(camera, lidar))
    place = {name: dice.choice(["a", "b"]) for name in ("see", "scan", "watch", "half", "all")}
    plan = planned(QUERY.replace("OFFSET", str(dice.randrange(20_000))), CLUSTER, place, registry)
    for local in plan.nodes.values():
        for unit in local.units:
            unit.sub_deadline_ns = dice.randint(1, 40) * MS
    analysis = analyse(read(plan), MEASURED)
    told = claims(analysis)
    assert any(claim.bound_ns for claim in told.values()), f"seed {seed}"
    plan = replace(plan, nodes=policing.enforced(plan, analysis)[0])
    facts_by_source: dict[int, list[int]] = {}
    timers_ns = {
        each.id: analysis.streams.ticks_ns[each.name]
        for each in virtual_plan(plan).sources
        if each.name in analysis.streams.ticks_ns
    }
    for turn in range(3):
        scenario = Scenario(bursts=20, seed=turn, decision_ns=MEASURED.decision_ns, phase_ns={})
        world = FromAdmission(plan, registry.codecs)
        done = simulate(plan, scenario, registry, world)
        facts = facts_of(done)
        assert not done.failures
        for fact in facts:
            if isinstance(fact, records.Admitted):
                facts_by_source.setdefault(fact.source_id, []).append(fact.at_ns)
                late_ns = timers_ns.get(fact.source_id)
                assert late_ns is None or fact.at_ns - fact.origin_lo_ns <= late_ns, f"seed {seed}"
        for name, claim in told.items():
            longest_ns = max((each.latency_ns for each in world.results if each.output == name), default=0)
            assert claim.bound_ns is None or longest_ns <= claim.bound_ns, f"seed {seed}: {name}"
        assert not [fact for fact in facts if isinstance(fact, (records.Shed, records.Refused))], f"seed {seed}"
        for each in virtual_plan(plan).sources:
            flow = analysis.streams.flows.get((each.name, each.node))
            if flow is None:
                continue
            at_ns = facts_by_source[each.id]
            assert len(at_ns) >= 20, each.name
            for first in range(0, len(at_ns), 3):
                for last in range(first, min(len(at_ns), first + 40)):
                    count = flow.curve.count(at_ns[last] - at_ns[first])
                    assert last - first + 1 <= count, f"seed {seed}: {each.name}"
        facts_by_source.clear()
