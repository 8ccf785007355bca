"""Calls of a coordinator to an agent in virtual time: a connection for each, over wires that are cut and reset.

A request is one frame, its answers are frames, and the last one says that this was all, or why not. Nothing of a call
outlives its connection: who hears nothing more does not know whether it was done.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple, cast

from google.protobuf.message_factory import GetMessageClass

from node_agent.control.calls.call_errors import CallError
from node_agent.control.service import Agent
from node_agent.ports import GONE, READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork, SimulatedStream
from protos import agent_pb2

HEAD = Struct("<IB")  # length of what follows, kind
REQUEST, REPLY, END, ERROR = range(4)
MOST_UNSENT = 256 << 10  # then a stream of replies waits
METHODS = {method.name: method for method in agent_pb2.DESCRIPTOR.services_by_name["Agent"].methods}


class Failure(NamedTuple):
    """Why a call has no answer. code: as gRPC has it, in lower case."""

    code: str
    details: str = ""


class _Wire:
    """One end of a call's connection: frames in, frames out."""

    def __init__(self, stream: SimulatedStream) -> None:
        self.stream = stream
        self.unsent = bytearray()
        self._unread = bytearray()

    def put(self, kind: int, data: bytes) -> None:
        self.unsent += HEAD.pack(len(data), kind) + data

    def flush(self) -> None:
        """Raises OSError where the other end is gone."""
        while self.unsent:
            try:
                del self.unsent[: self.stream.send(self.unsent)]
            except BlockingIOError:
                return

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Raises OSError where the other end is gone."""
        ended = False
        while not ended:
            try:
                data = self.stream.recv(1 << 18)
            except BlockingIOError:
                break
            ended = not data
            self._unread += data
        while len(self._unread) >= HEAD.size:
            length, kind = HEAD.unpack_from(self._unread)
            if len(self._unread) < HEAD.size + length:
                break
            frame = bytes(self._unread[HEAD.size : HEAD.size + length])
            del self._unread[: HEAD.size + length]
            yield kind, frame
        if ended:
            raise ConnectionResetError


class SimulatedServer:
    """`control.server.Server`: answers the calls that come to a port of a host."""

    def __init__(self, host: SimulatedHost, port: int, network: SimulatedNetwork) -> None:
        self._host, self._port, self._network = host, port, network
        self._served: dict[int, _Served] = {}

    async def start(self, agent: Agent) -> tuple[int, int]:
        """Listen."""
        self._agent, self._loop = agent, asyncio.get_running_loop()
        listener = self._listener = self._host.listen(self._port)
        self._network.listen(listener)
        self._loop.add_reader(listener.fileno(), self._accept)
        return self._port, 0

    async def stop(self) -> None:
        """No more calls."""
        self._loop.remove_reader(self._listener.fileno())
        for served in list(self._served.values()):
            served.cancel()
        self._listener.close()

    def _accept(self) -> None:
        try:
            stream, _ = self._listener.accept()
        except BlockingIOError:
            return
        self._served[stream.fileno()] = _Served(stream, self._agent, self._served)


class _Served:
    """One call that has come."""

    def __init__(self, stream: SimulatedStream, agent: Agent, among: dict[int, "_Served"]) -> None:
        self._wire, self._agent, self._among = _Wire(stream), agent, among
        self._number = stream.fileno()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._loop.add_reader(self._number, self._readable)

    def cancel(self) -> None:
        """Who called hears no more of it."""
        if self._task is not None:
            self._task.cancel()
        self._close()

    def _close(self) -> None:
        if self._among.pop(self._number, None) is not None:
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
            self._wire.stream.close()

    def _readable(self) -> None:
        try:
            for _, frame in self._wire.frames():
                name, _, request = frame.partition(b"\0")
                self._task = self._loop.create_task(self._serve(name.decode(), request))
        except OSError:
            self.cancel()

    async def _serve(self, name: str, data: bytes) -> None:
        method = METHODS[name]
        request = GetMessageClass(method.input_type).FromString(data)
        call: Callable[..., Any] = getattr(self._agent, name)
        try:
            if method.server_streaming:
                async for reply in cast("AsyncIterator[Any]", call(request)):
                    await self._write(REPLY, reply.SerializeToString())
            else:
                reply = await cast("Awaitable[Any]", call(request))
                await self._write(REPLY, reply.SerializeToString())
            await self._write(END, b"")
        except CallError as error:
            await self._write(ERROR, f"{error.code.name.lower()}\0{error.details}".encode())
        except Exception as error:  # gRPC tells the caller so; here it is a defect as well
            self._loop.call_exception_handler({"message": f"{name} has failed", "exception": error})
            await self._write(ERROR, f"unknown\0{error!r}".encode())
        while self._wire.unsent and self._number in self._among:
            self._room.clear()
            await self._room.wait()
        self._close()

    async def _write(self, kind: int, data: bytes) -> None:
        self._wire.put(kind, data)
        self._flush()
        while len(self._wire.unsent) > MOST_UNSENT:
            self._room.clear()
            await self._room.wait()

    def _flush(self) -> None:
        try:
            self._wire.flush()
        except OSError:
            self.cancel()
            return
        if self._number not in self._among:
            return
        if self._wire.unsent:
            self._loop.add_writer(self._number, self._flush)
        else:
            self._loop.remove_writer(self._number)
        if len(self._wire.unsent) <= MOST_UNSENT:
            self._room.set()


class Call:
    """One call, as its caller has it. replies: as they came; failure: why there are no more."""

    def __init__(self, network: SimulatedNetwork, address: str, method: str, request: bytes) -> None:
        host, _, port = address.rpartition(":")
        self._network = network
        self.replies: list[bytes] = []
        self.failure: Failure | None = None
        self.over = False
        stream = network.dial(host, int(port))
        self._wire = _Wire(stream)
        self._wire.put(REQUEST, method.encode() + b"\0" + request)
        network.add(stream.fileno(), self, READABLE | WRITABLE)

    def on_ready(self, at_ns: int, mask: int) -> None:
        """The connection stands, or brings replies, or has failed."""
        try:
            if mask & WRITABLE and not mask & GONE:
                self._wire.flush()
                if not self._wire.unsent:
                    self._network.change(self._wire.stream.fileno(), READABLE)
            if mask & ~WRITABLE:
                self._read()
        except OSError:
            self.end(Failure("unavailable", "the connection has failed"))

    def _read(self) -> None:
        for kind, data in self._wire.frames():
            if kind == REPLY:
                self.replies.append(data)
            elif kind == END:
                self.end(None)
                return
            else:
                code, _, details = data.decode().partition("\0")
                self.end(Failure(code, details))
                return

    def end(self, failure: Failure | None) -> None:
        """No more of it is heard."""
        if not self.over:
            self.over, self.failure = True, failure
            self._network.remove(self._wire.stream.fileno())
            self._wire.stream.close()


def call_all(
    network: SimulatedNetwork, now: Callable[[], int], asked: Sequence[tuple[str, str, bytes]], seconds: float
) -> list[Call]:
    """Calls at once, each with address, method and request; all are over after that time."""
    calls = [Call(network, *each) for each in asked]
    until_ns = now() + int(seconds * 1e9)
    while not all(call.over for call in calls) and now() < until_ns:
        network.wait((until_ns - now()) / 1e9)
    for call in calls:
        call.end(Failure("deadline_exceeded"))
    return calls
