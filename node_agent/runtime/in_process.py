"""The runtime's loop inside the calling process, for benchmarks and tests: same code, same ring, same sockets.

with in_process(plan, Path("/dev/shm/bench")) as runtime:
    instances, ns = run_queued(runtime, tuples=100)
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from node_agent.core import plan as core
from node_agent.host.clock import clock_domain, new_boot, now_ns
from node_agent.host.live_ports import live_ports
from node_agent.host.network import SocketListener
from node_agent.host.trace_ring import TAKEN, WRITTEN, Ring, RingFacts
from node_agent.operators.registry import Registry
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import ENDED, Deployed
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.loop import Runtime, secured
from protos import records


@contextmanager
def in_process(
    plan: core.Plan, directory: Path, registry: Registry | None = None, tls: Path | None = None
) -> Iterator[Runtime]:
    """A runtime that has committed the plan and listens on a free port of 127.0.0.1. directory: for its ring; tls: with
    that identity. Raises TlsError.

    `runtime.acceptor.address` is where it listens; `runtime.step(wait=False)` runs what is ready.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{new_boot():016x}.ring"
    header = records.Header(plan.node, plan.index, new_boot(), clock_domain(), 50, now_ns(), 0)
    ring = Ring.create(path, header)
    listener = socket.create_server(("127.0.0.1", 0))
    shared = Shared(plan.node, live_ports(header.clock, header.drift_ppm), header.boot, 1, RingFacts(ring))
    security = secured(shared, tls)

    def changed(deployed: Deployed, why: str) -> None:
        if deployed.state == ENDED:
            runtime.outbox.remove(deployed.loaded)

    runtime = Runtime(shared, shared.facts, registry or Registry(), changed, security)
    runtime.attach(Acceptor(runtime.context, SocketListener(listener), security))
    try:
        plan_hash = f"{plan.hash:016x}".ljust(64, "0")
        runtime.add_plan(runtime.plans.load(plan, plan_hash), ())
        runtime.plans.commit(plan_hash)
        yield runtime
    finally:
        assert runtime.acceptor is not None
        runtime.acceptor.close_all()
        listener.close()
        path.unlink()


def queue(runtime: Runtime, tuples: int, payload: object = 0) -> None:
    """Admit that many tuples at the first source of the committed plan. The ring is emptied first, as control would."""
    cells = runtime.facts.ring.cells
    runtime.facts.publish()
    cells[TAKEN] = cells[WRITTEN]
    deployed = runtime.plans.committed
    assert deployed is not None
    source, engine = deployed.plan.sources[0], deployed.engine_slot.engine
    seqs = runtime.context.seqs
    for _ in range(tuples):
        seqs[source.id] = seq = seqs.get(source.id, 0) + 1
        at_ns = now_ns()
        engine.admit(at_ns, deployed.loaded.source_routes[source.id], (source.id, 1, seq, 0, at_ns, at_ns), payload, 0)


def run_queued(runtime: Runtime, tuples: int, payload: object = 0) -> tuple[int, int]:
    """`queue`, then run until the queues are empty. Returns (task instances, ns from the first to the last)."""
    queue(runtime, tuples, payload)
    deployed = runtime.plans.committed
    assert deployed is not None
    engine = deployed.engine_slot.engine
    before, began_ns = engine.dispatched, now_ns()
    while runtime.step(wait=False):
        pass
    return engine.dispatched - before, now_ns() - began_ns
