"""However much has come over the data sockets, one drain takes in a bounded number of tuples."""

import socket
from pathlib import Path

import pytest

from node_agent.core import plan as core
from node_agent.host.clock import clock_domain
from node_agent.link.limits import MAX_BATCH_TUPLES
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links.acceptor import DRAIN_TUPLES
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames

SENT = 3000
PLAN = core.Plan(
    "q", "a", 0, 1 << 60, 1, "edf", 1, (core.Stream(1, "in", "json"), core.Stream(2, "out", "json")),
    (core.Source(1, "in", 1),), (core.Operator(1, "O1", "pass", (1,), 2, cost_ns=1000),),
    (core.Unit(1, (1,), 10**9, 10**10, (2,)),), (core.Output(1, "out", 2, 10**10),),
)  # fmt: skip


def _source(runtime: Runtime, boot: int) -> socket.socket:
    assert runtime.acceptor is not None
    end = socket.create_connection(runtime.acceptor.address, 5)
    end.sendall(frames.encode_hello(frames.Hello("source:in", clock_domain(), boot)))
    return end


@pytest.mark.parametrize("size", [1, 50, MAX_BATCH_TUPLES], ids=["one by one", "batches", "one batch"])
def test_a_drain_takes_in_so_many_and_the_rest_comes_later(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [frames.encode_tuple((0, 0, 0, 0, 0, 0), 0, 0, b"1") for _ in range(SENT)]
    with in_process(PLAN, tmp_path) as runtime:
        arrivals, drains = runtime.context.arrivals, list[int]()

        def counted(at_ns: int) -> None:
            drains.append(len(arrivals._first) + len(arrivals._then))

        monkeypatch.setattr(runtime.pulled, "due_ns", 0)
        monkeypatch.setattr(runtime.pulled, "release", counted)  # what is called next is `arrivals.apply`
        ends = [_source(runtime, boot) for boot in (1, 2)]
        for end in ends:
            at = 0
            while at < SENT:
                end.sendall(frames.encode_batch(at + 1, 0, data[at : at + size]))
                at += size
        while runtime.context.seqs.get(1, 0) < 2 * SENT:
            runtime.step(wait=False)
        assert sum(drains) == 2 * SENT, "each, and none twice"
        assert max(drains) < DRAIN_TUPLES + frames.MOST_TUPLES
        assert runtime.acceptor is not None and not runtime.acceptor.waiting
        for end in ends:
            end.close()


def test_what_came_before_its_connection_closed_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one drain sees both: the next incarnation must not take it again."""
    count = DRAIN_TUPLES + 44
    with in_process(PLAN, tmp_path) as runtime:
        acceptor, drains = runtime.acceptor, list[int]()
        assert acceptor is not None
        end, later = _source(runtime, 7), socket.create_connection(acceptor.address, 5)
        for _ in range(3):
            runtime.step(wait=False)

        def drained(at_ns: int) -> None:
            drains.append(acceptor.context.seqs.get(1, 0))
            if acceptor.waiting:  # the rest is taken in next, and the source is found to have connected anew
                later.sendall(frames.encode_hello(frames.Hello("source:in", clock_domain(), 7)))

        monkeypatch.setattr(runtime.pulled, "due_ns", 0)
        monkeypatch.setattr(runtime.pulled, "release", drained)
        end.sendall(frames.encode_batch(1, 0, [frames.encode_tuple((0, 0, 0, 0, 0, 0), 0, 0, b"1")] * count))
        while runtime.context.seqs.get(1, 0) < count or not drains[-1]:
            runtime.step(wait=False)
        promised = {each.link_seq for each in runtime.facts.ring.promised() if each.boot == 7 and each.seq}
        assert promised == set(range(1, count + 1))
        end.close()
        later.close()
