"""The real service, over real gRPC, with a runtime in memory at the other end of the channel."""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from node_agent.control.grpc_server import GrpcServer
from node_agent.control.server import Control
from node_agent.host import ipc
from node_agent.host.files.plan_files import COMMITTED, DRAINING, PREPARED, local_path
from node_agent.host.files.state_dir import StateDir
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import STATE, Ring, RingFacts
from protos import agent_pb2, agent_pb2_grpc, plan_pb2, trace_pb2
from protos.records import LOAD, NO_REF, STATE_ENDED, Header
from protos.segments import SEAL, Block, scan


def plan_bytes(node: str = "a", **changes: Any) -> bytes:
    """A whole plan with one operator on one node."""
    local: dict[str, Any] = {
        "version": 1,
        "query": "q",
        "node": node,
        "policy": {"name": "edf", "largest_batch": 1},
        "streams": [{"id": 1, "name": "s", "codec": "json"}, {"id": 2, "name": "o", "codec": "json"}],
        "sources": [{"id": 1, "name": "s", "stream": 1}],
        "operators": [{"id": 1, "name": "o", "run": "pass", "inputs": [1], "output": 2}],
        "units": [{"id": 1, "operators": [1], "sub_deadline_ns": "5", "deadline_ns": "5", "exits": [2]}],
        "outputs": [{"id": 1, "name": "out", "stream": 2, "deadline_ns": "5"}],
        "installed": [{"run": "pass", "version": "1", "code": "0" * 64}],
    } | changes
    return json.dumps({"nodes": {node: local}}, sort_keys=True, separators=(",", ":")).encode()


def prepare(plan: bytes, epoch: int = 1, **changes: Any) -> agent_pb2.PrepareRequest:
    values: dict[str, Any] = {"plan": plan, "hash": hashlib.sha256(plan).digest(), "epoch": epoch} | changes
    return agent_pb2.PrepareRequest(**values)


class MemoryRuntime:
    """Answers as the runtime does; reads the plan files that control wrote."""

    def __init__(self, node: "Node", boot: int, core: int = 0) -> None:
        self.node, self.boot, self.core = node, boot, core
        self.mine, self.theirs = ipc.Channel.pair()
        self.states: dict[str, int] = {}
        self.log: list[ipc.Message] = []
        self.why_not = ""
        self.running = True
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while self.running:
            for message, _ in self.mine.receive():
                self.log.append(message)
                self.mine.send(self._answer(message))
            time.sleep(0.001)

    def _answer(self, message: Any) -> ipc.Message:
        match message:
            case ipc.Prepare(id_, hash_):
                plan_pb2.LocalPlan.FromString(local_path(self.node.state.plans, hash_, self.core).read_bytes())
                if not self.why_not:
                    self.states.setdefault(hash_, PREPARED)
                return ipc.PlanAnswer(id_, not self.why_not, self.why_not, self.states.get(hash_, 0))
            case ipc.Commit(id_, hash_):
                self.states[hash_] = COMMITTED
            case ipc.Drain(id_, hash_):
                self.states[hash_] = DRAINING
            case ipc.Abort(id_, hash_):
                self.states.pop(hash_, None)
            case ipc.AskStatus(id_):
                plans = tuple((hash_, 1, state, "q", 3, 2, 1) for hash_, state in self.states.items())
                return ipc.Status(id_, self.boot, True, 5, 25, 7, 8, 9, 10, 11, plans, {"shed": 4})
            case ipc.AskOperators(id_):
                return ipc.Operators(
                    id_, (("pass", "1", "0" * 64, (0,)),), ((str(self.node.source), self.node.sha256),)
                )
            case ipc.AskProfile(id_):
                row = (1, "o", False, 10, 100, 120, 50, 40, 2500.0, (9, 51), (9, 1), agent_pb2.MEASURED_AGE)
                return ipc.Profile(id_, (row, (2, "p", *row[2:]))[message.first :][:1], 1 - message.first)
        return ipc.PlanAnswer(message.id, True, "", self.states.get(message.hash, 0))

    def say(self, message: ipc.Message) -> None:
        self.mine.send(message)

    def end(self) -> None:
        self.running = False
        self.thread.join()
        self.mine.close()


class Node:
    """Control in a thread of this process, as the supervisor would start it, and a client to it."""

    def __init__(self, root: Path, cores: int = 1) -> None:
        self.state, self.cores = StateDir(root), cores
        self.source = root / "operators.py"
        self.source.write_text("one = 1")
        self.sha256 = hashlib.sha256(b"one = 1").hexdigest()
        self.start()

    def start(self) -> None:
        self.supervisor, theirs = ipc.Channel.pair()
        settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 7701), self.state, clock="c", cores=self.cores)
        self.code: list[int] = []
        control = Control(settings, theirs, GrpcServer(settings))
        self.thread = threading.Thread(target=lambda: self.code.append(asyncio.run(control.run())), daemon=True)
        self.thread.start()
        ready = self.await_message()
        assert isinstance(ready, ipc.ControlReady)
        self.port = ready.port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{ready.port}")
        self.stub: Any = agent_pb2_grpc.AgentStub(self.channel)  # type: ignore[no-untyped-call]
        self.start_runtime(1)

    def await_message(self) -> ipc.Message:
        message: ipc.Message = wait_for(lambda: next((message for message, _ in self.supervisor.receive()), None))
        return message

    def start_runtime(self, boot: int) -> None:
        self.runtime = MemoryRuntime(self, boot)
        self.supervisor.send(ipc.RuntimeStarted(boot, boot, ""), self.runtime.theirs.fileno())
        wait_for(lambda: self.stub.Status(agent_pb2.StatusRequest()).boot == boot)
        self.runtime.theirs.close()

    def stop(self) -> None:
        self.runtime.end()
        self.channel.close()
        self.supervisor.send(ipc.Stop())
        self.thread.join(10)
        assert self.code == [0]
        self.supervisor.close()

    def plan_states(self) -> dict[int, str]:
        status = self.stub.Status(agent_pb2.StatusRequest())
        return {plan.epoch: agent_pb2.PlanState.Name(plan.state) for plan in status.plans}


def wait_for(condition: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return value


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "state")
    yield node
    node.stop()


def test_prepare_commit_stop(node: Node) -> None:
    plan = plan_bytes()
    hash_ = hashlib.sha256(plan).digest()
    reply = node.stub.Prepare(prepare(plan))
    assert (reply.accepted, reply.why, reply.state) == (True, "", agent_pb2.PREPARED)
    reply = node.stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=1))
    assert reply.accepted and reply.state == agent_pb2.COMMITTED
    assert node.runtime.states == {hash_.hex(): COMMITTED}, "who hears of the commit may send tuples at once"
    status = node.stub.Status(agent_pb2.StatusRequest())
    assert (status.runtime_alive, status.uptime_ns, status.busy_ns, status.records_written) == (True, 20, 7, 10)
    (told,) = status.plans
    assert (told.hash, told.query, told.ready, told.waiting, told.unacknowledged) == (hash_, "q", 3, 2, 1)
    assert {counter.name: counter.value for counter in status.counters} == {
        "highest_epoch": 1, "plans_kept": 1, "shed": 4,
    }  # fmt: skip
    reply = node.stub.Stop(agent_pb2.StopRequest(hash=hash_, epoch=1))
    assert reply.accepted and reply.state == agent_pb2.DRAINING
    node.runtime.say(ipc.PlanChanged(hash_.hex(), 1, agent_pb2.ENDED, "drained"))
    wait_for(lambda: not node.plan_states())
    files = sorted(path.name for path in node.state.plans.iterdir())
    assert files == [f"{hash_.hex()}.json", "reserve", "state.json"], "the plan is kept for its run"
    (document,) = node.stub.Plans(agent_pb2.PlansRequest())
    assert (document.hash, document.plan) == (hash_, plan)
    assert list(node.stub.Plans(agent_pb2.PlansRequest(held=[hash_]))) == [], "what is held does not come again"
    assert list(node.stub.Plans(agent_pb2.PlansRequest(held=[hash_], forget=True))) == []
    assert list(node.stub.Plans(agent_pb2.PlansRequest())) == []
    assert sorted(path.name for path in node.state.plans.iterdir()) == ["reserve", "state.json"]


def test_a_kept_plan_that_is_damaged_is_named(node: Node) -> None:
    plan = plan_bytes()
    hash_ = hashlib.sha256(plan).digest()
    node.stub.Prepare(prepare(plan))
    node.stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=1))
    (node.state.plans / f"{hash_.hex()}.json").write_bytes(b"{}")
    (document,) = node.stub.Plans(agent_pb2.PlansRequest())
    assert (document.hash, document.plan) == (hash_, b"") and "is damaged" in document.why


def test_status_names_the_operators_and_what_was_edited(node: Node) -> None:
    def told() -> list[tuple[str, str, str, bool]]:
        status = node.stub.Status(agent_pb2.StatusRequest())
        return [(each.run, each.version, each.code, each.edited) for each in status.operators]

    assert told() == [("pass", "1", "0" * 64, False)]
    node.source.write_text("one = 2")
    assert told() == [("pass", "1", "0" * 64, True)]
    node.source.unlink()
    assert told() == [("pass", "1", "0" * 64, True)]


def test_a_plan_that_does_not_say_what_it_is_for_is_refused(node: Node) -> None:
    reply = node.stub.Prepare(prepare(plan_bytes(installed=[])))
    assert not reply.accepted and "does not say which version and code of pass it is for; plan again" in reply.why
    bad = plan_bytes(installed=[{"run": "pass", "version": "1", "code": "12"}])
    reply = node.stub.Prepare(prepare(bad))
    assert not reply.accepted and "pass is planned with a version or a hash of its code that is none" in reply.why


def test_a_tuple_that_proves_the_commit_makes_it_durable(node: Node) -> None:
    plan = plan_bytes()
    node.stub.Prepare(prepare(plan))
    node.runtime.say(ipc.PlanChanged(hashlib.sha256(plan).hexdigest(), 1, COMMITTED, "a tuple"))
    wait_for(lambda: node.plan_states() == {1: "COMMITTED"})


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (prepare(plan_bytes(), hash=b"x" * 32), "does not have the hash"),
        (prepare(plan_bytes(), hash=b"x"), "has 32 bytes"),
        (prepare(plan_bytes(), epoch=0), "epochs are between"),
        (prepare(b"{"), "not a plan"),
        (prepare(b"[" * 100_000), "not a plan"),
        (prepare(b"[]"), "not a plan"),
        (prepare(b'{"nodes":[]}'), "not a plan"),
        (prepare(b'{"nodes":{"a":3}}'), "cannot be read"),
        (prepare(plan_bytes("b")), "the plan is for b"),
        (prepare(plan_bytes(strange=1)), "cannot be read"),
        (prepare(plan_bytes(node="b").replace(b'{"b":', b'{"a":')), "is for 'b'"),
        (prepare(plan_bytes(units=[])), "exactly one unit"),
        (prepare(plan_bytes(policy={"name": "no"})), "unknown policy"),
        (prepare(plan_bytes(peers=[{"index": 1, "name": "b"}])), "no route to node b"),
        (prepare(plan_bytes(), routes=[agent_pb2.Route(index=1, node="b", address="10.0.0.1:7")]), "without TLS"),
        (prepare(plan_bytes(), routes=[agent_pb2.Route(index=1, node="b", address="here")]), "no address"),
        (prepare(plan_bytes(), routes=[agent_pb2.Route()] * 300), "routes came"),
    ],
)
def test_what_is_not_a_plan_for_this_node_is_refused(node: Node, request_: agent_pb2.PrepareRequest, why: str) -> None:
    reply = node.stub.Prepare(request_)
    assert not reply.accepted and why in reply.why
    assert node.plan_states() == {} and node.runtime.states == {}


def test_an_operator_that_is_not_installed_is_refused(node: Node) -> None:
    node.runtime.why_not = "operator 'my.x' is not installed"
    reply = node.stub.Prepare(prepare(plan_bytes()))
    assert not reply.accepted and "my.x" in reply.why
    assert list(node.state.plans.iterdir()) == [], "a refused plan leaves no file"


def test_a_message_that_is_too_large_is_refused_and_stops_nothing(node: Node) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.stub.Prepare(agent_pb2.PrepareRequest(plan=bytes(17 << 20)))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert node.stub.Health(agent_pb2.HealthRequest()).serving


def test_after_a_restart_of_control_the_committed_plan_runs_and_the_prepared_one_stays_prepared(node: Node) -> None:
    plan, other = plan_bytes(), plan_bytes(query="other")
    node.stub.Prepare(prepare(plan))
    node.stub.Commit(agent_pb2.CommitRequest(hash=hashlib.sha256(plan).digest(), epoch=1))
    node.stub.Prepare(prepare(other, 2))
    node.stop()
    node.start()
    assert node.plan_states() == {1: "COMMITTED", 2: "PREPARED"}
    wait_for(lambda: len(node.runtime.states) == 2)
    assert node.runtime.states == {
        hashlib.sha256(plan).hexdigest(): COMMITTED,
        hashlib.sha256(other).hexdigest(): PREPARED,
    }


def test_a_runtime_that_is_gone_is_said_and_its_successor_told_everything(node: Node) -> None:
    plan = plan_bytes()
    node.stub.Prepare(prepare(plan))
    node.stub.Commit(agent_pb2.CommitRequest(hash=hashlib.sha256(plan).digest(), epoch=1))
    node.runtime.end()
    node.supervisor.send(ipc.RuntimeEnded(1, "crashed"))
    wait_for(lambda: not node.stub.Status(agent_pb2.StatusRequest()).runtime_alive)
    health = node.stub.Health(agent_pb2.HealthRequest())
    assert not health.serving and "runtime" in health.why
    refused = node.stub.Prepare(prepare(plan_bytes(query="z"), 2))
    assert not refused.accepted and "runtime is not running" in refused.why
    node.start_runtime(2)
    wait_for(lambda: node.runtime.states == {hashlib.sha256(plan).hexdigest(): COMMITTED})


def test_damaged_plans_are_reported_by_health(node: Node) -> None:
    plan = plan_bytes()
    node.stub.Prepare(prepare(plan))
    node.stop()
    path = local_path(node.state.plans, hashlib.sha256(plan).hexdigest())
    path.write_bytes(path.read_bytes() + b"\0")
    node.start()
    assert node.plan_states() == {} and not node.runtime.states
    assert "damaged" in node.stub.Health(agent_pb2.HealthRequest()).why


def test_profile(node: Node) -> None:
    cost, other = node.stub.Profile(agent_pb2.ProfileRequest(hash=b"x" * 32)).costs
    assert (cost.operator_id, cost.name, cost.tuples, cost.total_ns, cost.worst_ns) == (1, "o", 10, 100, 50)
    assert (cost.elapsed_ns, cost.later_worst_ns, cost.squares_ns2, cost.degraded) == (120, 40, 2500.0, False)
    assert (list(cost.bucket_ns), list(cost.bucket_calls)) == ([9, 51], [9, 1])
    assert other.name == "p" and other.of == agent_pb2.MEASURED_AGE, "of an answer that is one of several"


def test_the_trace_comes_in_chunks_and_what_is_held_is_freed(node: Node) -> None:
    header = Header("a", 0, 77, "c", 50, 1, 1)
    ring = Ring.create(node.state.rings.path_of(77), header)
    facts = RingFacts(ring)
    noise = Random(1)  # does not deflate
    for number in range(3000):
        facts.write(LOAD, 0, NO_REF, 0, 0, number, *(noise.getrandbits(62) for _ in range(4)))
    facts.publish()
    chunks = list(node.stub.Trace(trace_pb2.TraceRequest()))
    assert [chunk.first for chunk in chunks] == [0, 1023, 2046]
    assert {chunk.written for chunk in chunks} == {3000} and not any(chunk.ended for chunk in chunks)
    ring.cells[STATE] = STATE_ENDED
    held = [trace_pb2.Position(boot=77, records=2046), trace_pb2.Position(boot=99, records=1)]
    chunks = list(node.stub.Trace(trace_pb2.TraceRequest(held=held)))
    assert [chunk.first for chunk in chunks] == [2046] and chunks[-1].ended and not chunks[-1].crashed
    rest, seal = [found for _, found in scan(chunks[-1].blocks, 0) if isinstance(found, Block)]
    assert (rest.count, seal.count, seal.flags) == (954, 0, SEAL)
    held[0].records = 3000
    (last,) = node.stub.Trace(trace_pb2.TraceRequest(held=held))
    assert last.ended and len(last.blocks) == 64 and last.written == 3000
    assert not node.state.rings.paths()


def test_a_spool_that_cannot_be_read_is_said_in_a_line(node: Node) -> None:
    facts = RingFacts(Ring.create(node.state.rings.path_of(77), Header("a", 0, 77, "c", 50, 1, 1)))
    facts.write(LOAD, 0, NO_REF, 0, 0, 0, 1)
    facts.publish()
    assert list(node.stub.Trace(trace_pb2.TraceRequest()))
    (file,) = node.state.spool.glob("*/*.rec")
    file.unlink()
    file.mkdir()
    with pytest.raises(grpc.RpcError) as caught:
        list(node.stub.Trace(trace_pb2.TraceRequest()))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "the spool cannot be read (Is a directory); mend the disk and collect again"


def test_a_place_without_a_runtime_is_named_and_takes_no_plan_until_it_is_back(tmp_path: Path) -> None:
    node = Node(tmp_path / "state", cores=2)
    first = node.runtime
    try:
        health = node.stub.Health(agent_pb2.HealthRequest())
        assert not health.serving and health.why == "the runtime of a.1 does not answer"
        part = json.loads(plan_bytes())["nodes"]["a"]
        parts = {"a": part, "a.1": part | {"node": "a.1", "operators": [], "units": [], "sources": [], "outputs": []}}
        both = json.dumps({"nodes": parts}).encode()
        refused = node.stub.Prepare(prepare(both))
        assert not refused.accepted and "runtime is not running" in refused.why
        second = MemoryRuntime(node, 2, core=1)
        node.supervisor.send(ipc.RuntimeStarted(2, 2, "", 1), second.theirs.fileno())
        wait_for(lambda: node.stub.Status(agent_pb2.StatusRequest()).runtime_alive)
        second.why_not = "operator 'my.x' is not installed"
        refused = node.stub.Prepare(prepare(both))
        assert not refused.accepted and "my.x" in refused.why
        wait_for(lambda: not first.states and not second.states)
        assert {each.name for each in node.state.plans.iterdir()} <= {"reserve"}, "nothing is half prepared"
        second.why_not = ""
        assert node.stub.Prepare(prepare(both)).accepted and set(first.states.values()) == {PREPARED}
        hash_ = hashlib.sha256(both).digest()
        assert node.stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=1)).accepted
        assert first.states == second.states == {hash_.hex(): COMMITTED}
        status = node.stub.Status(agent_pb2.StatusRequest())
        assert [(each.node, each.boot, each.plans[0].ready) for each in status.places] == [("a", 1, 3), ("a.1", 2, 3)]
        assert status.plans[0].ready == 6 and len(node.stub.Profile(agent_pb2.ProfileRequest(hash=hash_)).costs) == 4
        second.end()
    finally:
        node.stop()


def test_a_port_that_is_taken_is_said(node: Node, tmp_path: Path) -> None:
    mine, theirs = ipc.Channel.pair()
    settings = Settings("b", ("127.0.0.1", node.port), ("127.0.0.1", 0), StateDir(tmp_path / "other"))
    assert asyncio.run(Control(settings, theirs, GrpcServer(settings)).run()) == 1
    ((message, _),) = mine.receive()
    assert isinstance(message, ipc.Failed) and f"port {node.port}" in message.why and "taken" in message.why
    mine.close()
    theirs.close()


def test_only_loopback_without_tls(tmp_path: Path) -> None:
    mine, theirs = ipc.Channel.pair()
    settings = Settings("b", ("0.0.0.0", 0), ("127.0.0.1", 0), StateDir(tmp_path))
    assert asyncio.run(Control(settings, theirs, GrpcServer(settings)).run()) == 1
    ((message, _),) = mine.receive()
    assert isinstance(message, ipc.Failed) and "loopback" in message.why
    mine.close()
    theirs.close()


def test_control_ends_when_the_supervisor_is_gone(tmp_path: Path) -> None:
    node = Node(tmp_path / "state")
    node.supervisor.close()
    node.thread.join(10)
    assert node.code == [1]
    node.runtime.end()
    node.channel.close()
