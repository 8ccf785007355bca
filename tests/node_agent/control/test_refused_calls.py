"""A call that is refused leaves a line in the log of the agent, and a count in its status."""

import asyncio
from collections import Counter
from pathlib import Path

import grpc
import pytest

from node_agent.control.calls.call_errors import CallError, Code
from protos import agent_pb2, agent_pb2_grpc
from tests.node_agent.control.grpc_service import Lines, Service, serving
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


def test_calls_that_were_ended_are_told_with_their_code() -> None:
    async def call(service: Service, guarded: bool) -> tuple[Counter[str], list[str]]:
        async with (
            serving(service, guarded) as (port, calls),
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Health(agent_pb2.HealthRequest())
            with pytest.raises(grpc.aio.AioRpcError):
                [each async for each in stub.Plans(agent_pb2.PlansRequest(forget=True))]
            assert isinstance(calls.log, Lines)
            return calls.refused.counters, [kind for _, kind, _ in calls.log.said]

    def run(guarded: bool) -> tuple[Counter[str], list[str]]:
        return asyncio.run(call(Service(CallError(Code.PERMISSION_DENIED, "not here")), guarded))

    denied, invalid = "call_refused.permission_denied", "call_refused.invalid_argument"
    assert run(guarded=False) == ({"calls_unauthorised": 1, "calls_refused": 1}, [denied, invalid])
    assert run(guarded=True) == ({"calls_unauthorised": 2}, [denied, denied]), "nobody without a certificate"
