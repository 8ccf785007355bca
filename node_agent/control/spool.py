"""Which trace records are kept, where, and when they go: the spool's decisions, without files or clock.

An incarnation's records are numbered from 0 in the order in which they will be collected. They lie in segments, files
of about `SEGMENT_RECORDS`; a segment knows its first record's number and its `shift`, how many more records the runtime
had written before it than the spool counts (0 unless something was dropped). So the end of the last file says how far
the ring was read, and control can be killed at any instant without losing or doubling a record.

The limit counts bytes over all incarnations. Beyond it whole arrivals are dropped and one GAP record says how many when
there is room again, or when the incarnation ends. Rejected: leaving the records in the ring, so that the runtime counts
the drops itself. The rings of killed incarnations would pile up in memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from protos.records import GAP, NO_REF, RECORD, RECORD_BYTES

SEGMENT_RECORDS = 16_384  # 1 MiB
LIMIT_BYTES = 256 << 20
CHUNK_RECORDS = 1024  # 64 KiB
MOST_INCARNATIONS = 64  # ended ones that the coordinator holds are remembered up to here


@dataclass(slots=True)
class Segment:
    """One file of records. first, shift: see above; records: how many are in it."""

    first: int
    shift: int
    records: int = 0

    @property
    def end(self) -> int:
        """Number of the record after the last one in here."""
        return self.first + self.records


@dataclass(slots=True)
class Incarnation:
    """One run of the runtime. ended: 0 or the PLAN state that closed it. dropped: records since the last kept one."""

    boot: int
    started_ns: int
    segments: list[Segment] = field(default_factory=lambda: [Segment(0, 0)])
    dropped: int = 0
    ended: int = 0

    @property
    def total(self) -> int:
        """Records that the spool counts, also those that were freed."""
        return self.segments[-1].end

    @property
    def first(self) -> int:
        """The first record that is still here; `total` where none is."""
        return self.segments[0].first

    @property
    def position(self) -> int:
        """How many of the ring's records are accounted for."""
        return self.total + self.segments[-1].shift + self.dropped

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


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a segment to be read: `count` records from number `first` on."""

    segment: Segment
    first: int
    count: int


class Spool:
    """All incarnations of one node. Methods say what the driver has to do with files."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.incarnations: dict[int, Incarnation] = {}

    @property
    def bytes(self) -> int:
        """Bytes of records that are here."""
        return sum(each.records for each in self.incarnations.values()) * RECORD_BYTES

    def restore(self, boot: int, started_ns: int, segments: Iterable[Segment], ended: int) -> None:
        """What the disk has of an incarnation, at the start."""
        # Of segments with the same first record only one has any: the others were begun and not written.
        ordered = sorted(segments, key=lambda segment: (segment.first, segment.records, -segment.shift))
        kept = [segment for segment in ordered[:-1] if segment.records] + ordered[-1:]
        self.incarnations[boot] = Incarnation(boot, started_ns, kept or [Segment(0, 0)], 0, ended)

    def see(self, boot: int, started_ns: int, taken: int) -> Incarnation:
        """A ring of this incarnation, of which `taken` records were taken before. What the spool lacks is a gap."""
        if boot not in self.incarnations:
            self.restore(boot, started_ns, (), 0)
        incarnation = self.incarnations[boot]
        incarnation.dropped += max(0, taken - incarnation.position)
        return incarnation

    def arrive(self, boot: int, count: int) -> Append | None:
        """`count` more records of the ring, from `position` on. None: drop them; the spool is full."""
        incarnation = self.incarnations[boot]
        gap = RECORD_BYTES if incarnation.dropped else 0
        if self.bytes + gap + count * RECORD_BYTES > self.limit_bytes:
            incarnation.dropped += count
            return None
        return self._append(incarnation, count)

    def failed(self, boot: int, append: Append) -> None:
        """The disk did not take it: as if the spool had been full."""
        segment, incarnation = append.segment, self.incarnations[boot]
        segment.records -= append.count + bool(append.gap)
        if append.gap:
            segment.shift -= append.dropped - 1
        incarnation.dropped += append.count + append.dropped

    def end(self, boot: int, state: int) -> Append | None:
        """The ring is empty and closed. What was dropped last is written down, beyond the limit if need be."""
        incarnation = self.incarnations[boot]
        incarnation.ended = state
        return self._append(incarnation, 0) if incarnation.dropped else None

    def hold(self, boot: int, records: int) -> list[Segment]:
        """The coordinator holds the first `records` of them: segments whose files may go, the oldest first.

        The last one's place is kept by an empty segment, since its name says where the incarnation stands.
        """
        incarnation = self.incarnations.get(boot)
        if incarnation is None:
            return []
        segments = incarnation.segments
        freed = [segment for segment in segments if segment.records and segment.end <= records]
        if freed:
            last = segments[-1]
            kept = [segment for segment in segments if segment.end > records]
            incarnation.segments = kept or [Segment(last.end, last.shift)]
        return freed

    def pieces(self, boot: int, held: int) -> Iterator[Piece]:
        """What the coordinator lacks of what is here now, in pieces of at most CHUNK_RECORDS."""
        incarnation = self.incarnations[boot]
        for segment in tuple(incarnation.segments):
            at, end = max(held, segment.first), segment.end
            while at < end:
                count = min(CHUNK_RECORDS, end - at)
                yield Piece(segment, at, count)
                at += count

    def forgettable(self, held: dict[int, int]) -> list[int]:
        """Ended incarnations that the coordinator holds and that are too many to remember, the oldest first."""
        over = [each for each in self.incarnations.values() if each.ended and not each.records and each.boot in held]
        over.sort(key=lambda each: each.started_ns)
        return [each.boot for each in over[: max(0, len(self.incarnations) - MOST_INCARNATIONS)]]

    def forget(self, boot: int) -> None:
        """The incarnation's directory is gone."""
        self.incarnations.pop(boot, None)

    def _append(self, incarnation: Incarnation, count: int) -> Append:
        last = incarnation.segments[-1]
        gap, dropped = b"", incarnation.dropped
        if dropped:
            gap = RECORD.pack(GAP, 0, NO_REF, 0, 0, 0, 0, dropped, 0, 0, 0, 0)
            # The gap record stands for `dropped` of the ring's: from here on the ring's count is that much ahead.
            last = self._next(incarnation, last, last.shift + dropped - 1)
            incarnation.dropped = 0
        elif last.records and last.records + count > SEGMENT_RECORDS:
            last = self._next(incarnation, last, last.shift)
        last.records += count + (1 if gap else 0)
        return Append(last, gap, dropped, count)

    @staticmethod
    def _next(incarnation: Incarnation, last: Segment, shift: int) -> Segment:
        new = Segment(last.end, shift)
        if not last.records:
            incarnation.segments.pop()
        incarnation.segments.append(new)
        return new
