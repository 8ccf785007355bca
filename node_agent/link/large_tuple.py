"""A tuple that is sent in chunks, and how its parts become one again. Pure.

The payload is not copied at the sending end, whose parts are only sliced. At the receiving end its memory is there from
the first chunk on, so that no chunk costs more than its own bytes, and the last one gives the payload as it stands.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Generic, NamedTuple, TypeVar

from node_agent.link.arrived import Withheld
from node_agent.link.limits import CHUNK_BYTES, LEAST_CHUNK_BYTES, LinkError

Head = TypeVar("Head")
STILL_NS = 30_000_000_000  # without a chunk, until a tuple that is under way is given up with its connection


class LargeTuple:
    """head: the encoded tuple without its payload; tag: what stands before the payload where all is one; parts: of the
    payload, which has `size` bytes. Its length is what it takes on a link, about."""

    __slots__ = ("head", "parts", "size", "tag")

    def __init__(self, head: bytes, tag: bytes, parts: Sequence[bytes | memoryview]) -> None:
        self.head, self.tag = head, tag
        self.parts = [memoryview(part) for part in parts]
        self.size = sum(map(len, self.parts))

    def __len__(self) -> int:
        return len(self.head) + len(self.tag) + self.size

    def whole(self) -> bytes:
        """The encoded tuple, for a peer that takes no chunks."""
        return b"".join((self.head, self.tag, *self.parts))

    def chunk(self, offset: int) -> bytes:
        """The part of the payload that begins there."""
        end, at, found = min(offset + CHUNK_BYTES, self.size), 0, []
        for part in self.parts:
            first, last = max(offset - at, 0), min(end - at, len(part))
            if first < last:
                found.append(part[first:last])
            at += len(part)
        return b"".join(found)


class Whole(NamedTuple, Generic[Head]):
    """A tuple of which the last chunk has come. withheld: then the payload is empty."""

    head: Head
    payload: bytes
    withheld: Withheld | None


class Assembly(Generic[Head]):
    """Makes tuples of the chunks of one connection: one at a time. most_bytes: of a payload; nothing larger is begun.

    admit: whether a payload of that size may be taken in; what is not is counted off, and none of it is held. hold:
    told by how many bytes what is held grows or shrinks.
    """

    def __init__(self, most_bytes: int = 0) -> None:
        self.most_bytes = most_bytes
        self.admit: Callable[[Head, int], Withheld | None] = _anything
        self.hold: Callable[[int], None] = _nothing
        self._head: Head | None = None
        self._size = self._offset = 0
        self._out: BytesIO | None = None
        self._withheld: Withheld | None = None
        self._seen = (0, 0)  # how much had come, and since when there has been no more

    def add(self, offset: int, size: int, head: Head | None, data: bytes, last: bool) -> Whole[Head] | None:
        """One chunk; the tuple where it is the last one, which `last` has to say as well. Raises LinkError."""
        if offset == 0:
            self._begin(size, head)
        elif head is not None or self._head is None or (offset, size) != (self._offset, self._size):
            raise LinkError("chunk_order", f"a chunk that begins at {offset} of {size} bytes is not the next one")
        self._offset += len(data)
        ends = self._offset == self._size
        if len(data) > CHUNK_BYTES or self._offset > self._size or (len(data) < LEAST_CHUNK_BYTES and not ends):
            raise LinkError("chunk_fields", f"a chunk of {len(data)} bytes at {offset} of {size}")
        if last != ends:
            raise LinkError("chunk_fields", f"a chunk up to {self._offset} of {size} bytes is the last one, or is not")
        if self._out is not None:
            self._out.write(data)
        if not ends:
            return None
        assert self._head is not None
        found = Whole(self._head, b"" if self._out is None else self._out.getvalue(), self._withheld)
        self.drop()
        return found

    def _begin(self, size: int, head: Head | None) -> None:
        self.drop()
        if head is None or not 0 < size <= self.most_bytes:
            raise LinkError("chunk_fields", f"a tuple in chunks of {size} bytes; at most {self.most_bytes} are taken")
        self._head, self._size = head, size
        self._withheld = self.admit(head, size)
        if self._withheld is None:
            self._out = BytesIO(bytes(size))  # which is not touched before it is written
            self.hold(size)

    def drop(self) -> None:
        """What has not come whole is gone: a connection that ended, or a tuple that begins anew."""
        if self._out is not None:
            self.hold(-self._size)
        self._head, self._out, self._withheld = None, None, None
        self._size = self._offset = 0

    def still(self, at_ns: int) -> bool:
        """Whether a tuple is under way and nothing has come of it for too long. Ask now and then."""
        if self._head is None or self._seen[0] != self._offset:
            self._seen = (self._offset, at_ns)
        return self._head is not None and at_ns - self._seen[1] > STILL_NS


def _anything(head: object, size: int) -> Withheld | None:
    return None


def _nothing(change: int) -> None:
    """Nobody counts."""


__all__ = ["Assembly", "LargeTuple", "Whole"]
