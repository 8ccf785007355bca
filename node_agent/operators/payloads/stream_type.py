"""What a codec is, and how one takes values up to a declared size only."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.problems import ProblemError

Parts = tuple[bytes | memoryview, ...]  # of an encoding, in order


class CodecError(ProblemError):
    """A value that cannot be encoded, or bytes that cannot be decoded, as the stream's type."""


class UnknownCodecError(ProblemError):
    """No codec of that name is installed, or it cannot be loaded; the message says which and what to do."""


def _never(value: Any, most: int) -> bool:
    return False


class Codec(NamedTuple):
    """One stream type. encode, decode, from_json and to_json raise CodecError; the last two are for command lines and
    connectors. fields: of its values, for planners, as `described` says them; None: not known. fit: what a value is
    after a hop, the same object where a hop changes nothing; raises CodecError where it cannot be encoded. within:
    whether a value surely takes no more than so many bytes, told without encoding it. parts: the encoding without a
    copy of what is large. head_bytes: of an encoding, at most, that no size counts. most_bytes: of one encoded value,
    without these."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    from_json: Callable[[Any], Any]
    to_json: Callable[[Any], Any]
    fields: Mapping[str, Any] | None = None
    fit: Callable[[Any], Any] = lambda value: value
    within: Callable[[Any, int], bool] = _never
    parts: Callable[[Any], Parts] | None = None
    head_bytes: int = 0
    most_bytes: int = MAX_PAYLOAD_BYTES


def too_large(name: str, size: int, most: int) -> CodecError:
    """A value of so many bytes, or more."""
    return CodecError("too_large", f"{size} bytes of {name}", f"at most {most}", subject=name)


def sized(codec: Codec, most: int) -> Codec:
    """That codec for values of at most so many bytes. most: no more than the codec itself takes."""
    name, limit = codec.name, most + codec.head_bytes

    def refuse(size: str) -> CodecError:
        mend = f"the query allows {most}: declare a larger 'max_size:', or send less"
        return CodecError("too_large", f"{size} bytes of {name}", mend, subject=name)

    def checked(value: Any) -> Any:
        if codec.head_bytes and not codec.within(value, most):  # its encoding does not tell exactly
            raise refuse(f"more than {most}")
        return value

    def bounded(data: bytes) -> bytes:
        if len(data) > limit:
            raise refuse(f"{len(data)}")
        return data

    def encode(value: Any) -> bytes:
        return bounded(codec.encode(checked(value)))

    def decode(data: bytes) -> Any:
        return checked(codec.decode(bounded(data)))

    def fit(value: Any) -> Any:
        value = checked(codec.fit(value))
        if not codec.within(value, most):
            bounded(codec.encode(value))
        return value

    def parts(value: Any) -> Parts:
        assert codec.parts is not None
        return codec.parts(checked(value))

    return codec._replace(encode=encode, decode=decode, fit=fit, parts=parts if codec.parts else None, most_bytes=most)


__all__ = ["Codec", "CodecError", "Parts", "UnknownCodecError", "sized", "too_large"]
