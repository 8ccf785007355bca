"""Reads the frame that latency is made of: a batch of one tuple, alone in what the socket gave.

Only the layout that `frames.encode_batch` and `frames.encode_tuple` write, with every field in range; for all else
`lone_batch` says None, and protobuf reads it, or refuses it. On a node that mostly waits, code and data have left the
processor's caches when a tuple comes: then this takes a quarter of the time that protobuf takes.

A field that protobuf would accept in another order, twice, or with an overlong tag is not accepted here, so a frame
that is read here reads the same there.
"""

from struct import Struct, error
from zlib import crc32

from node_agent.link.clock_offset import FAR_NS
from node_agent.link.limits import MAX_FRAME_BYTES
from node_agent.link.receiver import Arrived

_HEAD = Struct(">IIBB")  # length and CRC-32 of the frame; tag and first byte of the length of the batch
_SENT = Struct("<BqB")  # sent_ns; tag of `first`
_FIXED = Struct("<BQBQBqBq")  # seq, plan, origin_lo_ns, origin_hi_ns
_SOURCE = b"\x08\x00\x10\x00\x28\x00\x4a"  # no source, epoch, stream yet: a client's tuple; tag of the payload
_FIRST_LIMIT = (1 << 63) - 1


def lone_batch(data: bytes, next_first: int) -> tuple[int, int, Arrived] | None:  # noqa: PLR0911 - nothing to share
    """(first, sent_ns, the tuple), or None where protobuf has to read it. next_first: the least allowed `first`."""
    try:
        length, check, batch_tag, size = _HEAD.unpack_from(data)
        end = len(data)
        if length + 8 != end or length > MAX_FRAME_BYTES or batch_tag != 0x12:
            return None
        at = 10
        if size > 0x7F:
            size, at = _varint(data, 9)
        sent_tag, sent_ns, first_tag = _SENT.unpack_from(data, at)
        if at + size != end or sent_tag != 0x11 or first_tag != 0x08:
            return None
        first, at = _varint(data, at + 10)
        tuple_tag = data[at]
        size, at = _varint(data, at + 1)
        if at + size != end or tuple_tag != 0x1A:
            return None
        seq_tag, seq, plan_tag, plan, lo_tag, lo_ns, hi_tag, hi_ns = _FIXED.unpack_from(data, at)
        if (seq_tag, plan_tag, lo_tag, hi_tag) != (0x19, 0x21, 0x39, 0x41):
            return None
        at += 36
        source = epoch = stream = 0
        if data.startswith(_SOURCE, at):
            size, at = _varint(data, at + 7)
        else:
            source, epoch, stream, size, at = _numbers(data, at)
    except (IndexError, ValueError, error):
        return None
    in_range = (
        at + size == end
        and next_first <= first < _FIRST_LIMIT
        and -FAR_NS <= sent_ns <= FAR_NS
        and -FAR_NS <= lo_ns <= hi_ns <= FAR_NS
        and (source | epoch | stream) <= 0xFFFF
        and crc32(data[8:]) == check
    )
    if not in_range:
        return None
    return first, sent_ns, Arrived((source, epoch, seq, 0, lo_ns, hi_ns), stream, plan, data[at:], False, 0)


def _numbers(data: bytes, at: int) -> tuple[int, int, int, int, int]:
    """source, epoch, stream, size of the payload, where it begins. Raises ValueError on another layout."""
    numbers = []
    for tag in (0x08, 0x10, 0x28, 0x4A):
        if data[at] != tag:
            raise ValueError
        number, at = _varint(data, at + 1)
        numbers.append(number)
    source, epoch, stream, size = numbers
    return source, epoch, stream, size, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
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
