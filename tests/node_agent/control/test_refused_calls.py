"""A call that is refused leaves a line in the log of the agent, and a count in its status."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from node_agent.control.refused_calls import RefusedCalls
from node_agent.host.log import Log
from protos import agent_pb2, agent_pb2_grpc
from tests.node_agent.live import HASH, WHOLE, Agent

SECRET = "what nobody is to read in a log"


def test_refused_calls_are_told_and_counted_by_a_real_agent(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with Agent(tmp_path / "s") as agent, grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
        stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
        hash_ = bytes.fromhex(HASH)
        refused = [
            stub.Prepare(agent_pb2.PrepareRequest(plan=SECRET.encode(), hash=hash_, epoch=1)),
            stub.Prepare(agent_pb2.PrepareRequest(plan=WHOLE, hash=hash_, epoch=1)),
            stub.Commit(agent_pb2.CommitRequest(hash=b"short", epoch=1)),
            stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=1)),
        ]
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/shimekiri.agent.Agent/Nothing")(b"")
        status = stub.Status(agent_pb2.StatusRequest())
        agent.stop()
    assert not any(each.accepted for each in refused)
    assert {each.name: each.value for each in status.counters}["calls_refused"] == 5
    said = [line for line in agent.log.read_text().splitlines() if " was refused (" in line]
    assert [line.partition("(")[2].partition(")")[0] for line in said] == [
        "prepare_refused", "prepare_refused", "commit_refused", "commit_refused", "unimplemented",
    ]  # fmt: skip
    assert all("127.0.0.1" in line for line in said[:4]) and not any(SECRET in line for line in said)


class Lines(Log):
    """A log whose lines are read here."""

    def __init__(self) -> None:
        super().__init__("a", "control")
        self.said: list[tuple[str, dict[str, object]]] = []

    def say(self, event: str, text: str, level: str = "", kind: str = "", **fields: object) -> bool:
        self.said.append((kind, fields))
        return True


class Closed(agent_pb2_grpc.AgentServicer):
    """Lets nobody in."""

    async def Health(self, request: agent_pb2.HealthRequest, context: Any) -> agent_pb2.HealthReply:  # noqa: N802
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only the coordinator")
        return agent_pb2.HealthReply()

    async def Plans(self, request: agent_pb2.PlansRequest, context: Any) -> Any:  # noqa: N802
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too many")
        yield agent_pb2.PlanDocument()


def test_calls_that_were_ended_are_told_with_their_code() -> None:
    log = Lines()
    heard = RefusedCalls(log, Counter())

    async def call() -> None:
        server = grpc.aio.server(interceptors=[heard], options=[("grpc.so_reuseport", 0)])
        agent_pb2_grpc.add_AgentServicer_to_server(Closed(), server)  # type: ignore[no-untyped-call]
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Health(agent_pb2.HealthRequest())
            with pytest.raises(grpc.aio.AioRpcError):
                [each async for each in stub.Plans(agent_pb2.PlansRequest())]
        await server.stop(None)

    asyncio.run(call())
    assert heard.counters == {"calls_unauthorised": 1, "calls_refused": 1}
    assert [kind for kind, _ in log.said] == ["call_refused.permission_denied", "call_refused.invalid_argument"]
