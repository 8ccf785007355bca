"""The server's end of one HTTP/2 connection: bytes come in, requests come out; answers go in, bytes come out.

A request is given out when its header fields are there, so that it can be refused before it costs anything, and again
when it is whole. What a client sends takes memory only within limits: header fields and bodies have a largest size,
streams a number, and of answers no more is made into frames than the client's windows take.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from node_agent.control.http2.header_fields import Field, FieldDecoder, encoded
from node_agent.control.http2.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    LARGEST_FRAME,
    LARGEST_WINDOW,
    Frame,
    FrameReader,
    Http2Error,
    Kind,
    Reset,
    Setting,
    frame,
    goaway,
    rst_stream,
    settings,
    window_update,
)

DEFAULT_WINDOW = 65_535
WINDOW = 1 << 20  # bytes that a client may send without being answered, on a stream and on the connection
MOST_STREAMS = 64  # at once
MOST_BLOCK_BYTES = 16 << 10  # of one block of header fields, as it comes


@dataclass(frozen=True, slots=True)
class Opened:
    """A request has begun: its header fields, the last of each name."""

    stream: int
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Whole:
    """A request is complete."""

    stream: int
    body: bytes


@dataclass(frozen=True, slots=True)
class TooLong:
    """A request has a larger body than is taken; no more is said of it."""

    stream: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client wants no answer any more."""

    stream: int


Event = Opened | Whole | TooLong | Cancelled


@dataclass(slots=True)
class _Stream:
    """A request and its answer."""

    window: int  # bytes that the client takes
    receiving: int = WINDOW  # that it may send
    body: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    trailers: bytes | None = None  # a block: the answer ends with it
    whole: bool = False  # the client has sent all of it


class Http2Connection:
    """most_body, most_fields: largest body and header fields of a request, in bytes."""

    def __init__(self, most_body: int, most_fields: int) -> None:
        self.outgoing = bytearray(  # the owner of the socket takes it away
            settings(
                (Setting.MAX_CONCURRENT_STREAMS, MOST_STREAMS),
                (Setting.INITIAL_WINDOW_SIZE, WINDOW),
                (Setting.MAX_HEADER_LIST_SIZE, most_fields),
            )
            + window_update(0, WINDOW - DEFAULT_WINDOW)
        )
        self.ready = False  # the client has said what it takes
        self._most_body = most_body
        self._reader, self._decoder = FrameReader(), FieldDecoder(most_fields)
        self._streams: dict[int, _Stream] = {}
        self._last = 0
        self._window, self._initial_window, self._receiving = DEFAULT_WINDOW, DEFAULT_WINDOW, WINDOW
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags, what has come of it
        self._leaving = False
        self._kinds: dict[int, Callable[[Frame], Iterator[Event]]] = {
            Kind.DATA: self._on_data, Kind.HEADERS: self._on_headers, Kind.RST_STREAM: self._on_reset,
            Kind.SETTINGS: self._on_settings, Kind.PUSH_PROMISE: self._on_push, Kind.PING: self._on_ping,
            Kind.WINDOW_UPDATE: self._on_window, Kind.CONTINUATION: self._on_continuation,
        }  # fmt: skip

    # -- what comes

    def receive(self, data: bytes) -> Iterator[Event]:
        """What it means, one after the other. Raises Http2Error, after which there is nothing but to close."""
        for each in self._reader.frames(data):
            if not self.ready and each.kind != Kind.SETTINGS:
                raise Http2Error(Reset.PROTOCOL_ERROR, "settings come first")
            if self._block is not None and (each.kind, each.stream) != (Kind.CONTINUATION, self._block[0]):
                raise Http2Error(Reset.PROTOCOL_ERROR, "a frame within header fields")
            if (known := self._kinds.get(each.kind)) is not None:
                yield from known(each)
        self.flush()

    def _on_headers(self, each: Frame) -> Iterator[Event]:
        if each.stream % 2 == 0:
            raise Http2Error(Reset.PROTOCOL_ERROR, "a stream that no client can open")
        self._block = each.stream, each.flags, bytearray()
        return self._more_fields(each.content, each.flags)

    def _on_continuation(self, each: Frame) -> Iterator[Event]:
        if self._block is None:
            raise Http2Error(Reset.PROTOCOL_ERROR, "nothing to continue")
        return self._more_fields(each.payload, each.flags)

    def _more_fields(self, block: bytes, flags: int) -> Iterator[Event]:
        assert self._block is not None
        stream, first_flags, so_far = self._block
        so_far += block
        if len(so_far) > MOST_BLOCK_BYTES:
            raise Http2Error(Reset.ENHANCE_YOUR_CALM, "too many header fields")
        if flags & END_HEADERS:
            self._block = None
            yield from self._on_fields(stream, self._decoder.fields(bytes(so_far)), bool(first_flags & END_STREAM))

    def _on_fields(self, number: int, fields: list[Field], ends: bool) -> Iterator[Event]:
        known = self._streams.get(number)
        if known is not None:  # trailers, of which a request has no use
            if not ends or known.whole:
                raise Http2Error(Reset.PROTOCOL_ERROR, "header fields within a request")
            yield from self._ended(number, known)
        elif number > self._last:
            self._last = number
            if self._leaving or len(self._streams) >= MOST_STREAMS:
                self.outgoing += rst_stream(number, Reset.REFUSED_STREAM)
                return
            stream = self._streams[number] = _Stream(self._initial_window, whole=ends)
            yield Opened(number, {name.decode("latin-1"): value.decode("latin-1") for name, value in fields})
            if ends:
                yield from self._ended(number, stream)

    def _on_data(self, each: Frame) -> Iterator[Event]:
        size, stream = len(each.payload), self._streams.get(each.stream)
        if each.stream == 0 or each.stream > self._last:
            raise Http2Error(Reset.PROTOCOL_ERROR, "data of no stream")
        self._receiving -= size  # opened again at once: the largest body is the limit
        if self._receiving < WINDOW // 2:
            self.outgoing += window_update(0, WINDOW - self._receiving)
            self._receiving = WINDOW
        if stream is None:
            return  # it was refused, or given up
        if stream.whole:
            raise Http2Error(Reset.STREAM_CLOSED, "data after the end")
        stream.receiving -= size
        stream.body += each.content
        if len(stream.body) > self._most_body:
            stream.body.clear()
            yield TooLong(each.stream)
        elif each.flags & END_STREAM:
            yield from self._ended(each.stream, stream)
        elif stream.receiving < WINDOW // 2:
            self.outgoing += window_update(each.stream, WINDOW - stream.receiving)
            stream.receiving = WINDOW

    def _ended(self, number: int, stream: _Stream) -> Iterator[Event]:
        if number in self._streams:  # else it was refused at once
            stream.whole, body = True, bytes(stream.body)
            stream.body.clear()
            yield Whole(number, body)

    def _on_reset(self, each: Frame) -> Iterator[Event]:
        _ = each.word
        if each.stream == 0 or each.stream > self._last:
            raise Http2Error(Reset.PROTOCOL_ERROR, "an end of no stream")
        if self._streams.pop(each.stream, None) is not None:
            yield Cancelled(each.stream)

    def _on_settings(self, each: Frame) -> Iterator[Event]:
        if each.stream:
            raise Http2Error(Reset.PROTOCOL_ERROR, "settings of a stream")
        self.ready = True
        if not each.flags & ACK:
            for number, value in each.settings:
                if number == Setting.INITIAL_WINDOW_SIZE:
                    self._resize(value)
            self.outgoing += frame(Kind.SETTINGS, ACK, 0)
        yield from ()

    def _resize(self, size: int) -> None:
        more, self._initial_window = size - self._initial_window, size
        for stream in self._streams.values():
            stream.window += more
        if any(stream.window > LARGEST_WINDOW for stream in self._streams.values()) or size > LARGEST_WINDOW:
            raise Http2Error(Reset.FLOW_CONTROL_ERROR, "a window that is too large")

    def _on_push(self, each: Frame) -> Iterator[Event]:
        raise Http2Error(Reset.PROTOCOL_ERROR, "a client promises nothing")

    def _on_ping(self, each: Frame) -> Iterator[Event]:
        if each.stream or len(each.payload) != 8:
            raise Http2Error(Reset.FRAME_SIZE_ERROR, "no ping")
        if not each.flags & ACK:
            self.outgoing += frame(Kind.PING, ACK, 0, each.payload)
        yield from ()

    def _on_window(self, each: Frame) -> Iterator[Event]:
        size = each.word & LARGEST_WINDOW
        if each.stream == 0:
            self._window += size
            widest = self._window
        elif (stream := self._streams.get(each.stream)) is not None:
            stream.window += size
            widest = stream.window
        else:
            return
        if widest > LARGEST_WINDOW or not size:
            raise Http2Error(Reset.FLOW_CONTROL_ERROR, "a window of no size")
        yield from ()

    # -- what goes

    def respond(self, number: int, fields: list[Field], ends: bool = False) -> None:
        """The header fields of an answer. ends: there is nothing else."""
        if (stream := self._streams.get(number)) is None:
            return
        self.outgoing += frame(Kind.HEADERS, END_HEADERS | (END_STREAM if ends else 0), number, encoded(fields))
        if ends:
            self._close(number, stream)

    def send(self, number: int, data: bytes) -> None:
        """More of an answer."""
        if (stream := self._streams.get(number)) is not None:
            stream.unsent += data
            self.flush()

    def finish(self, number: int, trailers: list[Field]) -> None:
        """The answer is over."""
        if (stream := self._streams.get(number)) is not None:
            stream.trailers = encoded(trailers)
            self.flush()

    def unsent(self, number: int) -> int:
        """Bytes of an answer that the client has not taken; 0 where it wants none any more."""
        stream = self._streams.get(number)
        return 0 if stream is None else len(stream.unsent)

    def flush(self) -> None:
        """What the windows take becomes frames, one of each stream in turn."""
        waiting = [each for each in self._streams.items() if each[1].unsent or each[1].trailers is not None]
        while waiting:
            waiting = [each for each in waiting if self._flush_one(*each)]

    def _flush_one(self, number: int, stream: _Stream) -> bool:
        """Whether there may be more."""
        size = min(len(stream.unsent), stream.window, self._window, LARGEST_FRAME)
        if size > 0:
            self.outgoing += frame(Kind.DATA, 0, number, bytes(stream.unsent[:size]))
            del stream.unsent[:size]
            stream.window -= size
            self._window -= size
        if stream.unsent:
            return size > 0
        if stream.trailers is not None:
            self.outgoing += frame(Kind.HEADERS, END_HEADERS | END_STREAM, number, stream.trailers)
            self._close(number, stream)
        return False

    def _close(self, number: int, stream: _Stream) -> None:
        del self._streams[number]
        if not stream.whole:  # the client may save itself the rest
            self.outgoing += rst_stream(number, Reset.NO_ERROR)

    def leave(self, reset: Reset = Reset.NO_ERROR, why: str = "") -> None:
        """No more requests; those that have begun are answered."""
        self._leaving = True
        self.outgoing += goaway(self._last, reset, why)
