# cython: boundscheck=False, wraparound=False
"""Takes the engine's facts: 64-byte records into a buffer that the driver hands in.

The buffer is a ring or a growing array; `Facts` knows only the free stretch [position, limit). When the stretch is
used up it asks `refill` for the next one. The engine packs its RAN records into the stretch itself: a method call per
task instance costs more than the packing.
"""

from collections.abc import Callable
from struct import Struct, error

from protos.records import RECORD, RECORD_BYTES

COMPILED = not __file__.endswith(".py")

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

    __slots__ = ("_words", "admitted", "buffer", "latencies_ns", "limit", "position", "refill", "refused")

    def __init__(self, buffer: bytearray | memoryview, refill: Callable[[], Stretch]) -> None:
        self.refill = refill
        self.take(buffer)
        self.latencies_ns = self.admitted = self.refused = 0
        self.position, self.limit = refill()

    def take(self, buffer: bytearray | memoryview) -> None:
        """Write into that buffer from now on."""
        self.buffer = buffer
        if COMPILED:
            self._words = memoryview(buffer).cast("B").cast("q")

    def release(self) -> None:
        """Nothing is written any more: the buffer may go."""
        self._words = None  # type: ignore[assignment]  # no view that holds it

    def put(
        self, position: int, head: int, source: int, epoch: int, seq: int,
        w0: int, w1: int, w2: int, w3: int, w4: int, last: int,
    ) -> None:  # fmt: skip
        """`HEADED.pack_into` in compiled code."""
        words, at = self._words, position >> 3
        if words is None:
            raise ValueError("the buffer of these facts is gone")
        if (source | epoch) >> 16:
            raise error("source and epoch have 16 bits")  # as `pack_into` does
        words[at] = head | source << 32 | epoch << 48
        words[at + 1] = seq
        words[at + 2] = w0
        words[at + 3] = w1
        words[at + 4] = w2
        words[at + 5] = w3
        words[at + 6] = w4
        words[at + 7] = last

    def store(self, position: int, word: int) -> None:
        """Eight bytes of the buffer, in compiled code."""
        if self._words is None:
            raise ValueError("the buffer of these facts is gone")
        self._words[position >> 3] = word

    def write(
        self, kind: int, flags: int, ref: int, source: int, epoch: int, seq: int,
        w0: int = 0, w1: int = 0, w2: int = 0, w3: int = 0, w4: int = 0, last: int = 0,
    ) -> None:  # fmt: skip
        """Write one record; the words' meaning by kind stands in protos/records.py. Raises `struct.error`, in compiled
        code also OverflowError: a number does not fit."""
        if self.position == self.limit:
            self.position, self.limit = self.refill()
        if COMPILED:
            if (kind | flags) >> 8 or ref >> 16:
                raise error("kind and flags have 8 bits, ref has 16")
            head = kind | flags << 8 | ref << 16
            self.put(self.position, head, source, epoch, seq, w0, w1, w2, w3, w4, last)
        else:
            RECORD.pack_into(self.buffer, self.position, kind, flags, ref, source, epoch, seq, w0, w1, w2, w3, w4, last)
        self.position += RECORD_BYTES


class MemoryFacts(Facts):
    """Facts in a growing bytearray: virtual time and tests."""

    __slots__ = ("_chunk_bytes",)

    def __init__(self, chunk_records: int = 1024) -> None:
        self._chunk_bytes = chunk_records * RECORD_BYTES
        super().__init__(bytearray(), self._more)

    def _more(self) -> Stretch:
        first = len(self.buffer)
        self.take(bytearray(self.buffer) + bytes(max(first, self._chunk_bytes)))
        return first, len(self.buffer)

    def data(self) -> bytes:
        """All records written so far."""
        return bytes(self.buffer[: self.position])
