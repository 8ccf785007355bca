"""The spool's driver: from the trace rings into files, and from the files into chunks for the coordinator.

    spool/<boot, 16 hex>/header                      the segment header of protos/records.py
    spool/<boot, 16 hex>/<first>-<shift>.rec         records (spool.py says what the numbers mean)
    spool/<boot, 16 hex>/ended                       the PLAN state that closed the incarnation, a number

Files are not synced: a killed agent loses nothing, a machine without power may lose the last seconds, and the count of
records says so. An fsync each 30 ms would wear out the memory card that such machines boot from.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from node_agent.control.spool import LIMIT_BYTES, Append, Incarnation, Segment, Spool
from node_agent.log import WARNING, Log
from node_agent.ring import DATA, STATE, TAKEN, WRITTEN, Ring
from protos.records import HEADER_BYTES, RECORD_BYTES, STATE_CRASHED, unpack_header

MOST_AT_ONCE = 1 << 20  # bytes that are copied from a ring in one go
MOST_PROBLEMS = 32
SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # another time there may be more
HEADER_FILE, ENDED_FILE, SUFFIX = "header", "ended", ".rec"


class Chunk(NamedTuple):
    """What trace.proto's TraceChunk carries."""

    boot: int
    first: int
    header: bytes
    records: bytes
    ended: bool
    crashed: bool
    written: int


class SpoolFiles:
    """All trace records of this node that the coordinator does not hold yet. ring_paths: the rings there are now.

    dropped: records that there was no room for, since the start.
    """

    def __init__(
        self, root: Path, ring_paths: Callable[[], Sequence[Path]], limit_bytes: int = LIMIT_BYTES,
        log: Log | None = None,
    ) -> None:  # fmt: skip
        self.root, self.ring_paths = root, ring_paths
        self.log = log or Log("", "control")
        self.dropped = 0
        self.spool = Spool(limit_bytes)
        self.problems: list[str] = []
        self._rings: dict[Path, Ring] = {}
        self._refused: set[Path] = set()
        self._restore()

    # -- from the rings

    def drain(self) -> int:
        """Take what the rings have; remove those that are closed and empty. Returns the records taken."""
        count = 0
        try:
            paths = self.ring_paths()
        except OSError as error:
            self._note(f"the rings cannot be looked for ({error.strerror}); they wait")
            return 0
        for path in paths:
            try:
                ring = self._rings.get(path) or self._open(path)
                if ring is not None:
                    count += self._drain(ring)
            except OSError as error:
                self._note(f"the spool in {self.root} cannot be written ({error.strerror}); the ring waits")
        return count

    def _note(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
            self.log.say("trace_problem", f"trace: {problem}", WARNING)

    def _open(self, path: Path) -> Ring | None:
        if path in self._refused:
            return None
        try:
            ring = Ring.open(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in SCARCE:
                raise
            self._refused.add(path)
            self._note(f"trace ring {path} cannot be read ({error}); its records are missing")
            return None
        header = ring.header
        directory = self._directory(header.boot)
        if not (directory / HEADER_FILE).exists():
            directory.mkdir(mode=0o700, exist_ok=True)
            (directory / HEADER_FILE).write_bytes(bytes(ring.memory[:HEADER_BYTES]))
        incarnation = self.spool.see(header.boot, header.started_ns, ring.cells[TAKEN] // RECORD_BYTES)
        # Killed between the append and this store: these records are in the spool already.
        ring.cells[TAKEN] = min(incarnation.position * RECORD_BYTES, ring.cells[WRITTEN])
        self._rings[path] = ring
        return ring

    def _drain(self, ring: Ring) -> int:
        boot, count = ring.header.boot, 0
        closed = ring.cells[STATE]  # read before the records: nothing is written after it is set
        while data := _peek(ring):
            append = self.spool.arrive(boot, len(data) // RECORD_BYTES)
            if append is not None:
                self._append(boot, append, data)
            else:
                self._full(len(data) // RECORD_BYTES)
            ring.cells[TAKEN] += len(data)
            count += len(data) // RECORD_BYTES
        if closed:
            self._end(ring, closed)
        return count

    def _full(self, records: int) -> None:
        self.dropped += records
        text = f"trace: the spool is full ({self.spool.limit_bytes >> 20} MiB), records are dropped until"
        self.log.say("spool_full", f"{text} 'coordinator collect' takes some", WARNING, "spool_full")

    def _end(self, ring: Ring, state: int) -> None:
        boot = ring.header.boot
        if append := self.spool.end(boot, state):
            self._append(boot, append, b"")
        (self._directory(boot) / ENDED_FILE).write_text(str(state))
        del self._rings[ring.path]
        ring.close()
        ring.path.unlink(missing_ok=True)

    def _append(self, boot: int, append: Append, data: bytes) -> None:
        segment, content = append.segment, append.gap + data
        before = (segment.records - append.count - bool(append.gap)) * RECORD_BYTES
        try:
            descriptor = os.open(self._file(boot, segment), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.pwrite(descriptor, content, before) != len(content):
                    os.ftruncate(descriptor, before)
                    self.spool.failed(boot, append)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.spool.failed(boot, append)
            self.dropped += append.count
            self._note(f"the spool in {self.root} cannot be written ({error.strerror}); records are dropped")

    # -- to the coordinator

    def hold(self, held: Mapping[int, int]) -> None:
        """The coordinator holds so many records of each incarnation; their files go."""
        for boot, records in held.items():
            freed = self.spool.hold(boot, records)
            if freed and not (last := self.spool.incarnations[boot].segments[-1]).records:
                self._file(boot, last).touch()  # first: it says where the incarnation stands
            for segment in freed:
                self._file(boot, segment).unlink(missing_ok=True)
        for boot in self.spool.forgettable(dict(held)):
            import shutil  # rare, and it loads five compression libraries

            shutil.rmtree(self._directory(boot), ignore_errors=True)
            self.spool.forget(boot)

    def chunks(self, held: Mapping[int, int]) -> Iterator[Chunk]:
        """Everything after `held` that is here when this begins; at least one chunk for each incarnation."""
        for incarnation in sorted(self.spool.incarnations.values(), key=lambda each: each.started_ns):
            yield from self._chunks(incarnation, held.get(incarnation.boot, 0))

    def _chunks(self, incarnation: Incarnation, held: int) -> Iterator[Chunk]:
        boot, total, pieces = incarnation.boot, incarnation.total, list(self.spool.pieces(incarnation.boot, held))
        ended, crashed = bool(incarnation.ended), incarnation.ended == STATE_CRASHED
        try:
            header = (self._directory(boot) / HEADER_FILE).read_bytes()
            for piece in pieces:
                data = self._read(boot, piece.segment, piece.first, piece.count)
                last = piece.first + piece.count == total
                yield Chunk(boot, piece.first, header, data, ended and last, crashed, total)
        except FileNotFoundError:
            return  # freed meanwhile, by another call that holds more
        if not pieces:
            yield Chunk(boot, total, header, b"", ended, crashed, total)

    def _read(self, boot: int, segment: Segment, first: int, count: int) -> bytes:
        with self._file(boot, segment).open("rb") as file:
            return os.pread(file.fileno(), count * RECORD_BYTES, (first - segment.first) * RECORD_BYTES)

    # -- files

    def _directory(self, boot: int) -> Path:
        return self.root / f"{boot:016x}"

    def _file(self, boot: int, segment: Segment) -> Path:
        return self._directory(boot) / f"{segment.first:012d}-{segment.shift:012d}{SUFFIX}"

    def _restore(self) -> None:
        rings = {path.stem for path in self.ring_paths()}
        for directory in sorted(self.root.iterdir()):
            try:
                self._restore_one(directory)
                if directory.name not in rings and not (directory / ENDED_FILE).exists():
                    # The machine went down: its ring was in memory, and what was not drained is lost with it.
                    self.spool.incarnations[int(directory.name, 16)].ended = STATE_CRASHED
            except (OSError, ValueError) as error:
                self._note(f"{directory} is no trace of this agent ({error}); it was left alone")

    def _restore_one(self, directory: Path) -> None:
        header = unpack_header((directory / HEADER_FILE).read_bytes())
        ended = directory / ENDED_FILE
        segments = []
        for path in directory.glob(f"*{SUFFIX}"):
            first, shift = path.stem.split("-")
            segments.append(Segment(int(first), int(shift), path.stat().st_size // RECORD_BYTES))
        self.spool.restore(
            header.boot, header.started_ns, segments, int(ended.read_text() or 0) if ended.exists() else 0
        )


def _peek(ring: Ring) -> bytes:
    """As Ring.take, but the records stay in the ring until they are in a file."""
    taken = ring.cells[TAKEN]
    count = min(ring.cells[WRITTEN] - taken, MOST_AT_ONCE)
    first = taken % ring.capacity
    head = min(count, ring.capacity - first)
    return bytes(ring.memory[DATA + first : DATA + first + head]) + bytes(ring.memory[DATA : DATA + count - head])
