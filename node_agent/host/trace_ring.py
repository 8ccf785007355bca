"""The trace ring: shared memory between the runtime, which writes, and the control process, which drains.

A file on a memory file system, mapped by every process of the agent: it survives whichever of them dies. One ring per
incarnation of the runtime, one writer, one reader, no lock: each side stores only its own cell, and a cell is 8 bytes
that are written at once.

    0    segment header (protos/records.py), 128 bytes
    128  u64 written   bytes of records the runtime has published since the start
    136  u64 taken     bytes that the control process has drained
    144  u64 dropped   records that did not fit (a GAP record says so when there is room again)
    152  u64 state     0 live, else the PLAN state (ended, crashed) that closed it
    160  u64 noted     dropped records that a GAP accounts for
    168  u64 promised  entries from 256 on that were ever written, times 65536, and how many of the last ones depend
    176  u64 due       instant by which the runtime writes this cell again; 0: it has not begun
    184  u64 depend    the entries that depend hold as soon as so many bytes of records are published
    192  hang cell     u64 start_ns (0: idle), u64 hang_ns, u16 unit, flags, source, epoch, u64 seq, ordinal
    256  taken over    tuples that were taken, the latest ones: u64 peer, boot, link_seq, seq; see TakenOver
    33024 acknowledged the last link_seq that each sending node was told: rows as above, seq 0; peer 0: no row
    36864 records, then one scratch record for what is dropped

A tuple's admission and the promise not to admit it again hold from the same instant, the one at which its record is
published: killed before, neither is there, killed after, both are.

The runtime leaves the room of RESERVED records free: when it is dead the supervisor can always say what was dropped
and which instance hung.
"""

import errno
import mmap
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from node_agent.core.facts import Facts, Stretch
from node_agent.core.lineage import Lineage
from protos import digests, records
from protos.records import NO_REF, RECORD, RECORD_BYTES, STATE_CRASHED, Gap, Record

COMPILED = not __file__.endswith(".py")
DATA = 36_864
CELLS = 128
WRITTEN, TAKEN, DROPPED, STATE, NOTED, PROMISES, BEAT, DEPEND = range(8)
HANG = Struct("<QQHHHHQQ")
HANG_AT = 192
_IDLE = bytes(HANG.size)
_WRITTEN_AT, _RUNS_AT = CELLS + 8 * WRITTEN, HANG_AT  # for compiled code
TAKEN_OVER = Struct("<QQQQ")
TAKEN_OVER_AT = 256
MOST_TAKEN_OVER = 512  # that one promise can hold, and that are remembered
ROWS = 2 * MOST_TAKEN_OVER  # what a promise overwrites is not remembered any more
ACKNOWLEDGED_AT = TAKEN_OVER_AT + ROWS * TAKEN_OVER.size
MOST_ACKNOWLEDGED = (DATA - ACKNOWLEDGED_AT) // TAKEN_OVER.size
MOST_INHERITED = MOST_TAKEN_OVER + MOST_ACKNOWLEDGED  # left to the next incarnation; older ones are forgotten
CAPACITY_RECORDS = 32_768
PARTIAL_SUFFIX = ".partial"  # of a ring that is being made
RESERVED = 2


def open_own(path: Path | str, flags: int, directory: int | None = None) -> int:
    """Open a file of this user, no link and nothing else. Raises OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "not a file of this user", str(path))
    return descriptor


class TakenOver(NamedTuple):
    """A tuple that came over a link and must not be taken from there again, also where the runtime is killed."""

    peer: int  # `peer_key` of its name
    boot: int  # the peer's incarnation
    link_seq: int
    seq: int  # of the lineage that a source's tuple was given; 0: it comes from a node, as do all before it


Row = tuple[int, int, int, int]  # a TakenOver as it is written
Inherited = tuple[int, TakenOver]  # lineage epoch of the incarnation that took it over


def peer_key(name: str) -> int:
    """A peer's name where there is room for 8 bytes."""
    return int.from_bytes(digests.blake2b(name.encode(), digest_size=8).digest(), "big")


class RunningInstance(NamedTuple):
    """The hang cell: which instance runs since when, and how long it may."""

    start_ns: int
    hang_ns: int
    unit: int
    flags: int
    source: int
    epoch: int
    seq: int
    ordinal: int


class Ring:
    """One mapped ring. lent: the mapping is not this ring's own, and outlives it. Raises ValueError where the file is
    none, OSError where it cannot be mapped."""

    def __init__(self, path: Path, memory: mmap.mmap, lent: bool = False) -> None:
        self.path, self.memory, self._lent = path, memory, lent
        self.header = records.unpack_header(memory[: records.HEADER_BYTES])
        self.view = memoryview(memory)
        self.cells = self._numbers = self.view[CELLS : CELLS + 64].cast("Q")
        self._taken_over = self.view[TAKEN_OVER_AT:ACKNOWLEDGED_AT].cast("Q")
        self._acknowledged = self.view[ACKNOWLEDGED_AT:DATA].cast("Q")
        self._promises = 0  # ever written
        self.facts: list[RingFacts] = []  # that go into it
        self._rows: dict[tuple[int, int], int] = {}  # of `acknowledged`, by peer and boot: index of the link_seq
        self.capacity = (len(memory) - DATA - RECORD_BYTES) // RECORD_BYTES * RECORD_BYTES  # bytes, with the reserve

    @staticmethod
    def size_bytes(capacity_records: int) -> int:
        """Of a ring with room for so many records of the runtime."""
        return DATA + (capacity_records + RESERVED + 1) * RECORD_BYTES

    @classmethod
    def create(cls, path: Path, header: records.Header, capacity_records: int = CAPACITY_RECORDS) -> "Ring":
        """A new ring with room for so many records of the runtime; the file must not exist.

        It gets its name when it is whole: control looks for rings all the time, and gives up one that it cannot read.
        Raises OSError, FileExistsError among them.
        """
        size, partial = cls.size_bytes(capacity_records), path.with_suffix(PARTIAL_SUFFIX)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # memory that is missing is an error here, not SIGBUS at any time
            memory = mmap.mmap(descriptor, size)
            memory[: records.HEADER_BYTES] = records.pack_header(header)
            os.link(partial, path)
        finally:
            os.unlink(partial)
            os.close(descriptor)
        return cls(path, memory)

    @classmethod
    def open(cls, path: Path) -> "Ring":
        """An existing ring of this user."""
        descriptor = open_own(path, os.O_RDWR)
        try:
            size = os.fstat(descriptor).st_size
            if size <= DATA + RECORD_BYTES:
                raise ValueError(f"{path} is too short for a trace ring")
            return cls(path, mmap.mmap(descriptor, size))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Unmap what is its own; the file stays. Facts that went into it have nowhere to go any more."""
        for facts in self.facts:
            facts.release()
        self._numbers = self._taken_over = None  # type: ignore[assignment]  # no view that holds the memory
        self.cells.release()
        self._acknowledged.release()
        self.view.release()
        if not self._lent:
            self.memory.close()

    # -- reader

    def take(self, most_bytes: int = 1 << 20) -> bytes:
        """Up to that many bytes of the oldest records that were not taken yet; they are free for the writer then."""
        taken = self.cells[TAKEN]
        count = min(self.cells[WRITTEN] - taken, most_bytes - most_bytes % RECORD_BYTES)
        first = taken % self.capacity
        head = min(count, self.capacity - first)
        data = self.memory[DATA + first : DATA + first + head] + self.memory[DATA : DATA + count - head]
        self.cells[TAKEN] = taken + count
        return data

    @property
    def pending_bytes(self) -> int:
        """Published and not taken."""
        return self.cells[WRITTEN] - self.cells[TAKEN]

    # -- the cell that names the running tuple

    def running_instance(self) -> "RunningInstance | None":
        """The task instance that runs, or None while idle. Read it twice: the writer may be in the middle of it."""
        cell = RunningInstance._make(HANG.unpack_from(self.memory, HANG_AT))
        return cell if cell.start_ns else None

    # -- what has been taken over

    def promise_acknowledgements(self, taken: Sequence[Row], published: int = 0) -> bool:
        """Write down that these count as acknowledged if the runtime is killed. False where they are too many.

        published: they hold once so many bytes of records are; what was promised before has to hold by now.
        """
        if len(taken) > MOST_TAKEN_OVER:
            return False
        if taken:
            before = self._promises
            self._numbers[PROMISES] = before << 16
            if COMPILED:
                release_stores()  # type: ignore[name-defined]  # noqa: F821 - of trace_ring.pxd
            _enter(self._taken_over, before % ROWS * 4, taken)
            self._numbers[DEPEND] = published
            if COMPILED:
                release_stores()  # type: ignore[name-defined]  # noqa: F821
            self._numbers[PROMISES] = before << 16 | len(taken)
            self._promises = before + len(taken)
        return True

    def acknowledge(self, peer: int, boot: int, link_seq: int) -> None:
        """Write down that this node is told so: call it before the acknowledgement leaves.

        The acknowledgement may be lost on its way. The next incarnation then still knows what not to take again.
        """
        row = self._rows.get((peer, boot))
        if row is None:
            row = self._new_row(peer, boot)
        self._acknowledged[row] = link_seq

    def _new_row(self, peer: int, boot: int) -> int:
        """In place of the oldest one where all are in use."""
        rows = self._rows
        at = rows.pop(next(iter(rows))) if len(rows) >= MOST_ACKNOWLEDGED else 4 * len(rows) + 2
        cells = self._acknowledged
        cells[at - 2] = cells[at] = 0  # no row while it changes
        cells[at - 1], cells[at - 2] = boot, peer
        rows[peer, boot] = at
        return at

    def promised(self) -> list[TakenOver]:
        """For the supervisor, of a runtime that is dead: what has been taken over and what has been acknowledged."""
        count, depend = divmod(self.cells[PROMISES], 1 << 16)
        if self.cells[WRITTEN] >= self.cells[DEPEND]:
            count += depend
        numbers = range(max(0, count - MOST_TAKEN_OVER), count)
        taken = (TAKEN_OVER.unpack_from(self.memory, TAKEN_OVER_AT + each % ROWS * TAKEN_OVER.size) for each in numbers)
        acknowledged = TAKEN_OVER.iter_unpack(self.memory[ACKNOWLEDGED_AT:DATA])
        return [TakenOver._make(each) for each in (*taken, *(row for row in acknowledged if row[2]))]

    # -- the end

    def append(self, record: Record) -> bool:
        """A record by the supervisor, when the writer is dead. False where even the reserve is used up."""
        written = self.cells[WRITTEN]
        if self.capacity - (written - self.cells[TAKEN]) < RECORD_BYTES:
            return False
        RECORD.pack_into(self.memory, DATA + written % self.capacity, *record)
        self.cells[WRITTEN] = written + RECORD_BYTES
        return True

    def note_dropped(self) -> None:
        """GAP for what was dropped and not noted; by the supervisor, when the writer is dead."""
        dropped = self.cells[DROPPED]
        if dropped > self.cells[NOTED] and self.append(_gap(dropped - self.cells[NOTED])):
            self.cells[NOTED] = dropped

    def mark_crashed(self) -> bool:
        """By the supervisor, or the next one, when the writer is dead: unless it closed the ring, it crashed, and what
        it dropped is noted. Whether it had not."""
        if self.cells[STATE]:
            return False
        self.note_dropped()
        self.cells[STATE] = STATE_CRASHED
        return True


def _enter(cells: memoryview, at: int, taken: Sequence[Row]) -> None:
    """These rows, from that cell on, and around."""
    for peer, boot, link_seq, seq in taken:
        cells[at], cells[at + 1], cells[at + 2], cells[at + 3] = peer, boot, link_seq, seq
        at = (at + 4) % (4 * ROWS)


def inherited(before: Iterable[Inherited], epoch: int, ring: Ring) -> list[Inherited]:
    """What the next incarnation must not take again: `before`, and what the dead one with that lineage epoch adds."""
    found = {taken: at for at, taken in before}
    for taken in ring.promised():
        found.pop(taken, None)
        found[taken] = epoch
    return [(at, taken) for taken, at in found.items()][-MOST_INHERITED:]


def _gap(dropped: int) -> Gap:
    # No clock in here: the reader takes the instant from the records around it.
    return Gap.make(ref=NO_REF, dropped=dropped)


class RingFacts(Facts):
    """Facts that go into a ring. Call `publish` after each task instance; before it, the reader sees nothing of it.

    The one exception: when the ring was full and has room again, the GAP record is published with all that is before.
    """

    __slots__ = ("cells", "dropping", "end", "origin", "ring")

    def __init__(self, ring: Ring) -> None:
        self.ring, self.cells = ring, ring.cells
        ring.facts.append(self)
        self.dropping = 0
        self.end = 0  # while dropping: bytes that were written before
        super().__init__(ring.view, self._first)

    def publish(self) -> None:
        """Let the reader see what has been written."""
        written = self.end if self.dropping else self.origin + self.position
        if COMPILED:
            release_stores()  # type: ignore[name-defined]  # noqa: F821 - of trace_ring.pxd
            self.store(_WRITTEN_AT, written)
        else:
            self.cells[WRITTEN] = written

    def starts(self, at_ns: int, hang_ns: int, unit: int, flags: int, lineage: Lineage) -> None:
        """The instance that the hang cell names from now on: since when it runs, and how long it may."""
        source, epoch, seq, ordinal, _, _ = lineage
        if COMPILED:
            self.store(_RUNS_AT, at_ns)
            self.store(_RUNS_AT + 8, hang_ns)
            self.store(_RUNS_AT + 16, unit | flags << 16 | source << 32 | epoch << 48)
            self.store(_RUNS_AT + 24, seq)
            self.store(_RUNS_AT + 32, ordinal)
        else:
            HANG.pack_into(self.buffer, HANG_AT, at_ns, hang_ns, unit, flags, source, epoch, seq, ordinal)

    def idles(self) -> None:
        """No instance runs."""
        if COMPILED:
            for word in range(HANG.size >> 3):
                self.store(HANG_AT + 8 * word, 0)
        else:
            self.buffer[HANG_AT : HANG_AT + HANG.size] = _IDLE

    @property
    def written_records(self) -> int:
        """Records written by this incarnation so far."""
        return (self.end if self.dropping else self.origin + self.position) // RECORD_BYTES

    def note_gap(self) -> None:
        """The GAP of what was dropped, where there is room again: then `written_records` is the next record's place."""
        if self.dropping and self._room(self.end) >= 2 * RECORD_BYTES:
            self.position, self.limit = self._next()

    def _first(self) -> Stretch:
        self.refill = self._next
        return self._stretch(self.cells[WRITTEN])

    def _next(self) -> Stretch:
        written = self.end if self.dropping else self.origin + self.position
        if self._room(written) < (2 * RECORD_BYTES if self.dropping else RECORD_BYTES):
            self.end = written
            self.dropping += 1
            self.cells[DROPPED] += 1
            scratch = DATA + self.ring.capacity
            return scratch, scratch + RECORD_BYTES
        if self.dropping:
            written = self._note_gap(written)
        return self._stretch(written)

    def _room(self, written: int) -> int:
        return self.ring.capacity - RESERVED * RECORD_BYTES - (written - self.cells[TAKEN])

    def _stretch(self, written: int) -> Stretch:
        """The free piece behind `written` bytes, up to the ring's end."""
        capacity = self.ring.capacity
        first = written % capacity
        self.origin = written - first - DATA
        return DATA + first, DATA + first + min(self._room(written), capacity - first)

    def _note_gap(self, written: int) -> int:
        RECORD.pack_into(self.buffer, DATA + written % self.ring.capacity, *_gap(self.dropping))
        self.dropping = 0
        self.cells[WRITTEN] = written + RECORD_BYTES
        self.cells[NOTED] = self.cells[DROPPED]
        return written + RECORD_BYTES
