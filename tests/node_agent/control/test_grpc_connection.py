"""Calls over real sockets: what gRPC's own client hears, and what a client does who keeps to nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from hpack import Decoder

from node_agent.control import grpc_server
from node_agent.control.calls import grpc_connection
from node_agent.control.calls.call_errors import CallError, Code
from node_agent.control.calls.grpc_connection import MOST_CALLS, MOST_METADATA_BYTES, Calls, GrpcConnection
from protos import agent_pb2, agent_pb2_grpc, trace_pb2
from tests.node_agent.control.grpc_service import CHUNK, Lines, Service, serving
from tests.node_agent.control.http2_client import (
    END_HEADERS,
    END_STREAM,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    PREFACE,
    TABLE_SIZE,
    Kind,
    Reset,
    decoded,
    encoded,
    frame,
    next_frame,
    rst_stream,
    settings,
    window_update,
)
from tests.node_agent.control.test_control_service import Node, wait_for

Talk = Callable[[grpc.aio.Channel, Calls], Awaitable[None]]


def talk(service: Callable[[], Service], said: Callable[..., Awaitable[None]], **options: int) -> None:
    """A conversation between gRPC's client and that service."""

    async def run() -> None:
        made = service()
        async with (
            serving(made) as (port, calls),
            grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=list(options.items())) as channel,
        ):
            await said(agent_pb2_grpc.AgentStub(channel), made, calls)  # type: ignore[no-untyped-call]

    asyncio.run(run())


async def refused(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code(), raised.value.details() or ""


def test_calls_with_one_answer_and_with_many() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        assert (await stub.Health(agent_pb2.HealthRequest())).serving
        chunks = [chunk.blocks async for chunk in stub.Trace(trace_pb2.TraceRequest())]
        assert chunks == [bytes((n,)) * CHUNK for n in range(100)]
        both = await asyncio.gather(*(stub.Health(agent_pb2.HealthRequest()) for _ in range(20)))
        assert all(each.serving for each in both) and calls.open_calls == 0

    talk(Service, said)


def test_a_plan_as_large_as_may_be_and_larger() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        largest = grpc_server.MOST_MESSAGE_BYTES - 5  # the field's own bytes
        reply = await stub.Prepare(agent_pb2.PrepareRequest(plan=bytes(largest)))
        assert reply.accepted and reply.why == str(largest)
        code, _ = await refused(stub.Prepare(agent_pb2.PrepareRequest(plan=bytes(largest + 1))))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await stub.Health(agent_pb2.HealthRequest())).serving, "the connection goes on"

    talk(Service, said, **{"grpc.max_send_message_length": -1})


@pytest.mark.parametrize("code", [code for code in Code if code])
def test_how_a_call_ends_is_what_its_caller_hears(code: Code) -> None:
    details = 'why: 100 % of "it"\nin two lines, ~ and \u00e9\u20ac\U0001f600'

    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        found, why = await refused(stub.Health(agent_pb2.HealthRequest()))
        assert (found.name, why) == (code.name, details)

    talk(lambda: Service(CallError(code, details)), said)


def test_a_stream_that_ends_early() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        got = []
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            async for each in stub.Plans(agent_pb2.PlansRequest()):
                got.append(each.why)
        assert got == ["one"] and raised.value.details() == "the disk has gone"

    talk(Service, said)


def test_a_fault_of_the_agent_is_in_its_log() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        assert await refused(stub.Health(agent_pb2.HealthRequest())) == (grpc.StatusCode.UNKNOWN, "KeyError: 'x'")
        assert isinstance(calls.log, Lines)
        ((event, _, text),) = calls.log.said
        assert event == "call_failed" and "Traceback" in text

    talk(lambda: Service(KeyError("x")), said)


def test_requests_that_are_none() -> None:
    async def run() -> None:
        async with serving(Service()) as (port, calls):
            zipped = grpc.Compression.Gzip
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", compression=zipped) as channel:
                stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
                code, _ = await refused(stub.Prepare(agent_pb2.PrepareRequest(plan=bytes(5000))))
                assert code is grpc.StatusCode.UNIMPLEMENTED
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                health = channel.unary_unary("/shimekiri.agent.Agent/Health")
                assert (await refused(health(b"\xff")))[0] is grpc.StatusCode.INTERNAL
                for path in ("/shimekiri.agent.Agent/Nothing", "/other/Health"):
                    assert (await refused(channel.unary_unary(path)(b"")))[0] is grpc.StatusCode.UNIMPLEMENTED
                many = channel.stream_unary("/shimekiri.agent.Agent/Health")
                assert (await refused(many(iter([b"", b""]))))[0] is grpc.StatusCode.INTERNAL
                assert await health(b"") == agent_pb2.HealthReply(serving=True).SerializeToString()
            assert calls.open_calls == 0

    asyncio.run(run())


def test_a_caller_that_gives_up_and_one_whose_time_is_over() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        call = stub.Describe(agent_pb2.DescribeRequest())
        await service.until("begun", 1)
        call.cancel()
        await service.until("cancelled", 1)
        code, _ = await refused(stub.Describe(agent_pb2.DescribeRequest(), timeout=0.2))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        await service.until("cancelled", service.begun)
        assert (await stub.Health(agent_pb2.HealthRequest())).serving and calls.open_calls == 0

    talk(Service, said)


def test_so_many_calls_at_once_and_no_more() -> None:
    async def said(stub: agent_pb2_grpc.AgentStub, service: Service, calls: Calls) -> None:
        waiting = [stub.Describe(agent_pb2.DescribeRequest()) for _ in range(MOST_CALLS)]
        await service.until("begun", MOST_CALLS)
        code, _ = await refused(stub.Health(agent_pb2.HealthRequest()))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        for call in waiting:
            call.cancel()
        await service.until("cancelled", MOST_CALLS)
        assert (await stub.Health(agent_pb2.HealthRequest(), wait_for_ready=True)).serving

    talk(Service, said)


# -- by hand

START = [(b":scheme", b"http"), (b":authority", b"a")]


def request(stream: int, method: str, *fields: tuple[bytes, bytes], body: bytes = b"\0\0\0\0\0") -> bytes:
    path = f"/shimekiri.agent.Agent/{method}".encode()
    head = [*START, (b":method", b"POST"), (b":path", path), (b"content-type", b"application/grpc"), *fields]
    return frame(Kind.HEADERS, END_HEADERS, stream, encoded(head)) + frame(Kind.DATA, END_STREAM, stream, body)


async def trailers(reader: asyncio.StreamReader) -> dict[bytes, bytes]:
    """Of the first answer that ends."""
    decoder = Decoder()
    while True:
        found = await next_frame(reader)
        if found.kind == Kind.HEADERS:
            fields = decoded(decoder, found.payload)
            if found.flags & END_STREAM:
                return fields


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (((b"grpc-timeout", b"1m"),), b"4"),
        (((b"grpc-timeout", b"1 m"),), b"13"),
        (((b"grpc-timeout", b"123456789S"),), b"13"),
    ],
)
def test_the_agent_itself_ends_a_call_whose_time_is_over(fields: tuple[tuple[bytes, bytes]], status: bytes) -> None:
    async def run() -> None:
        service = Service()
        async with serving(service) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE + settings() + request(1, "Describe", *fields))
            assert (await trailers(reader))[b"grpc-status"] == status
            writer.close()
        assert service.cancelled == service.begun

    asyncio.run(run())


def test_what_is_no_call_of_grpc() -> None:
    async def run() -> None:
        async with serving(Service()) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            get = encoded([*START, (b":method", b"GET"), (b":path", b"/")])
            page = frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, get)
            writer.write(PREFACE + settings() + page)
            assert await trailers(reader) == {b":status": b"415"}
            writer.write(frame(Kind.PING, 0, 0, b"short"))
            assert (await asyncio.wait_for(reader.read(), 60))[3] == Kind.GOAWAY, "and the connection ends"
            writer.close()

    asyncio.run(run())


def test_a_client_that_reads_nothing_has_nothing_made_for_it() -> None:
    async def run() -> None:
        service = Service()
        async with serving(service) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
            windows = settings((INITIAL_WINDOW, LARGEST_WINDOW)) + window_update(0, 1 << 30)
            writer.write(PREFACE + windows + b"".join(request(n, "Trace") for n in range(1, 21, 2)))
            made = -1
            while made != service.made:  # until no more is made
                made = service.made
                await asyncio.sleep(0.2)
            assert made < 500, "of a thousand chunks; what is between the sockets is the kernel's"
            over = 0
            while over < 10:
                found = await next_frame(reader)
                over += found.kind == Kind.HEADERS and bool(found.flags & END_STREAM)
            writer.close()
        assert service.made == 1000

    asyncio.run(run())


def test_a_call_counts_until_its_answer_is_taken() -> None:
    async def run() -> None:
        async with serving(Service()) as (port, calls):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE + settings((INITIAL_WINDOW, 1)) + request(1, "Health"))
            while (await next_frame(reader)).kind != Kind.DATA:
                pass
            assert calls.open_calls == 1, "one byte of it has gone"
            writer.write(window_update(1, 1000))
            assert (await trailers(reader))[b"grpc-status"] == b"0"
            while calls.open_calls:
                await asyncio.sleep(0)
            writer.close()

    asyncio.run(run())


LARGE = [(b"x-large", b"x" * (MOST_METADATA_BYTES - 100))]
FLOODS = {
    "metadata": (request(1, "Describe", *LARGE), Reset.ENHANCE_YOUR_CALM),
    "header fields without end": (
        frame(Kind.HEADERS, 0, 1) + frame(Kind.CONTINUATION, 0, 1, bytes(9)) * 100, Reset.PROTOCOL_ERROR,
    ),
    "streams": (b"".join(request(n, "Describe") for n in range(1, 131, 2)), Reset.PROTOCOL_ERROR),
    "kinds of settings": (settings(*((n, 0) for n in range(100, 2000))), Reset.ENHANCE_YOUR_CALM),
    "tables": (b"".join(settings((TABLE_SIZE, n)) for n in range(100)), Reset.ENHANCE_YOUR_CALM),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_what_takes_memory_without_end_ends_the_connection_and_its_calls(name: str) -> None:
    data, code = FLOODS[name]

    async def run() -> None:
        service = Service()
        async with serving(service) as (port, calls):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE + settings() + data)
            while (found := await next_frame(reader)).kind != Kind.GOAWAY:
                pass
            assert found.word == code
            await asyncio.wait_for(reader.read(), 60)
            while calls.open_calls:
                await asyncio.sleep(0)
            writer.close()
        assert service.cancelled == service.begun

    asyncio.run(run())


def test_streams_that_are_reset_at_once_leave_nothing_behind() -> None:
    """HTTP/2 rapid reset, CVE-2023-44487."""

    async def run() -> None:
        service = Service()
        async with serving(service) as (port, calls):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE + settings())
            for number in range(1, 6001, 2):
                writer.write(request(number, "Describe") + rst_stream(number))
                await writer.drain()
            writer.write(request(6001, "Health"))
            assert (await trailers(reader))[b"grpc-status"] == b"0"
            writer.close()
        assert calls.open_calls == 0 and service.cancelled == service.begun

    asyncio.run(run())


class Waiting(Service):
    """Health answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def Health(self, request: agent_pb2.HealthRequest) -> agent_pb2.HealthReply:  # noqa: N802
        self.begun += 1
        self.changed.set()
        await self.may.wait()
        return agent_pb2.HealthReply(serving=True)


def test_a_server_that_leaves_answers_the_calls_that_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[GrpcConnection] = []
    made = GrpcConnection.connection_made

    def noted(connection: GrpcConnection, transport: asyncio.BaseTransport) -> None:
        found.append(connection)
        made(connection, transport)

    monkeypatch.setattr(GrpcConnection, "connection_made", noted)

    async def said(stub: agent_pb2_grpc.AgentStub, service: Waiting, calls: Calls) -> None:
        call = stub.Health(agent_pb2.HealthRequest())
        await service.until("begun", 1)
        found[0].leave()
        other = stub.Health(agent_pb2.HealthRequest())  # over a connection of its own
        await service.until("begun", 2)
        service.may.set()
        assert (await call).serving and (await other).serving and len(found) == 2

    talk(Waiting, said)


def test_a_client_that_leaves_is_let_go() -> None:
    async def run() -> None:
        service = Service()
        async with serving(service) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE + settings() + request(1, "Describe"))
            await service.until("begun", 1)
            writer.write(frame(Kind.GOAWAY, 0, 0, bytes(8)))
            await asyncio.wait_for(reader.read(), 60)
            await service.until("cancelled", 1)
            writer.close()

    asyncio.run(run())


# -- connections


def test_a_connection_that_says_nothing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_connection, "OPENING_S", 0.1)

    async def run() -> None:
        async with serving(Service()) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PREFACE[:7])
            await asyncio.wait_for(reader.read(), 60)  # until it ends
            writer.close()

    asyncio.run(run())


def test_of_too_many_connections_the_oldest_silent_one_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "MOST_CONNECTIONS", 4)
    node = Node(tmp_path / "state")  # whose own channel is one of them

    async def run() -> None:
        silent = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(4)]
        await asyncio.wait_for(silent[0][0].read(), 60)
        known = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(3)]
        for reader, writer in known:
            writer.write(PREFACE + settings())
            await asyncio.wait_for(reader.readexactly(9), 60)
        for reader, _ in silent[1:]:
            await asyncio.wait_for(reader.read(), 60)
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        assert await asyncio.wait_for(reader.read(), 60) == b"", "there is no room among those that have spoken"
        for _, each in (*silent, *known, (reader, writer)):
            each.close()

    try:
        asyncio.run(run())
        wait_for(lambda: node.stub.Health(agent_pb2.HealthRequest(), wait_for_ready=True).serving)
    finally:
        node.stop()
