"""The spool's decisions, without files or clock: the trace records that are kept, their place, and their removal.

An incarnation's records are numbered from 0 in the order in which they will be collected. They lie in segments, files
of about `SEGMENT_RECORDS`, in blocks (protos/segments.py) each of which says how many of the ring's records are
accounted for. That may be more than its own number: by `shift`, where something was dropped. So the last block says how
far the ring was read, and control can be killed at any instant without losing or doubling a record.

The limit counts bytes over all incarnations. Beyond it whole arrivals are dropped and one GAP record says how many when
there is room again, or when the incarnation ends. Rejected: leaving the records in the ring, so that the runtime counts
the drops itself. The rings of killed incarnations would pile up in memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from protos.records import NO_REF, RECORD_BYTES, Gap
from protos.segments import HEAD_BYTES, MOST_RECORDS, Chain, lost_record

SEGMENT_RECORDS = 16_384  # 1 MiB
LIMIT_BYTES = 256 << 20
MOST_INCARNATIONS = 64  # ended ones that the coordinator holds are remembered up to here


@dataclass(slots=True)
class Segment:
    """One file of blocks. first: number of its first record; end: of the one after its last; bytes: of its blocks;
    name: what its first block calls the one before; sealed: no more come."""

    first: int
    end: int
    bytes: int = 0
    name: int = 0
    sealed: bool = False


@dataclass(slots=True)
class Incarnation:
    """One run of the runtime. chain: where its blocks have come to; ended: 0 or the PLAN state that closed it.

    shift: see above; dropped: records since the last kept one; starts: of the agent's runtime starts.
    """

    chain: Chain
    started_ns: int = 0
    segments: list[Segment] = field(default_factory=list)
    shift: int = 0
    dropped: int = 0
    ended: int = 0
    starts: int = 0

    @property
    def boot(self) -> int:
        """Which incarnation it is."""
        return self.chain.boot

    @property
    def total(self) -> int:
        """Records that the spool counts, also those that were freed."""
        return self.chain.end

    @property
    def first(self) -> int:
        """The first record that is still here; `total` where none is."""
        return self.segments[0].first if self.segments else self.total

    @property
    def position(self) -> int:
        """How many of the ring's records are accounted for."""
        return self.total + self.shift + self.dropped

    @property
    def records(self) -> int:
        """How many records are here."""
        return self.total - self.first


@dataclass(frozen=True, slots=True)
class Append:
    """Append to a segment's file: the `gap` record, which stands for `dropped` ones, then `count` that arrived."""

    segment: Segment
    gap: bytes
    dropped: int
    count: int


class Spool:
    """All incarnations of one node. Methods say what the driver has to do with files."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.incarnations: dict[int, Incarnation] = {}

    @property
    def bytes(self) -> int:
        """Bytes of blocks that are here."""
        return sum(segment.bytes for each in self.incarnations.values() for segment in each.segments)

    def restore(self, incarnation: Incarnation) -> None:
        """What the disk has of an incarnation, at the start; or one that is new."""
        self.incarnations[incarnation.boot] = incarnation

    def see(self, boot: int, taken: int) -> Incarnation:
        """A ring of this incarnation, of which `taken` records were taken before. What the spool lacks is a gap."""
        incarnation = self.incarnations[boot]
        incarnation.dropped += max(0, taken - incarnation.position)
        return incarnation

    def arrive(self, boot: int, count: int) -> Append | None:
        """`count` more records of the ring, from `position` on. None: drop them; the spool is full."""
        incarnation = self.incarnations[boot]
        if self.bytes + size_of(count + bool(incarnation.dropped)) > self.limit_bytes:
            incarnation.dropped += count
            return None
        return self._append(incarnation, count)

    def wrote(self, boot: int, append: Append, bytes_: int) -> None:
        """The disk has it, in blocks of so many bytes; the chain has moved on."""
        incarnation = self.incarnations[boot]
        if append.segment not in incarnation.segments:
            incarnation.segments.append(append.segment)
        append.segment.end = incarnation.total
        append.segment.bytes += bytes_
        if append.gap:  # it stands for `dropped` of the ring's: from here on the ring's count is that much ahead
            incarnation.shift += append.dropped - 1
            incarnation.dropped -= append.dropped

    def failed(self, boot: int, append: Append) -> None:
        """The disk did not take it: as if the spool had been full."""
        self.incarnations[boot].dropped += append.count

    def end(self, boot: int) -> Append | None:
        """The ring is empty and closed. What was dropped last is written down, beyond the limit if need be."""
        incarnation = self.incarnations[boot]
        return self._append(incarnation, 0) if incarnation.dropped else None

    def lose(self, boot: int) -> Append:
        """Nobody knows what the incarnation wrote after what is here."""
        append = self._append(self.incarnations[boot], 0)
        return Append(append.segment, lost_record(), 0, 0)

    def hold(self, boot: int, records: int) -> list[Segment]:
        """The coordinator holds the first `records` of them: segments whose files may go, the oldest first."""
        incarnation = self.incarnations.get(boot)
        if incarnation is None:
            return []
        freed = [segment for segment in incarnation.segments if segment.end <= records]
        incarnation.segments = incarnation.segments[len(freed) :]
        return freed

    def seal(self, boots: Iterable[int]) -> None:
        """What comes from now on goes to another segment, so that what is here now can go by itself when it is held:
        no later run is to have any of it. boots: incarnations of which the coordinator holds some."""
        for incarnation in (self.incarnations[boot] for boot in boots if boot in self.incarnations):
            for segment in incarnation.segments[-1:]:
                segment.sealed = True

    def forgettable(self, held: Iterable[int]) -> list[int]:
        """Ended incarnations that the coordinator holds and that are too many to remember, the oldest first."""
        mentioned, newest = set(held), sorted((each.starts for each in self.incarnations.values()), reverse=True)
        if len(newest) <= MOST_INCARNATIONS:
            return []
        over = [
            each for each in self.incarnations.values() if each.ended and not each.records and each.boot in mentioned
        ]
        over.sort(key=lambda each: each.starts)
        return [each.boot for each in over if each.starts < newest[MOST_INCARNATIONS - 1]]

    def forget(self, boot: int) -> None:
        """The incarnation's directory is gone."""
        self.incarnations.pop(boot, None)

    def _append(self, incarnation: Incarnation, count: int) -> Append:
        segments, dropped = incarnation.segments, incarnation.dropped
        gap = Gap.pack(ref=NO_REF, dropped=dropped) if dropped else b""
        last = segments[-1] if segments else None
        if last is None or last.sealed or last.end - last.first + count + bool(gap) > SEGMENT_RECORDS:
            last = Segment(incarnation.total, incarnation.total, 0, incarnation.chain.name)
        return Append(last, gap, dropped, count)


def size_of(records: int) -> int:
    """Bytes of blocks with so many records."""
    return records * RECORD_BYTES + -(-records // MOST_RECORDS) * HEAD_BYTES
