"""HPACK, how HTTP/2 writes header fields (RFC 7541). What is sent makes no use of the table of the other end."""

from collections import deque
from collections.abc import Iterable

from node_agent.control.http2.http2_frames import Http2Error, Reset
from node_agent.control.http2.huffman import decoded

Field = tuple[bytes, bytes]  # name, value

TABLE_BYTES = 4096  # of the dynamic table: what every end has unless it says otherwise
FIELD_BYTES = 32  # that each field counts for beside its text
LONGEST_INTEGER = 4  # bytes after the first
STATUS_200 = b"\x88"
NAMES = (
    b":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status"
    b" :status accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age"
    b" allow authorization cache-control content-disposition content-encoding content-language content-length"
    b" content-location content-range content-type cookie date etag expect expires from host if-match"
    b" if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards"
    b" proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie"
    b" strict-transport-security transfer-encoding user-agent vary via www-authenticate"
).split()
VALUES = {
    2: b"GET", 3: b"POST", 4: b"/", 5: b"/index.html", 6: b"http", 7: b"https", 8: b"200", 9: b"204", 10: b"206",
    11: b"304", 12: b"400", 13: b"404", 14: b"500", 16: b"gzip, deflate",
}  # by place; of the others: none  # fmt: skip
STATIC = [(name, VALUES.get(place, b"")) for place, name in enumerate(NAMES, 1)]


def _broken(why: str) -> Http2Error:
    """The two ends no longer have the same table."""
    return Http2Error(Reset.COMPRESSION_ERROR, why)


class FieldDecoder:
    """Header blocks of one connection, in the order they come. most_bytes: of one block's fields, as HTTP/2 counts."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._table: deque[Field] = deque()  # the latest first
        self._table_bytes, self._limit = 0, TABLE_BYTES

    def fields(self, block: bytes) -> list[Field]:
        """Of a whole block. Raises Http2Error."""
        at, found, size = 0, list[Field](), 0
        while at < len(block):
            first = block[at]
            if first & 0xE0 == 0x20:
                if found:
                    raise _broken("a size of the table after fields")
                self._limit, at = _integer(block, at, 5)
                if self._limit > TABLE_BYTES:
                    raise _broken("a larger table than was offered")
                self._evict(0)
                continue
            if first & 0x80:
                place, at = _integer(block, at, 7)
                field = self._at(place)
            else:
                field, at = self._literal(block, at, 6 if first & 0x40 else 4)
                if first & 0x40:
                    self._add(field)
            size += _size(field)
            if size > self._most_bytes:
                raise Http2Error(Reset.ENHANCE_YOUR_CALM, f"more than {self._most_bytes} bytes of header fields")
            found.append(field)
        return found

    def _literal(self, block: bytes, at: int, bits: int) -> tuple[Field, int]:
        place, at = _integer(block, at, bits)
        if place:
            name = self._at(place)[0]
        else:
            name, at = _text(block, at)
        value, at = _text(block, at)
        return (name, value), at

    def _at(self, place: int) -> Field:
        if 1 <= place <= len(STATIC):
            return STATIC[place - 1]
        if 0 <= place - len(STATIC) - 1 < len(self._table):
            return self._table[place - len(STATIC) - 1]
        raise _broken("no such place in the table")

    def _add(self, field: Field) -> None:
        size = _size(field)
        self._evict(size)
        if size <= self._limit:
            self._table.appendleft(field)
            self._table_bytes += size

    def _evict(self, size: int) -> None:
        """Make room for so many bytes."""
        while self._table and self._table_bytes + size > self._limit:
            self._table_bytes -= _size(self._table.pop())


def encoded(fields: Iterable[Field]) -> bytes:
    """Each field as it is, not to be put into a table. A status of 200 has a byte of its own."""
    block = bytearray()
    for name, value in fields:
        if (name, value) == (b":status", b"200"):
            block += STATUS_200
        else:
            block += b"\x00" + _prefixed(name) + _prefixed(value)
    return bytes(block)


def _prefixed(text: bytes) -> bytes:
    left = len(text)
    if left < 127:
        return bytes((left,)) + text
    prefix, left = bytearray((127,)), left - 127
    while left >= 128:
        prefix.append(left & 127 | 128)
        left >>= 7
    prefix.append(left)
    return bytes(prefix) + text


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """The number that begins in the low bits there, and where it ends."""
    most = (1 << bits) - 1
    value = _byte(block, at) & most
    at += 1
    if value < most:
        return value, at
    for more in range(LONGEST_INTEGER):
        byte = _byte(block, at)
        value, at = value + ((byte & 127) << 7 * more), at + 1
        if byte < 128:
            return value, at
    raise _broken("a number that is too long")


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    compressed = _byte(block, at) & 0x80
    length, at = _integer(block, at, 7)
    if at + length > len(block):
        raise _broken("a text that ends early")
    text = block[at : at + length]
    if not compressed:
        return text, at + length
    try:
        return decoded(text), at + length
    except ValueError as error:
        raise _broken(str(error)) from None


def _byte(block: bytes, at: int) -> int:
    if at >= len(block):
        raise _broken("a block that ends early")
    return block[at]


def _size(field: Field) -> int:
    return len(field[0]) + len(field[1]) + FIELD_BYTES
