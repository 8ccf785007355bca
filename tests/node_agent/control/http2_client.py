"""A client of HTTP/2 that is written out: frames as RFC 9113 has them, so that each rule can be broken."""

import asyncio
from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from hpack import Decoder, Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LARGEST_FRAME, LARGEST_WINDOW = 16384, (1 << 31) - 1
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY_FIELDS = 0x4, 0x8, 0x20
TABLE_SIZE, INITIAL_WINDOW = 1, 4  # settings
_SETTING = Struct(">HI")

Field = tuple[bytes, bytes]


class Kind(IntEnum):
    """Kinds of frames."""

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
    ENHANCE_YOUR_CALM = 11


class Frame(NamedTuple):
    """One frame that has come."""

    kind: Kind
    flags: int
    stream: int
    payload: bytes

    @property
    def word(self) -> int:
        """The last four bytes: of WINDOW_UPDATE its size, of RST_STREAM and GOAWAY its code."""
        return int.from_bytes(self.payload[-4:])


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def settings(*said: tuple[int, int]) -> bytes:
    return frame(Kind.SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in said))


def window_update(stream: int, size: int) -> bytes:
    return frame(Kind.WINDOW_UPDATE, 0, stream, size.to_bytes(4))


def rst_stream(stream: int, code: int = Reset.NO_ERROR) -> bytes:
    return frame(Kind.RST_STREAM, 0, stream, code.to_bytes(4))


def encoded(fields: Iterable[Field]) -> bytes:
    """A block that needs no table."""
    return Encoder().encode(list(fields))


def decoded(decoder: Decoder, block: bytes) -> dict[bytes, bytes]:
    return {bytes(name): bytes(value) for name, value in decoder.decode(block, raw=True)}  # type: ignore[arg-type]


def frames(data: bytes) -> list[Frame]:
    """Those in bytes that a server has sent."""
    found = []
    while data:
        size = int.from_bytes(data[:3])
        found.append(Frame(Kind(data[3]), data[4], int.from_bytes(data[5:9]), data[9 : 9 + size]))
        data = data[9 + size :]
    return found


async def next_frame(reader: asyncio.StreamReader) -> Frame:
    head = await asyncio.wait_for(reader.readexactly(9), 60)
    payload = await asyncio.wait_for(reader.readexactly(int.from_bytes(head[:3])), 60)
    return Frame(Kind(head[3]), head[4], int.from_bytes(head[5:9]), payload)
