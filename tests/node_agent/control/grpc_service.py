"""A service of a few methods behind real connections, and clients to it: gRPC's own, and bytes by hand."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from node_agent.control import grpc_server
from node_agent.control.calls.call_errors import CallError, Code
from node_agent.control.calls.grpc_connection import Calls, GrpcConnection
from node_agent.control.calls.refused_calls import RefusedCalls
from node_agent.host.log import Log
from protos import agent_pb2, trace_pb2

CHUNK = 60_000


class Lines(Log):
    """A log whose lines are read here."""

    def __init__(self) -> None:
        super().__init__("a", "control")
        self.said: list[tuple[str, str, str]] = []  # event, kind, text

    def say(self, event: str, text: str, level: str = "", kind: str = "", **fields: object) -> bool:
        self.said.append((event, kind, text))
        return True


class Service:
    """ends: how calls of Health end; begun, cancelled: calls of Describe, which never ends; made: chunks of Trace."""

    def __init__(self, ends: Exception | None = None) -> None:
        self.ends, self.begun, self.cancelled, self.made = ends, 0, 0, 0
        self.changed = asyncio.Event()

    async def Prepare(self, request: agent_pb2.PrepareRequest) -> agent_pb2.PlanReply:  # noqa: N802
        return agent_pb2.PlanReply(accepted=bool(request.plan), why=str(len(request.plan)))

    async def Health(self, request: agent_pb2.HealthRequest) -> agent_pb2.HealthReply:  # noqa: N802
        if self.ends is not None:
            raise self.ends
        return agent_pb2.HealthReply(serving=True)

    async def Describe(self, request: agent_pb2.DescribeRequest) -> agent_pb2.Description:  # noqa: N802
        self.begun += 1
        self.changed.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            self.changed.set()
            raise
        return agent_pb2.Description()

    async def Plans(self, request: agent_pb2.PlansRequest) -> AsyncIterator[agent_pb2.PlanDocument]:  # noqa: N802
        if request.forget:
            raise CallError(Code.INVALID_ARGUMENT, "too many")
        yield agent_pb2.PlanDocument(why="one")
        raise CallError(Code.INTERNAL, "the disk has gone")

    async def Trace(self, request: trace_pb2.TraceRequest) -> AsyncIterator[trace_pb2.TraceChunk]:  # noqa: N802
        for n in range(100):
            self.made += 1
            yield trace_pb2.TraceChunk(blocks=bytes((n,)) * CHUNK)

    def __getattr__(self, name: str) -> Any:
        return self.Health  # of the methods that no test calls

    async def until(self, name: str, count: int) -> None:
        """Until so many have."""
        while getattr(self, name) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)


@asynccontextmanager
async def serving(service: Service, guarded: bool = False) -> AsyncIterator[tuple[int, Calls]]:
    """The port, and what its connections share."""
    log = Lines()
    methods = grpc_server.methods(service)  # type: ignore[arg-type]
    calls = Calls(methods, RefusedCalls(log, Counter()), log, guarded, grpc_server.MOST_MESSAGE_BYTES)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: GrpcConnection(calls, lambda: None), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], calls
    finally:
        server.close()
