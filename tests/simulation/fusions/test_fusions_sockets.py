"""Bounds of fusions with what the runtime costs: tuples and timers wait for instances, and are read."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from tests.sampling import sample
from tests.seeds import seeds
from tests.simulation.guarantees.socket_nodes import use_sockets
from tests.simulation.guarantees.test_sockets_virtual import CLUSTER, MS
from tests.simulation.planned_queries import planned

QUERY = """
shimekiri: 1
query: sockets
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 40 ms}, max_age: 20 ms}
  t: {at: r, type: json, arrival: {jcp: {period: 25 ms, min_gap: 1 ms, early: 0 ms, late: 25 ms}}, max_age: 20 ms}
operators:
  first: {run: pass, in: s, cost: 1 ms}
  busy: {run: pass, in: t, cost: 5 ms}
  both: {run: join, in: [first, busy], cost: 500 us, sync: SYNC}
  last: {run: pass, in: both, cost: 500 us}
outputs:
  seen: {from: last, at: a, deadline: 190 ms}
  worked: {from: busy, at: a, deadline: 190 ms}
"""


@pytest.mark.parametrize("seed", sample(seeds(range(3)), 3))
@pytest.mark.parametrize("sync", ["{on: all, timeout: 12 ms}", "{within: 9 ms}", "{within: 9 ms, timeout: 20 ms}"])
def test_no_bound_of_a_fusion_is_exceeded_where_sockets_wait(
    sync: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators anywhere, any sub-deadlines."""
    use_sockets(monkeypatch)
    dice = Random(f"{seed} {sync}")
    place = {name: dice.choice(["a", "r", "b.0", "b.1"]) for name in ("first", "busy", "both", "last")}
    text = CLUSTER.replace("policy: R", "policy: edf")
    plan = planned(QUERY.replace("SYNC", sync), text, place, units=dice.choice(["path", "operator"]))
    for local in plan.nodes.values():
        for unit in local.units:
            unit.sub_deadline_ns = dice.randint(1, 40) * MS
    told = claims(analyse(read(plan), MEASURED))
    found = 0
    for turn in range(4):
        phases = {"s": dice.choice([0, 1, MS, 7 * MS]), "t": dice.choice([0, 1, 3 * MS])}
        ages = {name: dice.choice([0, 12 * MS]) for name in ("s", "t")}
        scenario = Scenario(bursts=20, seed=turn, phase_ns=phases, ages_ns=ages, decision_ns=MEASURED.decision_ns)
        done = simulate(plan, scenario)
        for name, output in done.outputs.items():
            bound_ns = told[name].bound_ns
            assert bound_ns is not None
            found += len(output.latencies_ns)
            assert max(output.latencies_ns, default=0) <= bound_ns, (name, phases)
    assert found
