"""Frames of HTTP/2 (RFC 9113, 4 and 6): how they are cut out of bytes, and those that a server sends."""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES, LARGEST_FRAME = 9, 16384
LARGEST_WINDOW = (1 << 31) - 1
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY_FIELDS = 0x4, 0x8, 0x20
_SETTING, _WORD = Struct(">HI"), Struct(">I")


class Kind(IntEnum):
    """Kinds of frames. Others are left alone."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Reset(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Setting(IntEnum):
    """What an end says of itself."""

    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_HEADER_LIST_SIZE = 6


class Http2Error(Exception):
    """The connection cannot go on. code: what the other end is to be told."""

    def __init__(self, code: Reset, why: str) -> None:
        super().__init__(why)
        self.code = code


class Frame(NamedTuple):
    """One frame. kind: a number, which may be none of `Kind`."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def content(self) -> bytes:
        """Of DATA and HEADERS: without padding and priority. Raises Http2Error."""
        payload = self.payload
        if self.flags & PADDED:
            if not payload or payload[0] >= len(payload):
                raise Http2Error(Reset.PROTOCOL_ERROR, "more padding than frame")
            payload = payload[1 : len(payload) - payload[0]]
        if self.kind == Kind.HEADERS and self.flags & PRIORITY_FIELDS:
            payload = payload[5:]
        return payload

    @property
    def word(self) -> int:
        """Of WINDOW_UPDATE and RST_STREAM: their number. Raises Http2Error."""
        if len(self.payload) != _WORD.size:
            raise Http2Error(Reset.FRAME_SIZE_ERROR, "no number of four bytes")
        (word,) = _WORD.unpack(self.payload)
        return int(word)

    @property
    def settings(self) -> Iterator[tuple[int, int]]:
        """Of SETTINGS: numbers and values. Raises Http2Error."""
        if len(self.payload) % _SETTING.size:
            raise Http2Error(Reset.FRAME_SIZE_ERROR, "settings that end early")
        return _SETTING.iter_unpack(self.payload)


class FrameReader:
    """Cuts the bytes of a client into frames."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self.opened = False  # the preface has come

    def frames(self, data: bytes) -> Iterator[Frame]:
        """Those that are whole now. Raises Http2Error."""
        unread = self._unread
        unread += data
        at = 0
        if not self.opened:
            if unread[: len(PREFACE)] != PREFACE[: len(unread)]:
                raise Http2Error(Reset.PROTOCOL_ERROR, "this is not HTTP/2")
            if len(unread) < len(PREFACE):
                return
            self.opened, at = True, len(PREFACE)
        while len(unread) >= at + HEAD_BYTES:
            size = int.from_bytes(unread[at : at + 3])
            if size > LARGEST_FRAME:
                raise Http2Error(Reset.FRAME_SIZE_ERROR, "a frame that is too large")
            begin, at = at + HEAD_BYTES, at + HEAD_BYTES + size
            if len(unread) < at:
                at = begin - HEAD_BYTES
                break
            stream = int.from_bytes(unread[begin - 4 : begin]) & LARGEST_WINDOW
            yield Frame(unread[begin - 6], unread[begin - 5], stream, bytes(unread[begin:at]))
        del unread[:at]


def frame(kind: Kind, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """As it goes over the wire."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def settings(*said: tuple[Setting, int]) -> bytes:
    """What a server says of itself."""
    return frame(Kind.SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in said))


def window_update(stream: int, size: int) -> bytes:
    """So many more bytes may come. stream 0: on the connection."""
    return frame(Kind.WINDOW_UPDATE, 0, stream, _WORD.pack(size))


def rst_stream(stream: int, reset: Reset) -> bytes:
    """That stream is over."""
    return frame(Kind.RST_STREAM, 0, stream, _WORD.pack(reset))


def goaway(last: int, reset: Reset, why: str = "") -> bytes:
    """No stream after that one is served."""
    return frame(Kind.GOAWAY, 0, 0, _WORD.pack(last) + _WORD.pack(reset) + why.encode())
