"""Virtual nodes whose sockets are read and written between instances, at the runtime's pace and at a cost."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.spec.runtime_charges import MEASURED
from node_agent.core import plan as core
from node_agent.runtime.loop import LIVE
from node_agent.virtual.cluster import cluster, node
from node_agent.virtual.cluster.ideal_network import IdealNetwork, IdealStream
from node_agent.virtual.cluster.node import VirtualNode
from node_agent.virtual.run import Simulation
from node_agent.wire import frames
from protos import records


class ChargedNetwork(IdealNetwork):
    """Reading takes the charge for every tuple and every mark."""

    def adopt(self, stream: IdealStream) -> None:
        super().adopt(stream)
        recv, reader = stream.recv, frames.FrameReader()

        def charged(most: int) -> bytes:
            data = recv(most)
            read = sum(len(frame.tuples) for frame in reader.feed(data) if isinstance(frame, frames.Batch))
            if read:
                assert self.stack is not None
                self.stack.work(read * MEASURED.drain_ns)
            return data

        stream.recv = charged  # type: ignore[method-assign]


class SocketNode(VirtualNode):
    """It looks up between instances only."""

    def prepare(self, plan: core.Plan, *given: Any) -> None:
        super().prepare(plan, *given)
        self._listens = False


def use_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every simulation of this test has such nodes."""
    monkeypatch.setattr(node, "IdealNetwork", ChargedNetwork)
    monkeypatch.setattr(node, "PACE", LIVE)
    monkeypatch.setattr(cluster, "VirtualNode", SocketNode)


def facts_of(done: Simulation) -> list[Any]:
    """All records of all nodes."""
    return [fact for trace in done.traces for fact in records.unpack_records(trace.records)]
