"""A peer learns that its tuples were refused, also where the connection that told it broke, and gives them up once."""

import socket
from dataclasses import replace
from pathlib import Path

from node_agent.core import plan as core
from node_agent.host.clock import clock_domain, now_ns
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames
from protos import records
from tests.node_agent.runtime.links.test_runtime_punctuation import Peer

BOOT = 5
MINUTE = 60 * 10**9
PLAN = core.Plan(
    "q", "a", 0, 1 << 60, 1, "edf", 1, (core.Stream(1, "in", "json"), core.Stream(2, "out", "json")),
    (core.Source(1, "in", 1),), (core.Operator(1, "O1", "pass", (1,), 2, cost_ns=1000),),
    (core.Unit(1, (1,), 10**9, 10**10, (2,)),), (core.Output(1, "out", 2, 10**10),),
)  # fmt: skip


def _told(runtime: Runtime, tuples: list[bytes]) -> list[frames.Frame]:
    """As the peer connects once more, and sends these tuples: what it is told, but for probes."""
    assert runtime.acceptor is not None
    with socket.create_connection(runtime.acceptor.address, 5) as end:
        end.sendall(frames.encode_hello(frames.Hello("node:b", clock_domain(), BOOT, incarnation=1)))
        if tuples:
            end.sendall(frames.encode_batch(1, 0, tuples))
        for _ in range(5):
            runtime.step(wait=False)
        read = list(frames.FrameReader().feed(end.recv(1 << 16)))
    for _ in range(2):
        runtime.step(wait=False)
    return [each for each in read if not isinstance(each, frames.Probe)]


def test_what_was_refused_is_told_again_before_the_acknowledgement_that_covers_it(tmp_path: Path) -> None:
    gone = frames.encode_tuple((1, 1, 1, 0, 0, 0), 0xDEAD, 1, b"1")
    with in_process(PLAN, tmp_path) as runtime:
        hello, refused, ack = _told(runtime, [gone] * 3)
        assert isinstance(hello, frames.Hello) and isinstance(refused, frames.Refused) and isinstance(ack, frames.Ack)
        assert (refused.link_seq, refused.tuples, refused.code, ack.upto) == (1, 3, "plan_unknown", 3)
        again, hello = _told(runtime, [])
        assert again == refused
        assert isinstance(hello, frames.Hello) and hello.resume_after == 3


def test_what_a_peer_has_refused_is_not_given_up_again_where_its_acknowledgement_is_lost(tmp_path: Path) -> None:
    """Else the plan counts fewer tuples in its links than none: it never drains, and no status can tell of it."""
    peer, out = Peer(), core.Stream(2, "out", "json", deadline_ns=MINUTE)
    sending = replace(PLAN, streams=(PLAN.streams[0], out), sends=((2, 1),), peers=(core.Peer(1, "b"),))
    with in_process(sending, tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()
        assert runtime.add_plan(deployed, ((1, "b", peer.address),)) == ""
        link = runtime.outbox.links["b"]
        at_ns = now_ns()
        for seq in (1, 2):
            runtime.outbox.send(at_ns, deployed.loaded, 1, 2, (1, 1, seq, 0, at_ns, at_ns), 7)
        peer.greet(runtime)
        while link.sender.unacknowledged < 2:
            runtime.step(wait=False)
        peer.end.sendall(frames.encode_refused("their plan is not on b", 1, "plan_unknown", 2))
        while deployed.held:
            runtime.step(wait=False)
        peer.end.close()
        while link.sender.connected:
            runtime.step(wait=False)
        assert len(link.sender) == 2
        link.sender.sweep(at_ns + 2 * MINUTE)
        assert not len(link.sender) and not deployed.held
        runtime.facts.publish()
        told = records.unpack_records(runtime.facts.ring.take(1 << 24))
        assert [each.seq for each in told if each.kind == records.GAVE_UP] == [1, 2]
    peer.listener.close()
