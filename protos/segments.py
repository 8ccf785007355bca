"""Segments of trace records, in files and in transit: blocks with a checksum, chained, sealed at the end.

Standard library only. A segment is a header of 128 bytes (records.py) and then blocks: a head of 64 bytes and the
records that it counts. The same bytes are in an agent's spool, in a TraceChunk and in a run directory. A head is

    magic 4s, flags u16, state u16, count u32, deflated u32,
    boot u64, first u64, position u64, previous u64, link u64, check u64

boot      the incarnation; it may have many segments, its blocks go on from one to the next
first     number of the block's first record in the incarnation, from 0
position  how many records of the trace ring are accounted for after this block; 0 where there was no ring
previous  what the block before is called: its `check`, or its `link` if it has one; of the very first one: the header's
check     BLAKE2b, 8 bytes, of the head before it and the body: a changed bit is seen, as are missing, doubled and
          exchanged blocks by `first` and `previous`

deflated  bytes of the body, where its records are compressed; 0: they are as they are

flags:
ZSTD      what is deflated is one frame of Zstandard (RFC 8878), which says how much it holds; without: zlib (RFC 1950)
SEAL      the incarnation is over, `state` is the PLAN state that closed it; nothing follows
MISSING   `count` records were here and are not any more; no body. Its `link` is what the next sound block calls it.
FREED     everything before `first` was handed over and freed; `previous` is what the next block will name

A trace without a seal is one whose end nobody knows: it still runs, or its node lost power.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import NamedTuple

from protos.block_compression import Compression, decompressed
from protos.digests import blake2b
from protos.records import HEADER_BYTES, NO_REF, RECORD_BYTES, Gap, Header, header_check, unpack_header

HEAD = Struct("<4sHHIIQQQQQQ")
HEAD_BYTES = HEAD.size  # 64, as a record
MAGIC = b"\xb7BLK"
CHECK_AT = HEAD_BYTES - 8
MOST_RECORDS = 1023  # of a block, which is at most 64 KiB
MOST_COUNT = (1 << 32) - 1  # of a block whose records are missing
MOST_NUMBER = 1 << 62  # of a record: what is counted on from it still fits in 64 bits
MOST_TRIED = 16  # times the bytes of a segment: what the search for sound blocks among damaged bytes reads at most
SEAL, MISSING, FREED, ZSTD = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Block:
    """One block. records: those of its body; empty where zstd, which they are compressed with, is missing here.
    deflated: the body, where it is not just these."""

    boot: int
    first: int
    count: int
    position: int
    previous: int
    records: bytes = b""
    flags: int = 0
    state: int = 0
    link: int = 0
    check: int = 0
    deflated: bytes = b""

    @property
    def size(self) -> int:
        """Bytes of its head and body."""
        return HEAD_BYTES + len(self.deflated or self.records)

    @property
    def end(self) -> int:
        """Number of the record after its last one."""
        return self.first + self.count

    @property
    def name(self) -> int:
        """What the next block has as `previous`."""
        return self.previous if self.flags & FREED else self.link or self.check

    @property
    def body(self) -> bytes:
        """Its records, one GAP in place of those that are missing. Raises ModuleNotFoundError where zstd is missing."""
        if self.deflated and not self.records:
            return decompressed(self.deflated, self.count * RECORD_BYTES, bool(self.flags & ZSTD)) or b""
        return lost_record(self.count) if self.flags & MISSING else self.records

    def packed(self) -> bytes:
        """Its bytes, with the check computed anew."""
        head = HEAD.pack(
            MAGIC, self.flags, self.state, self.count, len(self.deflated), self.boot, self.first, self.position,
            self.previous, self.link, 0,
        )  # fmt: skip
        body = self.deflated or self.records
        return head[:CHECK_AT] + _check(head, body) + body


def lost_record(count: int = 0) -> bytes:
    """A GAP for `count` records that the node's disk or memory lost; 0: nobody knows how many."""
    return Gap.pack(damaged=1, ref=NO_REF, dropped=count)


@dataclass(slots=True)
class Chain:
    """Where an incarnation's blocks have come to; makes the next one. name: what it has to call the one before."""

    boot: int
    name: int
    end: int = 0

    @classmethod
    def of(cls, header: Header) -> "Chain":
        """Of an incarnation without a block yet."""
        return cls(header.boot, header_check(header))

    def add(self, records: bytes, position: int = 0, compression: Compression | None = None) -> bytes:
        """Blocks of these records. position: of the ring, after the last one. compression: where that is shorter."""
        found = []
        for at in range(0, len(records), MOST_RECORDS * RECORD_BYTES):
            body = records[at : at + MOST_RECORDS * RECORD_BYTES]
            after = max(0, position - (len(records) - at - len(body)) // RECORD_BYTES)
            small = compression.compress(body) if compression is not None else body
            block = Block(self.boot, self.end, len(body) // RECORD_BYTES, after, self.name, body)
            if compression is not None and len(small) < len(body):
                block = replace(block, deflated=small, flags=ZSTD if compression.zstd else 0)
            found.append(self._next(block))
        return b"".join(found)

    def missing(self, count: int, position: int = 0) -> bytes:
        """In place of so many records that are lost."""
        found = []
        while count:
            part = min(count, MOST_COUNT)
            count -= part
            found.append(
                self._next(Block(self.boot, self.end, part, max(0, position - count), self.name, b"", MISSING))
            )
        return b"".join(found)

    def seal(self, state: int, position: int = 0) -> bytes:
        """The last block."""
        return self._next(Block(self.boot, self.end, 0, position, self.name, b"", SEAL, state))

    def freed(self, position: int) -> bytes:
        """In place of everything that was before."""
        return Block(self.boot, self.end, 0, position, self.name, b"", FREED).packed()

    def _next(self, block: Block) -> bytes:
        packed = block.packed()
        self.end, self.name = block.end, int.from_bytes(packed[CHECK_AT:HEAD_BYTES], "little")
        return packed


class Flaw(NamedTuple):
    """Something that is not as it was written. at: the byte in the segment; lost: whether bytes there are unusable."""

    at: int
    text: str
    lost: bool = True


def scan(data: bytes, at: int = HEADER_BYTES) -> Iterator[tuple[int, Block | Flaw]]:
    """The sound blocks in `data` from a byte on, in order and with their places, and where there are bytes that are
    none. Bytes that are full of heads of blocks that are none are not searched to their end: who made them may want
    to keep this process busy."""
    left = MOST_TRIED * len(data)
    while at < len(data):
        block = _block(data, at)
        if block is not None:
            yield at, block
            at += block.size
            continue
        left -= _tried(data, at)
        start, at = at, data.find(MAGIC, at + 1)
        while at >= 0 and left > 0 and _block(data, at) is None:
            left -= _tried(data, at)
            at = data.find(MAGIC, at + 1)
        at = len(data) if at < 0 or left <= 0 else at
        yield start, Flaw(start, f"bytes {start} to {at} are damaged")


@dataclass(slots=True)
class Trail:
    """Follows one incarnation's segments, in order. sealed: the state in its seal, 0 without one.

    missing: records in MISSING blocks beyond the one GAP that stands for each of them.
    """

    boot: int
    header: Header | None = None
    end: int | None = None  # number of the next record; None: nothing was there yet
    name: int | None = None
    position: int = 0
    sealed: int = 0
    first: int = 0
    missing: int = 0
    flaws: list[Flaw] = field(default_factory=list)  # of the segment that was followed last

    def follow(self, data: bytes) -> list[Block]:
        """The blocks of one segment that continue the trail. What does not is left out and in `flaws`."""
        self.begin(data)
        return list(self.blocks(data))

    def begin(self, data: bytes) -> None:
        """Look at the header of the next segment, whose blocks then follow."""
        self.flaws = []
        try:
            header = unpack_header(data)
        except ValueError as error:
            self.flaws.append(Flaw(0, str(error)))
        else:
            if header.boot != self.boot:
                self.flaws.append(Flaw(0, f"it belongs to {header.node}/{header.boot:016x}"))
            else:
                self.header = self.header or header

    def blocks(self, data: bytes) -> Iterator[Block]:
        """Those of the segment that was begun which continue the trail, one after the other."""
        for at, found in scan(data):
            if isinstance(found, Flaw):
                self.flaws.append(found)
            elif why := self._refusal(found):
                self.flaws.append(Flaw(at, why))
            else:
                self._continue(found, at)
                yield found

    def _refusal(self, block: Block) -> str:
        if block.boot != self.boot:
            return f"a block of incarnation {block.boot:016x}"
        if self.sealed and not block.flags & SEAL:
            return f"records {block.first} to {block.end} come after the end"
        if block.flags & FREED:
            return "what was freed is told too late" if self.end else ""
        if self.end is not None and (block.first < self.end or (self.sealed and block.flags & SEAL)):
            return f"records {block.first} to {block.end} are there twice or out of order"
        if block.first == self.end and self.name is not None and block.previous != self.name:
            return f"records {block.first} to {block.end} do not continue those before"
        return ""

    def _continue(self, block: Block, at: int) -> None:
        if self.end is None or block.flags & FREED:
            self.first = block.first
        elif block.first > self.end:
            self.flaws.append(Flaw(at, f"records {self.end} to {block.first} are missing", lost=False))
        if block.flags & MISSING:
            self.missing += block.count - 1
        self.end, self.name, self.position = block.end, block.name, block.position
        self.sealed = block.state if block.flags & SEAL else 0


def segment(header: bytes, records: bytes, sealed: int = 0) -> bytes:
    """A whole incarnation in one segment. header: packed."""
    chain = Chain.of(unpack_header(header))
    return header + chain.add(records) + (chain.seal(sealed) if sealed else b"")


def bodies(blocks: Iterable[Block]) -> bytes:
    """Their records, one GAP in place of those that are missing."""
    return b"".join(block.body for block in blocks)


def records_in(data: bytes) -> bytes:
    """The records of a segment, without a look at how its blocks hang together."""
    return bodies(found for _, found in scan(data) if isinstance(found, Block))


def _tried(data: bytes, at: int) -> int:
    """How many bytes a look for a block there reads at most."""
    return min(len(data) - at, HEAD_BYTES + MOST_RECORDS * RECORD_BYTES)


def _block(data: bytes, at: int) -> Block | None:
    """The block at this byte, None where there is no sound one."""
    if len(data) - at < HEAD_BYTES:
        return None
    magic, flags, state, count, deflated, boot, first, position, previous, link, check = HEAD.unpack_from(data, at)
    size = 0 if flags & MISSING else count * RECORD_BYTES
    stored = deflated or size
    if magic != MAGIC or deflated > size or size > MOST_RECORDS * RECORD_BYTES or stored > len(data) - at - HEAD_BYTES:
        return None
    if first > MOST_NUMBER or position > MOST_NUMBER or (flags & MISSING and not count):
        return None
    body = data[at + HEAD_BYTES : at + HEAD_BYTES + stored]
    if _check(data[at : at + HEAD_BYTES], body) != check.to_bytes(8, "little"):
        return None
    try:
        records = decompressed(body, size, bool(flags & ZSTD)) if deflated else body
    except ModuleNotFoundError:
        records = b""  # the check is right, so it can be passed on
    if records is None:
        return None
    return Block(boot, first, count, position, previous, records, flags, state, link, check, body if deflated else b"")


def _check(head: bytes, body: bytes) -> bytes:
    digest = blake2b(head[:CHECK_AT], digest_size=8)
    digest.update(body)
    return digest.digest()
