"""Takes the engine's facts: 64-byte records into a buffer that the driver hands in.

The buffer is a ring or a growing array; `Facts` knows only the free stretch [position, limit). When the stretch is
used up it asks `refill` for the next one. The engine packs its RAN records into the stretch itself: a method call per
task instance costs more than the packing.
"""

from collections.abc import Callable
from struct import Struct

from protos.records import RECORD, RECORD_BYTES

Stretch = tuple[int, int]  # first free byte, first byte that is not free
HEADED = Struct("<IHHQqqqqqQ")  # RECORD with kind, flags and ref as one number, which does not change per unit


def heading(kind: int, flags: int, ref: int) -> int:
    """The first number of a HEADED record."""
    return kind | flags << 8 | ref << 16


class Facts:
    """Packs records. `refill()` returns the next free stretch of the buffer, asked for when the last one is full.

    latencies_ns: what all results so far took, the most and the least of each. admitted, refused: tuples so far. LOAD
    has these as the second witness of the records.
    """

    __slots__ = ("admitted", "buffer", "latencies_ns", "limit", "position", "refill", "refused")

    def __init__(self, buffer: bytearray | memoryview, refill: Callable[[], Stretch]) -> None:
        self.buffer = buffer
        self.refill = refill
        self.latencies_ns = self.admitted = self.refused = 0
        self.position, self.limit = refill()

    def write(
        self, kind: int, flags: int, ref: int, source: int, epoch: int, seq: int,
        w0: int = 0, w1: int = 0, w2: int = 0, w3: int = 0, w4: int = 0, last: int = 0,
    ) -> None:  # fmt: skip
        """Write one record; the words' meaning by kind stands in protos/records.py."""
        if self.position == self.limit:
            self.position, self.limit = self.refill()
        RECORD.pack_into(self.buffer, self.position, kind, flags, ref, source, epoch, seq, w0, w1, w2, w3, w4, last)
        self.position += RECORD_BYTES


class MemoryFacts(Facts):
    """Facts in a growing bytearray: virtual time and tests."""

    __slots__ = ()

    def __init__(self, chunk_records: int = 1024) -> None:
        buffer = bytearray()

        def refill() -> Stretch:
            first = len(buffer)
            buffer.extend(bytes(chunk_records * RECORD_BYTES))
            return first, len(buffer)

        super().__init__(buffer, refill)

    def data(self) -> bytes:
        """All records written so far."""
        return bytes(self.buffer[: self.position])
