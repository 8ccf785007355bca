"""A peer learns that its tuples were refused, also where the connection that told it broke."""

import socket
from pathlib import Path

from node_agent.core import plan as core
from node_agent.host.clock import clock_domain
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames

BOOT = 5
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
