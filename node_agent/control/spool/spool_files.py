"""The spool's driver: from the trace rings into files, and from the files into chunks for the coordinator.

    spool/<boot, 16 hex>/freed              whose records these are; those before its FREED block were freed
    spool/<boot, 16 hex>/<first>.rec        a segment of blocks (protos/segments.py), the last one with a seal where the
                                            incarnation has ended; `first` is the number of its first record

`sync` brings to the disk what was written since the last time; control calls it every second. A killed agent loses
nothing. A machine without power loses its rings and what was not synced: an incarnation that has neither a seal nor a
ring gets a GAP record at its end that says so. An fsync each 30 ms would wear out the memory card that such machines
boot from. What the coordinator is sent is on the disk, so nothing that it holds comes to be unknown here.
"""

import contextlib
import errno
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from node_agent.control.spool.spool_mending import FREED_FILE, SUFFIX, freed_file, restore, segment_name
from node_agent.control.spool.spool_protocol import LIMIT_BYTES, Append, Incarnation, Segment, Spool
from node_agent.host.files.durable_files import DAMAGED, SCARCE, set_aside
from node_agent.host.log import WARNING, Log
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.host.trace_ring import DATA, STATE, TAKEN, WRITTEN, Ring
from node_agent.ports import Disk, Rings
from protos.block_compression import ZLIB, Compression
from protos.records import HEADER_BYTES, RECORD_BYTES, STATE_CRASHED, plans_in, unpack_header
from protos.segments import HEAD_BYTES, MOST_RECORDS, Block, Chain, records_in, scan

BLOCK_BYTES = MOST_RECORDS * RECORD_BYTES
MOST_AT_ONCE = 16 * BLOCK_BYTES  # that are copied from a ring in one go: less than a segment
CHUNK_BYTES = 64 << 10
MOST_PROBLEMS = 32
NAME = re.compile("[0-9a-f]{16}")


class Chunk(NamedTuple):
    """What trace.proto's TraceChunk carries."""

    boot: int
    first: int
    header: bytes
    blocks: bytes
    ended: bool
    crashed: bool
    written: int


class SpoolFiles:
    """All trace records of this node that the coordinator does not hold yet. rings: what they come from.

    headers: of incarnations that were started here, by boot, from elsewhere than the spool; one of which the spool has
    nothing was lost. dropped: records that there was no room for, since the start.
    """

    def __init__(
        self, root: Path, rings: Rings[Ring], limit_bytes: int = LIMIT_BYTES, log: Log | None = None,
        headers: Mapping[int, bytes] | None = None, disk: Disk = SYSTEM_DISK, compression: Compression = ZLIB,
    ) -> None:  # fmt: skip
        self.root, self.rings, self.disk, self._compression = root, rings, disk, compression
        self.log = log or Log("", "control")
        self.dropped = 0
        self.spool = Spool(limit_bytes)
        self.problems: list[str] = []
        self._headers: dict[int, bytes] = dict(headers or {})
        self._rings: dict[Path, Ring] = {}
        self._refused: set[Path] = set()
        self._unsynced: set[Path] = set()
        self._synced: dict[int, int] = {}
        self._restore()

    # -- from the rings

    def drain(self, whole_blocks: bool = False) -> int:
        """Take what the rings have; remove those that are closed and empty. Returns the records taken.

        whole_blocks: no less, of a ring that is not closed and has been seen before. A record in a block of a hundred
        takes four times as much time, and a fifth more bytes, as in a whole one; to look for rings takes longer than to
        look into them.
        """
        count = 0
        try:
            paths = list(self._rings) if whole_blocks else self.rings.paths()
        except OSError as error:
            self.note(f"the rings cannot be looked for ({error.strerror}); they wait")
            return 0
        for path in paths:
            try:
                ring = self._rings.get(path) or self._open(path)
                if ring is not None:
                    count += self._drain(ring, whole_blocks)
            except OSError as error:
                self.note(f"the spool in {self.root} cannot be written ({error.strerror}); the ring waits")
        return count

    def plans(self) -> dict[str, int]:
        """The plans that records here speak of: the start of each hash, and its highest epoch. It reads all files."""
        found: dict[str, int] = {}
        for path in self._segments():
            try:
                records = records_in(self.disk.read(path))
            except OSError:
                continue
            except ModuleNotFoundError as error:  # it was there when they were written
                self.note(f"{path} cannot be read without {error.name}: pip install {error.name}")
                continue
            for record in plans_in(records):
                stamp = f"{record.stamp:016x}"
                found[stamp] = max(found.get(stamp, 0), record.plan_epoch)
        return found

    def age_ns(self, place: tuple[int, int]) -> int:
        """How long ago the file of that segment (boot, first record) was written; 0 where that is not known."""
        boot, first = place
        try:
            return self.disk.age_ns(self._directory(boot) / segment_name(first))
        except OSError:
            return 0

    def note(self, problem: str) -> None:
        """A problem with the trace, for Health, Status and the log."""
        if problem not in self.problems and len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
            self.log.say("trace_problem", f"trace: {problem}", WARNING)

    def _open(self, path: Path) -> Ring | None:
        if path in self._refused:
            return None
        try:
            ring = self.rings.open(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in SCARCE:
                raise
            self._refused.add(path)
            self.note(f"trace ring {path} cannot be read ({error}); its records are missing")
            return None
        boot = ring.header.boot
        if boot not in self.spool.incarnations:
            taken = ring.cells[TAKEN] // RECORD_BYTES
            self._begin(bytes(ring.memory[:HEADER_BYTES]), taken)
            if taken:
                self.note(f"{taken} records of {boot:016x} were taken from its ring, and the spool has lost them")
        incarnation = self.spool.see(boot, ring.cells[TAKEN] // RECORD_BYTES)
        if incarnation.dropped:
            self.note(f"{incarnation.dropped} records of {boot:016x} were taken from its ring and are not in the spool")
        # Killed between the append and this store: these records are in the spool already.
        ring.cells[TAKEN] = min(incarnation.position * RECORD_BYTES, ring.cells[WRITTEN])
        self._rings[path] = ring
        return ring

    def _begin(self, header: bytes, lost: int = 0) -> Incarnation:
        """lost: records that were here, so that the numbers of what follows are beyond those that the coordinator may
        hold: else it would be taken to hold them."""
        unpacked = unpack_header(header)
        chain = Chain.of(unpacked)
        directory = self._directory(unpacked.boot)
        self.disk.make_folder(directory)
        self._write(directory / FREED_FILE, freed_file(header, chain, 0, 0), 0)
        self._unsynced.update((directory, self.root))
        segments = []
        if lost:
            segment = Segment(0, lost, 0, chain.name)
            hole = chain.missing(lost, lost)
            segment.bytes = len(hole)
            self._write(directory / segment_name(0), header + hole, 0)
            segments.append(segment)
        incarnation = Incarnation(chain, unpacked.started_ns, segments, starts=unpacked.starts)
        self._headers[unpacked.boot] = header
        self.spool.restore(incarnation)
        return incarnation

    def _drain(self, ring: Ring, whole_blocks: bool) -> int:
        boot, count = ring.header.boot, 0
        closed = ring.cells[STATE]  # read before the records: nothing is written after it is set
        while data := _peek(ring, BLOCK_BYTES if whole_blocks and not closed else RECORD_BYTES):
            append = self.spool.arrive(boot, len(data) // RECORD_BYTES)
            if append is not None:
                self._append(boot, append, data)
            else:
                self._full(len(data) // RECORD_BYTES)
            ring.cells[TAKEN] += len(data)
            count += len(data) // RECORD_BYTES
        if closed:
            self._end(boot, closed)
            del self._rings[ring.path]
            ring.close()
            self.rings.remove(ring.path)
        return count

    def _full(self, records: int) -> None:
        self.dropped += records
        text = f"trace: the spool is full ({self.spool.limit_bytes >> 20} MiB), records are dropped until"
        self.log.say("spool_full", f"{text} 'coordinator collect' takes some", WARNING, "spool_full")

    def _end(self, boot: int, state: int) -> None:
        """Raises OSError where the end cannot be written."""
        if (append := self.spool.end(boot)) and not self._append(boot, append, b""):
            raise OSError(errno.ENOSPC, "No space left on device")
        incarnation = self.spool.incarnations[boot]
        if not incarnation.segments:
            self._write_freed(incarnation, state)
        else:
            last = incarnation.segments[-1]
            seal = self._seal(incarnation, state)
            self._write(self._file(boot, last), seal, HEADER_BYTES + last.bytes)
            last.bytes += len(seal)
        incarnation.ended = state

    def _append(self, boot: int, append: Append, data: bytes) -> bool:
        """False: the disk did not take it, and it counts as dropped."""
        incarnation, segment = self.spool.incarnations[boot], append.segment
        chain = replace(incarnation.chain)
        position = incarnation.position + append.count
        blocks = chain.add(append.gap + data, position, self._compression)
        head = b"" if segment.bytes else self._headers[boot]
        path = self._file(boot, segment)
        try:
            self._write(path, head + blocks, 0 if head else HEADER_BYTES + segment.bytes)
        except OSError as error:
            self.spool.failed(boot, append)
            self.dropped += append.count
            self.note(f"the spool in {self.root} cannot be written ({error.strerror}); records are dropped")
            return False
        if head:
            self._unsynced.add(path.parent)
        incarnation.chain = chain
        self.spool.wrote(boot, append, len(blocks))
        return True

    def _write(self, path: Path, content: bytes, at: int) -> None:
        """Whole or not at all. Raises OSError."""
        self.disk.write(path, content, at)
        self._unsynced.add(path)

    # -- to the disk

    def unsynced(self) -> list[Path]:
        """What was written since it was asked last, for `Disk.sync`: files, and folders with new ones."""
        paths, self._unsynced = sorted(self._unsynced), set()
        return paths

    def failed_to_sync(self, paths: Iterable[Path], error: OSError) -> None:
        """Another time, and the log tells."""
        self._unsynced.update(paths)
        self.note(f"the spool in {self.root} cannot be synced ({error.strerror}); a loss of power costs more of it")

    def synced(self, totals: Mapping[int, int]) -> None:
        """So many records of each incarnation are on the disk: the `totals` of when `unsynced` was asked."""
        self._synced = dict(totals)

    def on_disk(self, until: Mapping[int, int], held: Mapping[int, int]) -> dict[int, int]:
        """`until`, less what is not on the disk yet. What the coordinator holds was there before it was sent."""
        known = {boot: max(self._synced.get(boot, 0), held.get(boot, 0)) for boot in until}
        return {boot: min(total, known[boot]) for boot, total in until.items()}

    # -- to the coordinator

    def hold(self, held: Mapping[int, int]) -> None:
        """The coordinator holds so many records of each incarnation; their files go. On a full disk as well."""
        for boot, records in held.items():
            if freed := self.spool.hold(boot, records):
                self._free(self.spool.incarnations[boot], freed)
        for boot in self.spool.forgettable(held):
            self.disk.remove_folder(self._directory(boot))
            self.spool.forget(boot)
            self._headers.pop(boot, None)

    def _free(self, incarnation: Incarnation, freed: Sequence[Segment]) -> None:
        paths = [self._file(incarnation.boot, segment) for segment in freed]
        sealed = 0 if incarnation.segments else incarnation.ended
        try:
            self._write_freed(incarnation, sealed)
        except OSError:
            self.disk.truncate(paths[0], 0)
            self._write_freed(incarnation, sealed)
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self.disk.remove(path)

    def _write_freed(self, incarnation: Incarnation, sealed: int) -> None:
        boot, header, first = incarnation.boot, self._headers[incarnation.boot], incarnation.first
        name = incarnation.segments[0].name if incarnation.segments else incarnation.chain.name
        freed = freed_file(header, Chain(boot, name, first), incarnation.total + incarnation.shift, sealed)
        self.disk.replace(self._directory(boot) / FREED_FILE, freed)

    def seal(self, held: Mapping[int, int]) -> None:
        """Of these incarnations the coordinator holds so many records: see `Spool.seal`."""
        self.spool.seal(boot for boot, records in held.items() if records)

    def totals(self) -> dict[int, int]:
        """Of each incarnation, how many records there are now."""
        return {boot: each.total for boot, each in self.spool.incarnations.items()}

    def chunks(self, held: Mapping[int, int], until: Mapping[int, int] | None = None) -> Iterator[Chunk]:
        """Everything after `held`, and before `until`, that is here; at least one chunk for each incarnation."""
        most = self.totals() if until is None else until
        for incarnation in sorted(self.spool.incarnations.values(), key=lambda each: each.starts):
            boot = incarnation.boot
            if boot in most:
                yield from self._chunks(incarnation, held.get(boot, 0), most[boot])

    def _chunks(self, incarnation: Incarnation, held: int, until: int) -> Iterator[Chunk]:
        boot, header = incarnation.boot, self._headers[incarnation.boot]
        ended = incarnation.ended if until == incarnation.total else 0
        blocks, first, at = b"", max(held, incarnation.first), held
        for segment in tuple(incarnation.segments):
            if segment.end <= held or segment.first >= until:
                continue
            if segment not in incarnation.segments:
                return  # freed meanwhile, by another call that holds more
            found = self._read(incarnation, segment)
            if found is None:  # mended: once more from there
                yield from self._chunks(incarnation, at, until)
                return
            for block, packed in found:
                if block.end <= held or block.end > until or not block.count:
                    continue
                if blocks and len(blocks) + len(packed) > CHUNK_BYTES - HEAD_BYTES:
                    yield Chunk(boot, first, header, blocks, False, False, until)
                    blocks = b""
                first = first if blocks else block.first
                blocks, at = blocks + packed, block.end
        if ended:
            blocks += self._seal(incarnation, ended)
        yield Chunk(boot, first, header, blocks, bool(ended), ended == STATE_CRASHED, until)

    def _read(self, incarnation: Incarnation, segment: Segment) -> list[tuple[Block, bytes]] | None:
        """Its blocks as they are on the disk; None: one of the incarnation's files was damaged and has been mended."""
        try:
            data = self.disk.read(self._file(incarnation.boot, segment))
        except FileNotFoundError:
            data = b""
        found, end = [], segment.first
        for at, block in scan(data):
            if isinstance(block, Block):
                end = block.end
                found.append((block, data[at : at + block.size]))
        if end == segment.end and len(data) == HEADER_BYTES + sum(len(packed) for _, packed in found):
            return found
        self._repair(incarnation)
        return None

    def _repair(self, incarnation: Incarnation) -> None:
        """A file was damaged while the agent runs: what was in it and is not any more is missing from now on."""
        directory = self._directory(incarnation.boot)
        restored = restore(self.disk, directory, incarnation.boot, self._headers[incarnation.boot], incarnation.chain)
        for problem in restored.problems:
            self.note(problem)
        incarnation.segments = restored.segments
        if incarnation.ended and not restored.sealed:
            self._end(incarnation.boot, incarnation.ended)

    def _seal(self, incarnation: Incarnation, state: int) -> bytes:
        return replace(incarnation.chain).seal(state, incarnation.position)

    # -- files

    def _directory(self, boot: int) -> Path:
        return self.root / f"{boot:016x}"

    def _file(self, boot: int, segment: Segment) -> Path:
        return self._directory(boot) / segment_name(segment.first)

    def _segments(self) -> Iterator[Path]:
        for directory in self.disk.entries(self.root):
            with contextlib.suppress(OSError):
                yield from (path for path in self.disk.entries(directory) if path.suffix == SUFFIX)

    def _restore(self) -> None:
        rings = {path.stem for path in self.rings.paths()}
        for directory in self.disk.entries(self.root):
            if directory.suffix == DAMAGED:
                continue
            if not NAME.fullmatch(directory.name):
                self.note(f"{directory} is no trace of this agent; it was left alone")
                continue
            try:
                self._restore_one(directory, int(directory.name, 16))
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in SCARCE:
                    raise
                aside = set_aside(directory, self.disk)
                self.note(f"{directory} cannot be read as a trace ({error}); it was set aside as {aside}")
        for boot, header in self._headers.copy().items():
            if boot not in self.spool.incarnations and f"{boot:016x}" not in rings:
                self._begin(header)
                self.note(f"{self._directory(boot)} is missing, with a trace that was begun")
        for boot, incarnation in self.spool.incarnations.items():
            if not incarnation.ended and f"{boot:016x}" not in rings:
                self._lose(boot)
                self.note(f"{self._directory(boot)} has neither an end nor its ring: what was done last is unknown")

    def _restore_one(self, directory: Path, boot: int) -> None:
        found = restore(self.disk, directory, boot, self._headers.get(boot))
        unpacked = unpack_header(found.header)
        for problem in found.problems:
            self.note(problem)
        self._headers[boot] = found.header
        # An earlier control process may have been killed before it brought them to the disk.
        self._unsynced.update((self.root, directory, *self.disk.entries(directory)))
        shift = found.position - found.chain.end
        incarnation = Incarnation(
            found.chain, unpacked.started_ns, found.segments, shift, 0, found.sealed, unpacked.starts
        )
        self.spool.restore(incarnation)

    def _lose(self, boot: int) -> None:
        """Its ring was in memory, which is gone: nobody knows what it wrote last, and whether it ended."""
        with contextlib.suppress(
            OSError
        ):  # told; without a seal it is not taken for whole, and the next start tries again
            if self._append(boot, self.spool.lose(boot), b""):
                self._end(boot, STATE_CRASHED)


def _peek(ring: Ring, unit: int) -> bytes:
    """As Ring.take, but the records stay in the ring until they are in a file. unit: bytes; a multiple of it comes."""
    taken = ring.cells[TAKEN]
    there = ring.cells[WRITTEN] - taken
    count = min(there - there % unit, MOST_AT_ONCE)
    first = taken % ring.capacity
    head = min(count, ring.capacity - first)
    return bytes(ring.memory[DATA + first : DATA + first + head]) + bytes(ring.memory[DATA : DATA + count - head])
