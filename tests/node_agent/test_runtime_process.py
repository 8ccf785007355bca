"""The runtime process's part: plans on disk when it starts, and a deployment that comes again with other addresses."""

import contextlib
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from node_agent import ipc
from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.registry import Registry
from node_agent.ring import Ring
from node_agent.runtime.process import Process
from node_agent.settings import Settings
from node_agent.state_dir import StateDir
from node_agent.wire import frames
from protos import plan_pb2, records
from tests.node_agent.live import chain_plan

A, B = (0, "a", "127.0.0.1:1"), (1, "b", "127.0.0.1:2")


def _sending_plan(**changes: Any) -> plan_pb2.LocalPlan:
    """The chain, its result sent to b."""
    return chain_plan(
        peers=[{"index": 1, "name": "b", "latency_ns": 1}], sends=[{"stream": 2, "peer": 1}], **changes
    )  # fmt: skip


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    """start(): a runtime on the state directory `s`, in the test."""
    state, rings, listeners = StateDir(tmp_path / "s"), list[Ring](), list[socket.socket]()

    def start() -> Process:
        boot = 71 + len(rings)
        ring = Ring.create(tmp_path / f"{boot}.ring", records.Header("a", 0, boot, "clock", 50, 1, 2))
        listener = socket.create_server(("127.0.0.1", 0))
        rings.append(ring)
        listeners.append(listener)
        settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 0), state, clock="clock", rt=False)
        ends = ipc.Channel.pair(), ipc.Channel.pair()
        made = Process(settings, ends[0][0], ends[1][0], listener, ring, 1, Registry(), False)
        made.ends = ends  # type: ignore[attr-defined]
        return made

    yield start
    for listener in listeners:
        listener.close()


def _store(state: Path, *wanted: tuple[plan_pb2.LocalPlan, int, State]) -> list[str]:
    plans, deployments = PlanStore(StateDir(state).plans), []
    for plan, epoch, condition in wanted:
        whole = f"plan {epoch}".encode()
        plan_hash = hashlib.sha256(whole).hexdigest()
        plans.put_plan(plan_hash, whole, plan.SerializeToString())
        deployments.append(Deployment(plan_hash, epoch, condition, plan.query, (A, B)))
    plans.write(Durable(9, 0, tuple(deployments)))
    return [each.hash for each in deployments]


def _plan_states(process: Process) -> list[tuple[str, int]]:
    process.shared.facts.publish()
    found = records.unpack_records(process.ring.take(1 << 20))
    return [(records.STATES[each.ref], each.w1) for each in found if each.kind == records.PLAN]


def test_a_draining_plan_never_admits_when_it_is_resumed(processes: Any, tmp_path: Path) -> None:
    old, new = _store(tmp_path / "s", (chain_plan(), 1, State.COMMITTED), (chain_plan(), 2, State.DRAINING))
    values = json.loads((tmp_path / "s/plans/state.json").read_bytes())
    values["plans"].reverse()  # the one that admits stands first
    (tmp_path / "s/plans/state.json").write_text(json.dumps(values))
    process = processes()
    process._resume()
    plans = process.runtime.plans
    assert (plans.state(old), plans.state(new)) == (State.COMMITTED, State.DRAINING)
    assert _plan_states(process) == [("prepared", 1), ("committed", 1), ("prepared", 2), ("draining", 2)]


def test_a_damaged_plan_file_is_not_resumed_and_the_others_are(processes: Any, tmp_path: Path) -> None:
    bad, good = _store(
        tmp_path / "s", (chain_plan(), 1, State.COMMITTED), (chain_plan(query="other"), 2, State.COMMITTED)
    )
    changed = chain_plan()
    changed.operators[0].hang_ns += 1  # a plan that could run
    (tmp_path / "s/plans" / f"{bad}.local").write_bytes(changed.SerializeToString())
    process = processes()
    process._resume()
    assert list(process.runtime.plans.by_hash) == [good]
    assert process.shared.counters["plans_damaged"] == process.shared.counters["plans_not_resumed"] == 1


def test_a_peer_that_moved_is_reached_after_the_plan_was_deployed_again(processes: Any, tmp_path: Path) -> None:
    (plan_hash,) = _store(tmp_path / "s", (_sending_plan(), 1, State.COMMITTED))
    process = processes()
    process._resume()
    link = process.runtime.outbox.links["b"]
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        for server in (first, second):
            routes = (A, (1, "b", f"127.0.0.1:{server.getsockname()[1]}"))
            ask = ipc.Prepare(1, plan_hash, 1, routes)
            assert process.calls[ipc.Prepare](ask) == (True, "")
            connection = link._connection
            assert process.calls[ipc.Prepare](ask) == (True, "") and link._connection is connection
            server.settimeout(0.02)
            end = None
            while end is None:
                process.runtime.step(wait=False)
                with contextlib.suppress(TimeoutError):
                    end, _ = server.accept()
            end.sendall(frames.encode_hello(frames.Hello("node:b", "clock", 9)))
            while not link.sender.connected:
                process.runtime.step(wait=False)
            end.close()


def test_a_route_that_is_missing_when_deployed_again_changes_nothing(processes: Any, tmp_path: Path) -> None:
    (plan_hash,) = _store(tmp_path / "s", (_sending_plan(), 1, State.COMMITTED))
    process = processes()
    process._resume()
    accepted, why = process.calls[ipc.Prepare](ipc.Prepare(1, plan_hash, 1, (A,)))
    assert not accepted and "no route to node b" in why
    assert process.runtime.outbox.links["b"].address == B[2]
