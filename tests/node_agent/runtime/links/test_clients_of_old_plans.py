"""What a client says of before, and what it keeps of a plan that is gone."""

import socket
from pathlib import Path

import pytest

from node_agent.core import plan as core
from node_agent.host.clock import clock_domain
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links.source_role import SourceRole
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames
from protos.records import STATE_DRAINED

SECOND = 1_000_000_000
PLAN = core.Plan(
    query="q", node="a", index=0, hash=9, epoch=1, policy="edf", largest_batch=1,
    streams=(core.Stream(1, "s", "json", deadline_ns=SECOND), core.Stream(2, "o", "json", deadline_ns=SECOND)),
    sources=(core.Source(1, "in", 1),), operators=(core.Operator(1, "O1", "pass", (1,), 2, 1),),
    units=(core.Unit(1, (1,), SECOND, SECOND, (2,)),), outputs=(core.Output(1, "out", 2, SECOND),),
)  # fmt: skip


def _hello(runtime: Runtime, peer: str, resume_after: int = 0) -> list[frames.Frame]:
    """What is answered to it."""
    assert runtime.acceptor is not None
    with socket.create_connection(runtime.acceptor.address, 5) as end:
        end.sendall(frames.encode_hello(frames.Hello(peer, clock_domain(), 5, resume_after=resume_after)))
        end.setblocking(False)
        reader, found = frames.FrameReader(), list[frames.Frame]()
        for _ in range(200):
            runtime.step(wait=False)
            try:
                found += reader.feed(end.recv(1 << 16))
            except BlockingIOError:
                continue
            if found:
                break
        return found


@pytest.mark.parametrize("resume_after", [1 << 62, (1 << 63) - 2, (1 << 63) - 1, (1 << 64) - 1])
def test_a_sink_that_had_more_results_than_there_are_is_refused(resume_after: int, tmp_path: Path) -> None:
    with in_process(PLAN, tmp_path) as runtime:
        (refused,) = _hello(runtime, "sink:out", resume_after)
        assert isinstance(refused, frames.Refused) and refused.code == "hello_fields"
        (answer,) = _hello(runtime, "sink:out", (1 << 62) - 1)
        assert isinstance(answer, frames.Hello)


def test_a_connected_source_keeps_nothing_of_a_plan_that_is_gone(tmp_path: Path) -> None:
    with in_process(PLAN, tmp_path) as runtime:
        assert runtime.acceptor is not None
        with socket.create_connection(runtime.acceptor.address, 5) as end:
            end.sendall(frames.encode_hello(frames.Hello("source:in", clock_domain(), 5)))
            while not (
                found := [each.role for each in runtime.acceptor._accepted if isinstance(each.role, SourceRole)]
            ):
                runtime.step(wait=False)
            (role,), (deployed,) = found, runtime.plans.by_hash.values()
            assert role._feed.route is not None
            runtime.plans.unload(deployed, runtime.shared.now_ns(), STATE_DRAINED)
            runtime.tick(runtime.shared.now_ns())
            assert role._feed.route is None, "it leads to all operators of that plan"
