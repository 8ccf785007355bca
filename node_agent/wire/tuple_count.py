"""Counts the tuples and answers of an encoded Frame before protobuf makes an object of each.

A frame of 1 MiB has room for half a million empty ones, which would keep the thread that reads them for tens of
milliseconds. Frames are walked only where the bytes may hold too many: each that counts begins with the same byte.
"""

_MARKER = b"\x1a"  # field 3, of a length: Batch.tuples, Ack.admitted
_INNER = frozenset({0x12, 0x1A})  # fields 2 and 3 of a Frame: Batch, Ack
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WalkError(Exception):
    """These bytes are no message: protobuf would refuse them, or they have more fields than anybody writes."""


def has_more(data: bytes, most: int) -> bool:
    """Whether a Frame has more than `most` tuples, answers and other fields. Raises WalkError."""
    return data.count(_MARKER) > most and _walk(data, most) > most


def _walk(data: bytes, most: int) -> int:
    """The number of fields of the frame and of its batches and acknowledgements, or more than most."""
    fields, at, end = 0, 0, len(data)
    inside, within = False, end  # a batch or an acknowledgement, and where it ends
    try:
        while at < end and fields <= most:
            tag, at = _varint(data, at)
            fields += 1
            kind = tag & 7
            if kind == _BYTES:
                size, at = _varint(data, at)
                if tag in _INNER and not inside:
                    inside, within = True, at + size
                    fields -= 1
                else:
                    at += size
            elif kind == _VARINT:
                _, at = _varint(data, at)
            elif kind in {_FIXED64, _FIXED32}:
                at += 8 if kind == _FIXED64 else 4
            else:
                raise WalkError(f"a field of kind {kind}")
            if at >= within:
                inside, within = False, end
    except IndexError:
        raise WalkError("they end within a field") from None
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends. Raises IndexError where the bytes end, WalkError where it is too long."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise WalkError("a number of more than ten bytes")
