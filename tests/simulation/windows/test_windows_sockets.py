"""Bounds behind windows with what the runtime costs: heartbeats, marks and tuples wait for instances, and are read."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from tests.sampling import sample
from tests.seeds import seeds
from tests.simulation.guarantees.socket_nodes import facts_of, use_sockets
from tests.simulation.guarantees.test_sockets_virtual import CLUSTER, MS
from tests.simulation.planned_queries import planned
from tests.simulation.windows.window_queries import registry

QUERY = """
shimekiri: 1
query: sockets
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 40 ms}, max_age: 20 ms}
  t: {at: r, type: json, arrival: {jcp: {period: 25 ms, min_gap: 1 ms, early: 0 ms, late: 25 ms}}, max_age: 20 ms}
operators:
  first: {run: filter, in: s, with: {keep: 1, of: 2}, cost: 1 ms, selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  busy: {run: pass, in: t, cost: 5 ms}
  both: {run: aggregate, with: {n: count}, in: [first, busy], cost: 500 us,
    window: {time: 110 ms, hop: 55 ms, close: 2 ms, shed: none, wait: 200 ms}}
  five: {run: aggregate, with: {n: count}, in: t, cost: 300 us, window: {count: 5, hop: 2, shed: none, wait: 200 ms}}
  last: {run: pass, in: both, cost: 500 us}
outputs:
  seen: {from: last, at: a, deadline: 190 ms}
  counted: {from: five, at: a, deadline: 190 ms}
  worked: {from: busy, at: a, deadline: 190 ms}
"""


@pytest.mark.parametrize("seed", sample(seeds(range(3)), 3))
def test_no_bound_of_a_window_is_exceeded_where_sockets_wait(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators anywhere, any sub-deadlines; nothing that keeps its promise is shed, and no window is left out."""
    use_sockets(monkeypatch)
    dice = Random(seed)
    place = {name: dice.choice(["a", "r", "b.0", "b.1"]) for name in ("first", "busy", "both", "five", "last")}
    text = CLUSTER.replace("policy: R", "policy: edf")
    plan = planned(QUERY, text, place, registry(), dice.choice(["path", "operator"]))
    for local in plan.nodes.values():
        for unit in local.units:
            unit.sub_deadline_ns = dice.randint(1, 40) * MS
    analysis = analyse(read(plan), MEASURED)
    told = claims(analysis)
    assert all(claim.bound_ns is not None for claim in told.values())
    plan = replace(plan, nodes=policing.enforced(plan, analysis)[0])
    for turn in range(3):
        phases = {"s": dice.choice([0, 1, MS]), "t": dice.choice([0, 1, 3 * MS])}
        scenario = Scenario(bursts=8, seed=turn, phase_ns=phases, decision_ns=MEASURED.decision_ns)
        done = simulate(plan, scenario, registry())
        for name, output in done.outputs.items():
            bound_ns = told[name].bound_ns
            assert output.latencies_ns
            assert bound_ns is not None
            assert max(output.latencies_ns) <= bound_ns, (name, phases)
        assert not [fact for fact in facts_of(done) if fact.kind == records.SHED and told["seen"].guaranteed]
