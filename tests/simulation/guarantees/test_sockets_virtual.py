"""Bounds with what the runtime costs, against virtual nodes whose sockets are read and written between instances."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.virtual.cluster import cluster
from node_agent.virtual.cluster.node import VirtualNode
from node_agent.virtual.event_queue import DISPATCHED, ENDED
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from tests.seeds import seeds
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
  s: {at: a, type: json, arrival: {burst: 3, period: 40 ms}, max_age: 1 ms}
  t: {at: r, type: json, arrival: {jcp: {period: 25 ms, min_gap: 1 ms, early: 0 ms, late: 25 ms}}, max_age: 1 ms}
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


class Sockets(VirtualNode):
    """What comes waits in `inbox` and is read, each for the charge, when nothing runs, or at an instance's end when the
    interval has passed; what is sent waits in `outbox` for the same. A tuple is admitted when it is read."""

    __slots__ = ("inbox", "looked_ns", "outbox")

    def __init__(self, *given: Any, **more: Any) -> None:
        self.inbox: list[tuple[int, bool, Lineage, Any]] = []
        self.outbox: list[tuple[int, CompiledPlan, int, Lineage, Any]] = []
        self.looked_ns = -MS
        super().__init__(*given, **more)

    def admit(self, at_ns: int, source: int, lineage: Lineage, payload: Any, size: int) -> None:
        self.inbox.append((source, True, lineage, payload))
        self._wake(at_ns)

    def receive(self, at_ns: int, epoch: int, stream: int, lineage: Lineage, payload: Any) -> None:
        self.inbox.append((stream, False, lineage, payload))
        self._wake(at_ns)

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        self.outbox.append((peer, loaded, stream, lineage, payload))

    def _dispatch(self, at_ns: int, _: Any) -> None:
        between = self._unit is None or not self._items or self._position == len(self._chain)
        if between and (self._unit is None or at_ns - self.looked_ns >= MEASURED.drain_every_ns):
            self._write(at_ns)
            if self.inbox:
                self._waking = True
                self._events.at(at_ns + MEASURED.drain_ns, ENDED, self._read, self.inbox.pop(0))
                return
        super()._dispatch(at_ns, _)
        if self._unit is None and (self.inbox or self.outbox):
            self._write(at_ns)
            self._wake(at_ns)

    def _write(self, at_ns: int) -> None:
        self.looked_ns = at_ns
        for peer, loaded, stream, lineage, payload in self.outbox:
            self.links[peer].send(at_ns, loaded, stream, lineage, payload)
        self.outbox = []

    def _read(self, at_ns: int, item: tuple[int, bool, Lineage, Any]) -> None:
        number, new, (source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns), payload = item
        assert self.committed is not None  # one plan, from the beginning
        loaded = self.committed.loaded
        if new:
            self.engine.admit(at_ns, loaded, number, (source, epoch, seq, ordinal, at_ns, at_ns), payload, 0)
        else:
            whose = (source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns)
            self.engine.receive(at_ns, loaded, number, whose, payload)
        self.looked_ns = -MS if self.inbox else at_ns
        self._waking = True
        self._events.at(at_ns, DISPATCHED, self._dispatch)


def shed(done: Simulation) -> int:
    return sum(fact.kind == records.SHED for trace in done.traces for fact in records.unpack_records(trace.records))


@pytest.mark.parametrize("seed", seeds(range(12)))
def test_no_bound_is_exceeded_where_sockets_wait_for_instances(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators anywhere, any sub-deadlines, a relay that is `fifo` now and then; who keeps the promise is not shed."""
    monkeypatch.setattr(cluster, "VirtualNode", Sockets)
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
    for turn in range(4):
        phases = {"s": dice.choice([0, 1, MS]), "t": dice.choice([0, 1, 3 * MS])}
        scenario = Scenario(bursts=6, seed=turn, phase_ns=phases, decision_ns=MEASURED.decision_ns)
        done = simulate(plan, scenario, registry())
        for name, output in done.outputs.items():
            bound_ns = told[name].from_admission_ns
            assert bound_ns is None or max(output.latencies_ns, default=0) <= bound_ns, (name, phases)
        assert not shed(done)
