"""The stream type `bytes`: a payload is what it is, a picture as its camera encodes it, say."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from node_agent.link.limits import MAX_MESSAGE_BYTES
from node_agent.operators.payloads.stream_type import Codec, CodecError, too_large

NAME = "bytes"


def encode(value: Any) -> bytes:
    """The same bytes; of a bytearray or a memoryview a copy. Raises CodecError."""
    if value.__class__ is not bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise CodecError("other_type", f"a {type(value).__name__} on a stream of bytes", subject=NAME)
        value = bytes(value)
    if len(value) > MAX_MESSAGE_BYTES:
        raise too_large(NAME, len(value), MAX_MESSAGE_BYTES)
    data: bytes = value
    return data


def decode(data: bytes) -> bytes:
    """The same bytes. Raises CodecError where they are too many."""
    return encode(data)


def as_text(encode: Callable[[Any], bytes]) -> Callable[[Any], str]:
    """What a command line shows of a value: the base64 text of its encoding."""
    return lambda value: b64encode(encode(value)).decode()


def from_text(decode: Callable[[bytes], Any], name: str) -> Callable[[Any], Any]:
    """The value of such a text, which raises CodecError where it is none."""

    def value(text: Any) -> Any:
        try:
            data = b64decode(text, validate=True)
        except (TypeError, ValueError) as error:
            raise CodecError("not_decoded", f"not {name} as base64 text: {error}", subject=name) from None
        return decode(data)

    return value


def _within(value: Any, most: int) -> bool:
    return len(value) <= most


BYTES = Codec(
    NAME, encode, decode, from_text(decode, NAME), as_text(encode), None, encode, _within, most_bytes=MAX_MESSAGE_BYTES
)


__all__ = ["BYTES", "as_text", "from_text"]
