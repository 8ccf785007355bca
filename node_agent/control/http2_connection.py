"""The server's end of one HTTP/2 connection, on bytes alone: bytes come in, requests come out, and answers go in.

The protocol is `h2`'s. Here are a server's requests as they matter to calls, what waits for the client's windows, and
the limits that `h2` leaves to its user. A request is given out when its header fields are there, so that it can be
refused before it costs anything, and again when it is whole.
[RFC 9113](https://www.rfc-editor.org/rfc/rfc9113), [h2](https://python-hyper.org/projects/h2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hpack import NeverIndexedHeaderTuple
from hyperframe.frame import GoAwayFrame

Field = tuple[bytes, bytes]  # name, value

DEFAULT_WINDOW = 65_535
WINDOW = 1 << 20  # bytes that a client may send without being answered, on a stream and on the connection
LARGEST_FRAME = 16_384  # that goes out
MOST_STREAMS = 64  # at once
MOST_SETTINGS = 32  # kinds of them that a client may name, and sizes that it may want for the table of our fields
MOST_UNREAD_BYTES = 2 * WINDOW  # that mean nothing: h2 waits for a frame of 16 MiB before it refuses it
SLICE_BYTES = 16 << 10  # looked at before more is parsed


class Http2Error(Exception):
    """The connection cannot go on."""


class Opened(NamedTuple):
    """A request has begun: its header fields, the last of each name."""

    stream: int
    fields: Mapping[str, str]


class Whole(NamedTuple):
    """A request is complete."""

    stream: int
    body: bytes


class TooLong(NamedTuple):
    """A request has a larger body than is taken; no more is said of it."""

    stream: int


class Cancelled(NamedTuple):
    """The client wants no answer any more."""

    stream: int


Happening = Opened | Whole | TooLong | Cancelled


class _Connection(H2Connection):
    MAX_CLOSED_STREAMS = 1024  # h2 remembers 65,536, 8 MB of a connection that lasts


@dataclass(slots=True)
class _Stream:
    """A request and its answer."""

    body: bytearray | None = field(default_factory=bytearray)  # None: too long
    unsent: bytearray = field(default_factory=bytearray)
    trailers: list[Field] | None = None  # the answer ends with them
    whole: bool = False  # the client has sent all of it


class Http2Connection:
    """most_body, most_fields: largest body and header fields of a request, in bytes."""

    def __init__(self, most_body: int, most_fields: int) -> None:
        self.ready = False  # the client has said what it takes
        self._most_body = most_body
        self._h2 = _Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self._h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: most_fields,
            },
        )
        self._h2.decoder.max_header_list_size = most_fields  # from the first request on
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(WINDOW - DEFAULT_WINDOW)
        self._streams: dict[int, _Stream] = {}
        self._first_out = b""  # before what h2 has to send
        self._leaving = False
        self._tables = 0  # sizes that the client wanted
        self._unread = 0

    # -- what comes

    def receive(self, data: bytes) -> Iterator[Happening]:
        """What it means, one after the other. Raises Http2Error, after which there is nothing but to close."""
        for at in range(0, len(data), SLICE_BYTES):
            part = data[at : at + SLICE_BYTES]
            try:
                events = self._h2.receive_data(part)
            except H2Error as error:  # h2 has written why
                self._streams.clear()
                raise Http2Error(str(error)) from None
            self._unread = 0 if events else self._unread + len(part)
            if self._unread > MOST_UNREAD_BYTES:
                self._end(ErrorCodes.ENHANCE_YOUR_CALM, "nothing that can be read")
            yield from self._happenings(events)
        self.flush()

    def _happenings(self, events: list[Event]) -> Iterator[Happening]:
        """h2 is ahead of its events: what ends in them has ended for it already."""
        if events and not self.ready and not isinstance(events[0], RemoteSettingsChanged):
            self._end(ErrorCodes.PROTOCOL_ERROR, "settings come first")
        over = {each.stream_id for each in events if isinstance(each, StreamReset)}
        whole = {each.stream_id for each in events if isinstance(each, StreamEnded)}
        for number in over & self._streams.keys():
            del self._streams[number]
            yield Cancelled(number)
        for number in whole & self._streams.keys():
            self._streams[number].whole = True
        for event in events:
            match event:
                case RequestReceived(stream_id=number) if number not in over:
                    yield from self._on_request(event, number in whole)
                case DataReceived():
                    yield from self._on_data(event)
                case StreamEnded(stream_id=number):
                    yield from self._on_end(number)
                case RemoteSettingsChanged():
                    self._on_settings(event)
                case ConnectionTerminated():
                    self._streams.clear()
                    raise Http2Error("the client has left")

    def _on_request(self, event: RequestReceived, whole: bool) -> Iterator[Happening]:
        number = event.stream_id
        if self._leaving:
            self._h2.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            return
        self._streams[number] = _Stream(whole=whole)
        yield Opened(number, {str(name): str(value) for name, value in event.headers})

    def _on_data(self, event: DataReceived) -> Iterator[Happening]:
        number = event.stream_id
        # Windows open again at once: the largest body is the limit.
        self._h2.acknowledge_received_data(event.flow_controlled_length, number)
        stream = self._streams.get(number)
        if stream is not None and stream.body is not None:
            stream.body += event.data
            if len(stream.body) > self._most_body:
                stream.body = None
                yield TooLong(number)

    def _on_end(self, number: int) -> Iterator[Happening]:
        stream = self._streams.get(number)
        if stream is not None and stream.body is not None:
            body, stream.body = bytes(stream.body), bytearray()
            yield Whole(number, body)

    def _on_settings(self, event: RemoteSettingsChanged) -> None:
        self.ready = True
        self._tables += SettingCodes.HEADER_TABLE_SIZE in event.changed_settings
        if max(self._tables, len(self._h2.remote_settings)) > MOST_SETTINGS:  # h2 remembers all of them
            self._end(ErrorCodes.ENHANCE_YOUR_CALM, "too many settings")

    def _end(self, code: ErrorCodes, why: str) -> NoReturn:
        self._streams.clear()
        self._h2.close_connection(code)
        raise Http2Error(why)

    # -- what goes

    def outgoing(self) -> bytes:
        """What the socket is to send, once."""
        data, self._first_out = self._first_out + self._h2.data_to_send(), b""
        return data

    def respond(self, number: int, fields: list[Field], ends: bool = False) -> None:
        """The header fields of an answer. ends: there is nothing else."""
        if (stream := self._streams.get(number)) is None:
            return
        self._send_fields(number, fields, ends)
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
            stream.trailers = trailers
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
        size = min(len(stream.unsent), self._h2.local_flow_control_window(number), LARGEST_FRAME)
        if size > 0:
            self._h2.send_data(number, bytes(stream.unsent[:size]))
            del stream.unsent[:size]
        if stream.unsent:
            return size > 0
        if stream.trailers is not None:
            self._send_fields(number, stream.trailers, ends=True)
            self._close(number, stream)
        return False

    def _send_fields(self, number: int, fields: list[Field], ends: bool) -> None:
        """Without the table of the other end, whose size that end may set to anything."""
        self._h2.send_headers(number, [NeverIndexedHeaderTuple(*each) for each in fields], end_stream=ends)

    def _close(self, number: int, stream: _Stream) -> None:
        del self._streams[number]
        if not stream.whole:  # the client may save itself the rest
            self._h2.reset_stream(number, ErrorCodes.NO_ERROR)

    def leave(self) -> None:
        """No more requests; those that have begun are answered, which h2 does not do once it has said so itself."""
        self._leaving = True
        farewell = GoAwayFrame(0, last_stream_id=self._h2.highest_inbound_stream_id, error_code=ErrorCodes.NO_ERROR)
        self._first_out = self.outgoing() + farewell.serialize()
