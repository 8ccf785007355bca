"""One client's connection to an agent: calls of the service over HTTP/2, each a task.

What a client does not read is not made for it: while its socket or its windows are full, nothing more is read from it
and its answers wait.
"""

import asyncio
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, cast

from google.protobuf.message import DecodeError, Message

from node_agent.control.calls import authorization, grpc_messages
from node_agent.control.calls.call_errors import CallError, Code
from node_agent.control.calls.refused_calls import Caller, RefusedCalls
from node_agent.control.http2_connection import (
    Cancelled,
    Happening,
    Http2Connection,
    Http2Error,
    Opened,
    TooLong,
    Whole,
)
from node_agent.host.log import ERROR, Log

MOST_CALLS = 32  # at once, of all connections
MOST_METADATA_BYTES = 16 << 10
MOST_UNSENT_BYTES = 256 << 10  # then a stream of replies waits
OPENING_S = 5.0  # a connection that says nothing ends
CLOSING_S = 1.0  # for the last words to a client that is sent away

Replies = Callable[[Message], AsyncIterator[Message]]


class Method(NamedTuple):
    """One of the service. parsed: raises DecodeError."""

    name: str
    parsed: Callable[[bytes], Message]
    replies: Replies


@dataclass(slots=True)
class Calls:
    """What all connections share. open_calls: that have begun; guarded: only the coordinator may call; most_bytes: of a
    request."""

    methods: Mapping[str, Method]
    refused: RefusedCalls
    log: Log
    guarded: bool
    most_bytes: int
    open_calls: int = 0


class _Call(NamedTuple):
    task: "asyncio.Task[None]"
    body: "asyncio.Future[bytes]"


class GrpcConnection(asyncio.Protocol):
    """over: done when it is. opened: called when the client has said that it speaks HTTP/2."""

    def __init__(self, calls: Calls, opened: Callable[[], None]) -> None:
        self._calls, self._opened = calls, opened
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._http2 = Http2Connection(grpc_messages.PREFIX.size + calls.most_bytes, MOST_METADATA_BYTES)
        self._tasks: dict[int, _Call] = {}
        self._transport: asyncio.Transport | None = None
        self._moved = asyncio.Event()  # the client has taken something
        self._full = False  # its socket
        self._caller = Caller("somebody")

    @property
    def idle(self) -> bool:
        """No call is under way."""
        return not self._tasks

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """After the handshake, where there is one."""
        self._transport = cast("asyncio.Transport", transport)
        self._caller = Caller.of(transport)
        self._patience = self._loop.call_later(OPENING_S, self.abort)
        if self._caller.speaks_http2:
            self._write()
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Some of what the client says."""
        try:
            for event in self._http2.receive(data):
                self._on(event)
        except Http2Error:
            self.close()
            return
        if self._http2.ready and not self._patience.cancelled():
            self._patience.cancel()
            self._opened()
        self._moved.set()
        self._write()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._full = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It has read."""
        self._full = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._moved.set()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Its calls have nobody to answer to."""
        self._patience.cancel()
        for call in self._tasks.values():
            call.task.cancel()
        if not self.over.done():
            self.over.set_result(None)

    # -- the end

    def leave(self) -> None:
        """No more calls; those that are under way go on."""
        self._http2.leave()
        self._write()

    def close(self) -> None:
        """What has been written still goes out, if the client takes it soon."""
        self._write()
        if self._transport is not None:
            self._transport.close()
            self._loop.call_later(CLOSING_S, self.abort)

    def abort(self) -> None:
        """At once."""
        if self._transport is not None:
            self._transport.abort()

    # -- calls

    def _on(self, event: Happening) -> None:
        match event:
            case Opened(number, fields):
                self._begin(number, fields)
            case Whole(number, data):
                if (body := self._awaited(number)) is not None:
                    body.set_result(data)
            case TooLong(number):
                if (body := self._awaited(number)) is not None:
                    why = f"a message has at most {self._calls.most_bytes} bytes"
                    body.set_exception(CallError(Code.RESOURCE_EXHAUSTED, why))
            case Cancelled(number) if number in self._tasks:
                self._tasks[number].task.cancel()

    def _awaited(self, number: int) -> "asyncio.Future[bytes] | None":
        """The body of that request; None where nobody waits for it any more."""
        call = self._tasks.get(number)
        return None if call is None or call.body.done() else call.body

    def _begin(self, number: int, fields: Mapping[str, str]) -> None:
        if not fields.get("content-type", "").startswith(grpc_messages.CONTENT_TYPE):
            self._http2.respond(number, [(b":status", b"415")], ends=True)
        elif self._calls.open_calls >= MOST_CALLS:
            self._end(number, CallError(Code.RESOURCE_EXHAUSTED, "too many calls at once"), begun=False)
        else:
            self._calls.open_calls += 1
            body: asyncio.Future[bytes] = self._loop.create_future()
            task = self._loop.create_task(self._serve(number, fields, body))
            self._tasks[number] = _Call(task, body)
            task.add_done_callback(lambda _: self._forget(number))

    def _forget(self, number: int) -> None:
        self._calls.open_calls -= 1
        body = self._tasks.pop(number).body
        if not body.cancel() and not body.cancelled():
            body.exception()  # nobody has asked for it

    async def _serve(self, number: int, fields: Mapping[str, str], body: "asyncio.Future[bytes]") -> None:
        begun, failed = False, CallError(Code.OK, "")
        name = fields.get(":path", "").rpartition("/")[2]
        try:
            async with asyncio.timeout(grpc_messages.patience_s(fields)):
                method = self._method(fields)
                request = method.parsed(grpc_messages.only_message(await body))
                async with aclosing(cast("AsyncGenerator[Message, None]", method.replies(request))) as replies:
                    async for reply in replies:
                        if not begun:
                            self._http2.respond(number, grpc_messages.ANSWER)
                            begun = True
                        self._calls.refused.look_at(name, self._caller, reply)
                        await self._send(number, grpc_messages.prefixed(reply.SerializeToString()))
        except CallError as error:
            failed = error
            self._calls.refused.ended(name, self._caller, error)
        except DecodeError:
            failed = CallError(Code.INTERNAL, "the request cannot be read")
        except TimeoutError:
            failed = CallError(Code.DEADLINE_EXCEEDED, "the time of the call is over")
        except Exception as error:
            self._calls.log.say("call_failed", f"{name} has failed\n{traceback.format_exc().rstrip()}", ERROR)
            failed = CallError(Code.UNKNOWN, f"{type(error).__name__}: {error}")
        self._end(number, failed, begun)
        await self._taken(number, 0)  # as long as an answer takes memory its call counts

    def _method(self, fields: Mapping[str, str]) -> Method:
        """Raises CallError."""
        method = self._calls.methods.get(fields.get(":path", ""))
        if method is None or fields.get(":method") != "POST":
            raise CallError(Code.UNIMPLEMENTED, "there is no such call here")
        if self._calls.guarded:
            authorization.check(self._caller.names)
        return method

    def _end(self, number: int, how: CallError, begun: bool) -> None:
        trailers = grpc_messages.trailers(how.code, how.details)
        if begun:
            self._http2.finish(number, trailers)
        else:
            self._http2.respond(number, grpc_messages.ANSWER + trailers, ends=True)

    # -- what goes out

    async def _send(self, number: int, data: bytes) -> None:
        self._http2.send(number, data)
        await self._taken(number, MOST_UNSENT_BYTES)

    async def _taken(self, number: int, most: int) -> None:
        """The client has taken all of an answer but that."""
        self._write()
        while self._full or self._http2.unsent(number) > most:
            self._moved.clear()
            await self._moved.wait()

    def _write(self) -> None:
        """All that there is, unless the socket is full."""
        if self._transport is not None and not self._full and (data := self._http2.outgoing()):
            self._transport.write(data)
