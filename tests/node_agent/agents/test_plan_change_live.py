"""Real agents get a new plan while tuples come in: counters on both nodes count on, no tuple is lost."""

import hashlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from node_agent.client.client import Admitted, Sink, Source
from protos import agent_pb2, agent_pb2_grpc, records
from tests.node_agent.live import Agent, kinds, spooled, until, with_identities

SECOND = 10**9
OPERATORS = '''
from node_agent.sdk import operator

@operator("t.count", inputs={"in": "json"}, output="json")
class Count:
    """Puts how many it has seen beside the value."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, value):
        self.n += 1
        return [value, self.n]
'''


def _whole(version: int, operators: Path) -> bytes:
    """in@a -> C1@a -> C2@b -> out@b. The second version has another query beside it: in@a -> P@a -> D@b -> other@b, and
    so other ids for what is the same."""
    more = version > 1
    ids = {"in": 1, "C1": 2, "C2": 3} if not more else {"in": 1, "P": 2, "D": 3, "C1": 4, "C2": 5}
    runs = {"C1": ("t.count", "in"), "C2": ("t.count", "C1"), "P": ("pass", "in"), "D": ("t.count", "P")}
    at = {"a": ["C1", *(["P"] if more else [])], "b": ["C2", *(["D"] if more else [])]}
    crossing = ["C1", *(["P"] if more else [])]
    nodes: dict[str, Any] = {}
    for index, node in enumerate("ab"):
        here = [*(["in"] if node == "a" else crossing), *at[node]]
        nodes[node] = {
            "version": 1, "query": "q+r" if more else "q", "node": node, "index": index,
            "policy": {"name": "edf", "largest_batch": 1}, "cpu": -1,
            "streams": [
                {"id": ids[name], "name": name, "codec": "json", "deadline_ns": 60 * SECOND,
                 "producers": [0] if node == "b" and name in crossing else []}
                for name in here
            ],
            "sources": [{"id": 1, "name": "in", "stream": 1}] if node == "a" else [],
            "operators": [
                {"id": ids[name], "name": name, "run": runs[name][0], "inputs": [ids[runs[name][1]]],
                 "output": ids[name], "hang_ns": SECOND}
                for name in at[node]
            ],
            "units": [
                {"id": ids[name], "operators": [ids[name]], "sub_deadline_ns": SECOND, "deadline_ns": 60 * SECOND,
                 "exits": [ids[name]]}
                for name in at[node]
            ],
            "outputs": [
                {"id": number, "name": output, "stream": ids[name], "deadline_ns": 60 * SECOND}
                for number, (output, name) in enumerate((("out", "C2"), ("other", "D")), 1)
                if name in at[node]
            ],
            "sends": [{"stream": ids[name], "peer": 1} for name in crossing] if node == "a" else [],
            "peers": [{"index": 1 - index, "name": "ba"[index], "latency_ns": 1_000_000}],
        }  # fmt: skip
    return json.dumps({"nodes": with_identities(nodes, operators)}, sort_keys=True, separators=(",", ":")).encode()


class Cluster:
    """Two agents, and what a coordinator would say to them."""

    def __init__(self, folder: Path) -> None:
        self.operators = folder / "operators.py"
        self.operators.write_text(OPERATORS)
        options = ("--control", "127.0.0.1:0", "--data", "127.0.0.1:0", "--operators", str(self.operators))
        self.agents = {name: Agent(folder / name, *options, name=name) for name in "ab"}
        self.stubs = {
            name: agent_pb2_grpc.AgentStub(  # type: ignore[no-untyped-call]
                grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}")
            )
            for name, agent in self.agents.items()
        }

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        for agent in self.agents.values():
            if agent.process.poll() is None:
                agent.stop()

    def deploy(self, version: int) -> None:
        """Both phases."""
        whole = _whole(version, self.operators)
        hash_ = hashlib.sha256(whole).digest()
        routes = [
            agent_pb2.Route(index=index, node=name, address=agent.data)
            for index, (name, agent) in enumerate(self.agents.items())
        ]
        for stub in self.stubs.values():
            reply = stub.Prepare(agent_pb2.PrepareRequest(plan=whole, hash=hash_, epoch=version, routes=routes))
            assert reply.accepted, reply.why
        for stub in self.stubs.values():
            reply = stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=version))
            assert reply.accepted, reply.why

    def status(self, name: str) -> agent_pb2.StatusReply:
        reply: agent_pb2.StatusReply = self.stubs[name].Status(agent_pb2.StatusRequest())
        return reply


@pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux")
def test_counters_count_on_across_a_change_and_no_tuple_is_lost(tmp_path: Path) -> None:
    sent, ending = 0, threading.Event()
    with Cluster(tmp_path) as cluster:
        cluster.deploy(1)
        a, b = cluster.agents["a"], cluster.agents["b"]
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:

            def feed() -> None:
                nonlocal sent
                while not ending.is_set():
                    answers = source.send_many(range(sent, sent + 20))
                    assert all(isinstance(each, Admitted) for each in answers)
                    sent += 20
                    time.sleep(0.002)

            feeder = threading.Thread(target=feed)
            feeder.start()
            until(lambda: sent >= 200)
            cluster.deploy(2)
            before = sent
            until(lambda: sent >= before + 200)
            ending.set()
            feeder.join()
            got = [sink.get(20).value for _ in range(sent)]
        assert got == [[[n, n + 1], n + 1] for n in range(sent)], "in order, each once, counted through by both"
        for name in "ab":
            status = cluster.status(name)
            plans = {plan.epoch: (plan.state, list(plan.queries)) for plan in status.plans}
            assert plans.pop(1, (agent_pb2.DRAINING, ["q"])) == (agent_pb2.DRAINING, ["q"])  # unless it has drained
            assert plans == {2: (agent_pb2.COMMITTED, ["q", "r"])}
            assert status.longest_hold_ns > 0
        assert a.stop() == 0 and b.stop() == 0
    at_a, at_b = spooled(tmp_path / "a"), spooled(tmp_path / "b")
    assert kinds(at_a)["ADMITTED"] == sent and kinds(at_a)["LOST"] == kinds(at_b)["LOST"] == 0
    admitted = [record.flags & 0x7F for record in at_a if record.kind == records.ADMITTED]
    assert admitted == sorted(admitted) and set(admitted) == {1, 2}
