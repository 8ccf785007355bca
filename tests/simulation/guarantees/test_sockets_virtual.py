"""Bounds with what the runtime costs, against virtual nodes whose sockets are read and written between instances."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED
from node_agent.operators.codecs import Codecs
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario, virtual_plan
from node_agent.virtual.world import Delivery, Stub
from protos import records
from protos.plan_document import Plan
from tests.sampling import sample
from tests.seeds import seeds
from tests.simulation.guarantees.socket_nodes import facts_of, use_sockets
from tests.simulation.planned_queries import planned
from tests.simulation.random_plans import registry

MS = 1_000_000
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 1}
  r: {address: "127.0.0.1:7710", cap: 1, policy: R}
  b: {address: "127.0.0.1:7720", cap: 1, cores: 2}
links: [{between: [a, r], latency: 1 ms, bandwidth: 20 Mbit/s}, {between: [r, b], latency: 200 us}]
operators: operators.json
security: insecure-loopback
"""
QUERY = """
shimekiri: 1
query: sockets
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 40 ms}, max_age: 20 ms}
  t: {at: r, type: json, arrival: {jcp: {period: 25 ms, min_gap: 1 ms, early: 0 ms, late: 25 ms}}, max_age: 20 ms}
operators:
  first: {run: filter, in: s, with: {keep: 1, of: 2}, cost: 1 ms, selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  second: {run: pass, in: s, cost: 2 ms}
  both: {run: join, in: [first, second], cost: 1 ms}
  busy: {run: pass, in: t, cost: 5 ms}
  all: {run: union, in: [both, busy], cost: 1 ms}
  last: {run: test.attach, in: all, side: {ref: second}, cost: 500 us}
outputs:
  joined: {from: both, at: r, deadline: 90 ms}
  worked: {from: busy, at: a, deadline: 90 ms}
  attached: {from: last, at: a, deadline: 90 ms}
"""


class FromAdmission(Stub):
    """Notes how long every result took, by the tuple that it stems from."""

    def __init__(self, plan: Plan, codecs: Codecs) -> None:
        super().__init__(virtual_plan(plan), {}, codecs)
        self.results: list[Delivery] = []

    def deliver(self, delivery: Delivery) -> None:
        self.results.append(delivery)

    def longest_ns(self, output: str, waited_ns: dict[tuple[str, int], int]) -> int:
        """waited_ns: from the origin of each tuple to its admission."""
        took = [each.latency_ns - waited_ns[each.source, each.seq] for each in self.results if each.output == output]
        return max(took, default=0)


@pytest.mark.parametrize("seed", sample(seeds(range(12)), 3))
def test_no_bound_is_exceeded_where_sockets_wait_for_instances(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators anywhere, any sub-deadlines, a relay that is `fifo` now and then; who keeps the promise is not shed."""
    use_sockets(monkeypatch)
    dice = Random(seed)
    place = {name: dice.choice(["a", "r", "b.0", "b.1"]) for name in ("first", "second", "both", "busy", "all", "last")}
    text = CLUSTER.replace("policy: R", f"policy: {'fifo' if seed % 4 == 3 else 'edf'}")
    plan = planned(QUERY, text, place, registry(), dice.choice(["path", "operator"]))
    for local in plan.nodes.values():
        local.policy.largest_batch = dice.choice([1, 1, 3])
        for unit in local.units:
            unit.sub_deadline_ns = dice.randint(1, 40) * MS
    analysis = analyse(read(plan), MEASURED)
    told = claims(analysis)
    assert seed % 4 == 3 or any(claim.from_admission_ns for claim in told.values())
    plan = replace(plan, nodes=policing.enforced(plan, analysis)[0])
    names = {source.id: source.name for source in virtual_plan(plan).sources}
    for turn in range(4):
        phases = {"s": dice.choice([0, 1, MS]), "t": dice.choice([0, 1, 3 * MS])}
        scenario = Scenario(bursts=6, seed=turn, phase_ns=phases, decision_ns=MEASURED.decision_ns)
        world = FromAdmission(plan, registry().codecs)
        facts = facts_of(simulate(plan, scenario, registry(), world))
        waited_ns = {
            (names[fact.source_id], fact.seq): fact.at_ns - fact.origin_lo_ns
            for fact in facts
            if isinstance(fact, records.Admitted)
        }
        for name, claim in told.items():
            longest_ns = world.longest_ns(name, waited_ns)
            assert claim.from_admission_ns is None or longest_ns <= claim.from_admission_ns, (name, phases)
        assert not [fact for fact in facts if isinstance(fact, (records.Shed, records.Refused))]
