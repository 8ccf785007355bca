"""What gRPC writes into requests and answers of HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md)."""

from collections.abc import Mapping
from struct import Struct
from urllib.parse import quote

from node_agent.control.calls.call_errors import CallError, Code
from node_agent.control.http2_connection import Field

CONTENT_TYPE = "application/grpc"
ANSWER: list[Field] = [
    (b":status", b"200"), (b"content-type", CONTENT_TYPE.encode()), (b"grpc-accept-encoding", b"identity"),
]  # fmt: skip
PREFIX = Struct(">?I")  # of a message: whether it is compressed, and its length
UNITS_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
MOST_DIGITS = 8
PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def prefixed(message: bytes) -> bytes:
    """A message as it goes over the wire."""
    return PREFIX.pack(False, len(message)) + message


def only_message(body: bytes) -> bytes:
    """Of a request that has one. Raises CallError."""
    if len(body) < PREFIX.size:
        raise CallError(Code.INTERNAL, "a request without a message")
    compressed, size = PREFIX.unpack_from(body)
    if compressed:
        raise CallError(Code.UNIMPLEMENTED, "messages that are compressed are not taken")
    if size != len(body) - PREFIX.size:
        raise CallError(Code.INTERNAL, "a request has one message")
    return body[PREFIX.size :]


def patience_s(fields: Mapping[str, str]) -> float | None:
    """How long the caller waits; None: for ever. Raises CallError."""
    if (text := fields.get("grpc-timeout")) is None:
        return None
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS and unit in UNITS_S):
        raise CallError(Code.INTERNAL, "grpc-timeout is no time")
    return int(number) * UNITS_S[unit]


def trailers(code: Code, details: str = "") -> list[Field]:
    """How a call has ended."""
    found = [(b"grpc-status", str(int(code)).encode())]
    if details:
        found.append((b"grpc-message", quote(details, safe=PRINTABLE).encode()))
    return found
