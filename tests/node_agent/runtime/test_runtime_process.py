"""The runtime process's part: plans on disk when it starts, and a deployment that comes again with other addresses."""

import contextlib
import hashlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.core.incremental import finish
from node_agent.host import ipc
from node_agent.host.clock import clock_domain, now_ns
from node_agent.host.files.durable_files import checked, with_check
from node_agent.host.files.state_dir import StateDir
from node_agent.host.network import SocketListener
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import Ring, TakenOver, peer_key
from node_agent.link.receiver import Inbox
from node_agent.operators.registry import Registry
from node_agent.runtime.process import Process
from node_agent.wire import frames
from protos import plan_pb2, records
from tests.node_agent.live import chain_plan

Route = tuple[int, str, str]
A, B = (0, "a", "127.0.0.1:1"), (1, "b", "127.0.0.1:2")
MOVED = (1, "b", "127.0.0.1:3")


def _sending_plan(**changes: Any) -> plan_pb2.LocalPlan:
    """The chain, its result sent to b."""
    return chain_plan(
        peers=[{"index": 1, "name": "b", "latency_ns": 1}], sends=[{"stream": 2, "peer": 1}], **changes
    )  # fmt: skip


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    """start(): a runtime on the state directory `s`, in the test."""
    state, rings, listeners = StateDir(tmp_path / "s"), list[Ring](), list[socket.socket]()

    def start(taken_over: Sequence[tuple[int, TakenOver]] = ()) -> Process:
        boot = 71 + len(rings)
        ring = Ring.create(tmp_path / f"{boot}.ring", records.Header("a", 0, boot, "clock", 50, 1, 2))
        listener = socket.create_server(("127.0.0.1", 0))
        rings.append(ring)
        listeners.append(listener)
        settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 0), state, clock="clock", rt=False)
        ends = ipc.Channel.pair(), ipc.Channel.pair()
        made = Process(
            settings, ends[0][0], ends[1][0], SocketListener(listener), ring, 1, Registry(), False, taken_over
        )
        made.ends = ends  # type: ignore[attr-defined]
        return made

    yield start
    for listener in listeners:
        listener.close()


def _store(
    state: Path, *wanted: tuple[plan_pb2.LocalPlan, int, State], routes: Sequence[Route] = (), again: int = 0
) -> list[str]:
    """routes: to b, a plan each. again: the epoch in which the first one was deployed once more."""
    plans, deployments = PlanStore(StateDir(state).plans), []
    for plan, epoch, condition in wanted:
        whole = f"plan {epoch}".encode()
        plan_hash = hashlib.sha256(whole).hexdigest()
        plans.put_plan(plan_hash, whole, {0: plan.SerializeToString()})
        to_b = routes[len(deployments)] if routes else B
        once_more = 0 if deployments else again
        deployments.append(Deployment(plan_hash, epoch, condition, plan.query, (A, to_b), again=once_more))
    plans.write(Durable(9, 0, tuple(deployments)))
    return [each.hash for each in deployments]


def _plan_states(process: Process) -> list[tuple[str, int]]:
    process.shared.facts.publish()
    found = records.unpack_records(process.ring.take(1 << 20))
    return [(records.STATES[each.state], each.plan_epoch) for each in found if isinstance(each, records.Plan)]


def test_a_draining_plan_never_admits_when_it_is_resumed(processes: Any, tmp_path: Path) -> None:
    old, new = _store(tmp_path / "s", (chain_plan(), 1, State.COMMITTED), (chain_plan(), 2, State.DRAINING))
    values = checked((tmp_path / "s/plans/state.json").read_bytes())
    values["plans"].reverse()  # the one that admits stands first
    (tmp_path / "s/plans/state.json").write_bytes(with_check(values))
    process = processes()
    process.resume()
    plans = process.runtime.plans
    assert (plans.state(old), plans.state(new)) == (State.COMMITTED, State.DRAINING)
    assert _plan_states(process) == [("prepared", 1), ("committed", 1), ("prepared", 2), ("draining", 2)]


@pytest.mark.parametrize(
    "drains", [0, 1], ids=["the older one", "the younger one, after which the other was deployed again"]
)
def test_a_plan_that_drains_does_not_say_where_peers_are_when_it_is_resumed(
    drains: int, processes: Any, tmp_path: Path
) -> None:
    states = [State.COMMITTED, State.COMMITTED]
    states[drains] = State.DRAINING
    routes = [MOVED, MOVED]
    routes[drains] = B
    wanted = (_sending_plan(), 1, states[0]), (_sending_plan(), 2, states[1])
    _store(tmp_path / "s", *wanted, routes=routes, again=3 * drains)
    process = processes()
    process.resume()
    assert process.runtime.outbox.links["b"].address == MOVED[2]


def test_the_last_decision_says_where_peers_are_and_not_what_was_prepared_before(
    processes: Any, tmp_path: Path
) -> None:
    wanted = (_sending_plan(), 1, State.COMMITTED), (_sending_plan(), 2, State.PREPARED)
    _store(tmp_path / "s", *wanted, routes=[MOVED, B], again=3)
    process = processes()
    process.resume()
    assert process.runtime.outbox.links["b"].address == MOVED[2]


def test_a_damaged_plan_file_is_not_resumed_and_the_others_are(processes: Any, tmp_path: Path) -> None:
    bad, good = _store(
        tmp_path / "s", (chain_plan(), 1, State.COMMITTED), (chain_plan(query="other"), 2, State.DRAINING)
    )
    changed = chain_plan()
    changed.operators[0].hang_ns += 1  # a plan that could run
    (tmp_path / "s/plans" / f"{bad}.local").write_bytes(changed.SerializeToString())
    process = processes()
    process.resume()
    assert list(process.runtime.plans.by_hash) == [good]
    assert process.shared.counters["plans_damaged"] == process.shared.counters["plans_not_resumed"] == 1


def test_a_peer_that_moved_is_reached_after_the_plan_was_deployed_again(processes: Any, tmp_path: Path) -> None:
    (plan_hash,) = _store(tmp_path / "s", (_sending_plan(), 1, State.COMMITTED))
    process = processes()
    process.resume()
    link = process.runtime.outbox.links["b"]
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        for server in (first, second):
            routes = (A, (1, "b", f"127.0.0.1:{server.getsockname()[1]}"))
            assert finish(process.prepare(plan_hash, 1, routes, 1)) == (True, "")
            connection = link._connection
            assert finish(process.prepare(plan_hash, 1, routes, 1)) == (True, "") and link._connection is connection
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


def test_a_plan_that_is_told_again_does_not_take_back_where_a_later_deployment_says_that_a_peer_is(
    processes: Any, tmp_path: Path
) -> None:
    old, new = _store(
        tmp_path / "s", (_sending_plan(), 1, State.COMMITTED), (_sending_plan(query="other"), 2, State.COMMITTED)
    )
    process = processes()
    process.resume()
    link = process.runtime.outbox.links["b"]
    moved = (1, "b", "127.0.0.9:1")
    assert finish(process.prepare(new, 2, (A, moved), 3)) == (True, "") and link.address == moved[2]
    assert finish(process.prepare(old, 1, (A, B), 1)) == (True, "") and link.address == moved[2]
    assert finish(process.prepare(old, 1, (A, B), 4)) == (True, "") and link.address == B[2]


def test_a_route_that_is_missing_when_deployed_again_changes_nothing(processes: Any, tmp_path: Path) -> None:
    (plan_hash,) = _store(tmp_path / "s", (_sending_plan(), 1, State.COMMITTED))
    process = processes()
    process.resume()
    accepted, why = finish(process.prepare(plan_hash, 1, (A,), 1))
    assert not accepted and "no route to node b" in why
    assert process.runtime.outbox.links["b"].address == B[2]


def _say(process: Process, data: bytes, frames_wanted: int) -> list[frames.Frame]:
    """Speak to the runtime over a connection of one's own; the first frames that it answers."""
    assert process.runtime.acceptor is not None
    reader, got = frames.FrameReader(), list[frames.Frame]()
    with socket.create_connection(process.runtime.acceptor.address, 5) as end:
        end.sendall(data)
        end.settimeout(0.01)
        while len(got) < frames_wanted:
            process.runtime.step(wait=False)
            with contextlib.suppress(TimeoutError):
                got += reader.feed(end.recv(65536))
    return got


def test_what_a_killed_incarnation_promised_is_not_taken_twice(processes: Any, tmp_path: Path) -> None:
    _store(tmp_path / "s", (chain_plan(), 1, State.COMMITTED))
    node, source = peer_key("node:b"), peer_key("source:in")
    process = processes(
        [(7, TakenOver(node, 5, 40, 0)), (7, TakenOver(source, 6, 3, 11)), (7, TakenOver(source, 6, 4, 12))]
    )
    process.resume()
    (hello,) = _say(process, frames.encode_hello(frames.Hello("node:b", "clock", 5)), 1)
    assert isinstance(hello, frames.Hello) and hello.resume_after == 40
    (hello,) = _say(process, frames.encode_hello(frames.Hello("node:b", "clock", 9)), 1)
    assert isinstance(hello, frames.Hello) and hello.resume_after == 0  # another incarnation of it
    for _ in range(2):  # the source may be cut off again before it has read
        hello, ack = _say(process, frames.encode_hello(frames.Hello("source:in", "clock", 6, 0, 3)), 2)
        assert isinstance(hello, frames.Hello) and hello.resume_after == 4
        assert isinstance(ack, frames.Ack) and ack.admitted == [frames.Answer(4, 7, 12)]


def test_a_tuple_between_promised_ones_whose_refusal_was_not_told_is_decided_anew(
    processes: Any, tmp_path: Path
) -> None:
    _store(tmp_path / "s", (chain_plan(), 1, State.COMMITTED))
    source = peer_key("source:in")
    process = processes([(7, TakenOver(source, 6, link_seq, link_seq + 8)) for link_seq in (3, 4, 6)])
    process.resume()
    hello = frames.encode_hello(frames.Hello("source:in", clock_domain(), 6, 0, 3))
    at_ns = now_ns()
    three = [frames.encode_tuple((0, 0, 0, 0, at_ns, at_ns), 0, 0, b"1") for _ in range(3)]
    greeted, ack = _say(process, hello + frames.encode_batch(5, now_ns, three), 2)
    assert isinstance(greeted, frames.Hello) and greeted.resume_after == 4
    assert isinstance(ack, frames.Ack) and ack.upto == 7
    answers = {each.link_seq: (each.epoch, each.seq) for each in ack.admitted}
    assert answers == {4: (7, 12), 6: (7, 14), 5: (1, 1), 7: (1, 2)}


def test_a_connection_that_broke_is_forgotten_though_its_descriptor_is_reused(processes: Any, tmp_path: Path) -> None:
    _store(tmp_path / "s", (chain_plan(), 1, State.COMMITTED))
    process = processes()
    process.resume()
    acceptor, runtime = process.runtime.acceptor, process.runtime
    assert acceptor is not None
    for round_ in range(3):
        with socket.create_connection(acceptor.address, 5) as end:
            end.sendall(frames.encode_hello(frames.Hello("sink:out", "clock", round_ + 1)))
            while not acceptor.sinks.get("out"):
                runtime.step(wait=False)
            (sink,) = acceptor.sinks["out"]
            sink.connection.close()  # as where a result cannot be written
            with socket.create_connection(acceptor.address, 5):
                runtime.step(wait=False)
        while acceptor._accepted:
            runtime.step(wait=False)
            runtime.tick(now_ns())
        assert acceptor.sinks == {}


def test_a_node_that_comes_back_is_known_after_many_sources_have_come_and_gone() -> None:
    inbox = Inbox(most_receivers=4)
    receiver = inbox.hello("node:b", 5, alone=True)
    for boot in range(1, 10):
        inbox.hello("source:in", boot, alone=False)
    assert inbox.hello("node:b", 5, alone=True) is receiver
    assert inbox.hello("node:b", 5, alone=True) is receiver
    for number in range(10):
        inbox.hello(f"node:{number}", 1, alone=True)
    assert len(inbox._nodes) == len(inbox._sources) == 4


def test_a_control_whose_end_a_failed_message_has_told_leaves_nothing_that_wakes_the_runtime(processes: Any) -> None:
    process = processes()
    (_, supervisor), (_, control) = process.ends
    new, given = ipc.Channel.pair()
    supervisor.send(ipc.NewChannel(), given.fileno())  # read before the end of the old one
    control.close()
    assert not process.control.send(ipc.PlanChanged("h", 1, "ended", "")) and process.control.closed
    for _ in range(3):
        process.runtime.step(wait=False)
    new.send(ipc.AskStatus(7))
    for _ in range(3):
        process.runtime.step(wait=False)
    assert [message.id for message, _ in new.receive() if isinstance(message, ipc.Status)] == [7]
    process.shared.network.wait(0)
    assert not process.runtime.requests, "the end of the old control is still waited for, and is always ready"
