"""Reads batches and a node's acknowledgements in the layout of `plain_frames`, every field in range.

For all else `plain_batch` says None, and protobuf reads it, or refuses it. What this program sends itself is nearly all
that comes. Here a batch of 50 takes three quarters of the time that protobuf takes, and one tuple two fifths. Compiled
it is a quarter, and an eighth.

A field that protobuf would accept in another order, twice, or with an overlong tag is not accepted here, so a batch
that is read here reads the same there.
"""

from struct import Struct, error

from node_agent.link.arrived import Arrived
from node_agent.link.clock_offset import FAR_NS

COMPILED = not __file__.endswith(".py")

MOST_TUPLES = 256  # a longer batch comes in parts, so that a reader may do something else in between

_SENT = Struct("<BqB")  # sent_ns; tag of `first`
_FIXED = Struct("<BQBQBqBq")  # seq, plan, origin_lo_ns, origin_hi_ns
_FIXED_BYTES = 36
_CLIENT = b"\x08\x00\x10\x00\x28\x00\x4a"  # no source, epoch, stream yet: a client's tuple; tag of the payload
_FIRST_LIMIT = (1 << 63) - MOST_TUPLES
_ORDINAL, _DELIVERED = 0x30, 0x59  # tags of what may stand behind the payload

Plain = tuple[int, int, list[Arrived]]  # first, sent_ns, the tuples


def plain_batch(data: bytes, at: int, next_first: int) -> Plain | None:
    """The batch that fills a frame's bytes from `at` on, or None where protobuf has to read it. next_first: the least
    allowed `first`."""
    try:
        return _batch(data, at, next_first)
    except (IndexError, ValueError, OverflowError, error):
        return None


def plain_ack(data: bytes) -> tuple[int, int] | None:
    """upto and credit_bytes of the Ack without answers that is those bytes, or None where protobuf has to read it."""
    try:
        return _ack(data)
    except (IndexError, ValueError, OverflowError):
        return None


def _ack(data: bytes) -> tuple[int, int]:
    """Raises ValueError and IndexError where it is another layout."""
    end = len(data)
    if data[0] != 0x1A or data[1] != end - 2 or data[2] != 0x08:
        raise ValueError
    upto, at = _number(data, 3)
    if data[at] != 0x10:
        raise ValueError
    credit_bytes, at = _number(data, at + 1)
    if at != end or credit_bytes > 0xFFFFFFFF:
        raise ValueError
    return upto, credit_bytes


def _batch(data: bytes, at: int, next_first: int) -> Plain:
    """Raises ValueError, IndexError and struct.error where it is another layout."""
    end = len(data)
    size, begin = _number(data, at + 1)
    if data[at] != 0x12 or size != end - begin or size < 10:
        raise ValueError
    at = begin
    if COMPILED:
        sent_tag, sent_ns, first_tag = data[at], fixed64(data, at + 1), data[at + 9]  # type: ignore[name-defined]  # noqa: F821
    else:
        sent_tag, sent_ns, first_tag = _SENT.unpack_from(data, at)
    first, at = _number(data, at + 10)
    if sent_tag != 0x11 or first_tag != 0x08 or not (-FAR_NS <= sent_ns <= FAR_NS) or at == end:
        raise ValueError
    if not next_first <= first < _FIRST_LIMIT:
        raise ValueError
    tuples: list[Arrived] = []
    while at < end:
        if data[at] != 0x1A or len(tuples) == MOST_TUPLES:
            raise ValueError
        size = data[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _number(data, at - 1)
        if size > end - at:
            raise ValueError
        tuples.append(_tuple(data, at, at + size))
        at += size
    return first, sent_ns, tuples


def _tuple(data: bytes, at: int, end: int) -> Arrived:
    """The one in data[at:end]. Raises as `_batch`."""
    if at + _FIXED_BYTES > end:
        raise ValueError
    if COMPILED:
        seq_tag, plan_tag, lo_tag, hi_tag = data[at], data[at + 9], data[at + 18], data[at + 27]
        seq, plan = fixed64(data, at + 1), fixed64(data, at + 10)  # type: ignore[name-defined]  # noqa: F821
        lo_ns, hi_ns = fixed64(data, at + 19), fixed64(data, at + 28)  # type: ignore[name-defined]  # noqa: F821
    else:
        seq_tag, seq, plan_tag, plan, lo_tag, lo_ns, hi_tag, hi_ns = _FIXED.unpack_from(data, at)
    if seq_tag != 0x19 or plan_tag != 0x21 or lo_tag != 0x39 or hi_tag != 0x41:
        raise ValueError
    at += _FIXED_BYTES
    source = epoch = stream = ordinal = at_ns = 0
    if data.startswith(_CLIENT, at):
        at += 7
    else:
        source, epoch, stream, at = _numbers(data, at)
    size = data[at]
    at += 1
    if size > 0x7F:
        size, at = _number(data, at - 1)
    if size > end - at or not (-FAR_NS <= lo_ns <= hi_ns <= FAR_NS):
        raise ValueError
    begin = at
    at += size
    if at < end:
        ordinal, at_ns = _behind(data, at, end)
    return Arrived((source, epoch, seq, ordinal, lo_ns, hi_ns), stream, plan, data[begin:at], False, at_ns)


def _numbers(data: bytes, at: int) -> tuple[int, int, int, int]:
    """source, epoch, stream, and where the payload's length stands. Raises as `_batch`."""
    if data[at] != 0x08:
        raise ValueError
    source, at = _number(data, at + 1)
    if data[at] != 0x10:
        raise ValueError
    epoch, at = _number(data, at + 1)
    if data[at] != 0x28:
        raise ValueError
    stream, at = _number(data, at + 1)
    if data[at] != 0x4A or (source | epoch | stream) > 0xFFFF:
        raise ValueError
    return source, epoch, stream, at + 1


def _behind(data: bytes, at: int, end: int) -> tuple[int, int]:
    """ordinal and at_ns, of what stands behind the payload. Raises as `_batch`."""
    ordinal = at_ns = 0
    if data[at] == _ORDINAL:
        ordinal, at = _number(data, at + 1)
        if not 0 < ordinal <= 0xFFFFFFFF:
            raise ValueError
    if at < end:
        if data[at] != _DELIVERED or at + 9 != end:
            raise ValueError
        at_ns = int.from_bytes(data[at + 1 : end], "little", signed=True)
    return ordinal, at_ns


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number at that place, and the place behind it. Raises IndexError, ValueError for more than nine bytes."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while shift < 63:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise ValueError


__all__ = ["MOST_TUPLES", "plain_ack", "plain_batch"]
