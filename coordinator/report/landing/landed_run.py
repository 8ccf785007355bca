"""Lands a run: its raw segments become sealed Parquet under trace/parquet, once, and as a stream.

    trace/parquet/seal.json
    trace/parquet/node=<node>/boot=<16 hex>/part-NNNN.parquet

What is in memory is one segment and one row group. A run is landed into a folder of its own that takes the place of the
old one when it is sealed, so a full disk, or a command that is killed, leaves what was there. Commands that land one
run at once take turns, and the later ones find it done.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOENT
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from coordinator import durable_files
from coordinator.report.landing import record_columns, seal
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, usable_records
from coordinator.report.landing.seal import Firsts, Seal, SealedFile, SealedTrace, file_of, left_out, trace_folders
from coordinator.report.landing.segment_files import SegmentSummary, Stored, follow, segments
from protos.records import RECORD_BYTES

GROUP = 1 << 17  # records of a row group
PART = 1 << 22  # records of a file, about
LOCK = ".lock"
SCRATCH = (".landing-", ".landed-")


@dataclass(frozen=True, slots=True)
class Landed:
    """A run's sealed Parquet."""

    folder: Path
    seal: Seal

    def paths(self) -> list[str]:
        """Its files, in order."""
        return [
            str(self.folder / each.folder / file.name) for each in self.seal.traces for file in each.files
        ]  # fmt: skip

    def stored(self, trace: SealedTrace) -> Stored:
        """The records of an incarnation, as bytes."""
        return Stored(partial(_bytes, self.folder / trace.folder, trace), trace.places)


def folders(run: Path) -> tuple[Path, Path]:
    """Of the raw segments, and of what was landed."""
    return run / "trace" / "raw", run / "trace" / "parquet"


def find(run: Path, firsts: Firsts) -> Landed | None:
    """What was landed of the raw segments that are there, or, where none are, what is sound; None: nothing."""
    raw, folder = folders(run)
    found = seal.read(folder)
    if found is None or not found.fits(folder):
        return None
    if not (found.is_of(raw, firsts) if raw.is_dir() else found.holds(folder)):
        return None
    return Landed(folder, found)


def land(run: Path, firsts: Firsts) -> Landed:
    """What was landed before, or now. Raises OSError: what was there is there then."""
    with _turn(run):
        found = find(run, firsts)
        if found is not None:
            return found
        raw, folder = folders(run)
        if folder.exists() and not raw.is_dir():
            raise FileNotFoundError(ENOENT, "the raw segments are gone and the Parquet is not as it was sealed", raw)
        new, old = (folder.with_name(f"{word}{secrets.token_hex(4)}") for word in SCRATCH)
        new.mkdir()
        try:
            traces = tuple(_trace(path, n, new, firsts) for n, path in enumerate(trace_folders(raw)))
            made = Seal(traces, left_out(raw))
            made.write(new)
            with suppress(FileNotFoundError):
                folder.rename(old)
            new.rename(folder)
            durable_files.sync(folder.parent)
        finally:
            for left in (new, old):
                shutil.rmtree(left, ignore_errors=True)
        return Landed(folder, made)


def drop_raw(run: Path, firsts: Firsts) -> bool:
    """Remove the raw segments of a run, if their sealed Parquet is whole; whether that was so. Raises OSError."""
    found = find(run, firsts)
    if found is None or not found.seal.holds(found.folder):
        return False
    shutil.rmtree(folders(run)[0])
    return True


@contextmanager
def _turn(run: Path) -> Iterator[None]:
    path = run / "trace" / LOCK
    path.parent.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for left in (each for start in SCRATCH for each in path.parent.glob(f"{start}*")):  # of one that was killed
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _trace(path: Path, number: int, new: Path, firsts: Firsts) -> SealedTrace:
    """Land one incarnation."""
    node, boot = path.parent.name, path.name
    first, told = firsts.get((node, boot)), SegmentSummary()
    sealed = tuple(map(file_of, segments(path)))
    files = tuple(_files(new / f"node={node}" / f"boot={boot}", number, _groups(path, first, told)))
    return SealedTrace(
        node, boot, first, told.clock, told.virtual, told.sealed, told.places, tuple(told.damage), sealed, files
    )


Group = tuple[Raw, npt.NDArray[np.int64]]  # records, and their places


def _groups(path: Path, first: int | None, told: SegmentSummary) -> Iterator[Group]:
    """Usable records in groups of one size, but for the last one."""
    held: list[Group] = []
    place = n = 0
    for body in follow(path, first, told):
        for at in range(0, len(body), GROUP * RECORD_BYTES):
            raw = np.frombuffer(body[at : at + GROUP * RECORD_BYTES], RECORD_DTYPE)
            usable = usable_records(raw)
            held.append((raw[usable], place + np.flatnonzero(usable)))
            place, n = place + len(raw), n + int(usable.sum())
            if n >= GROUP:
                yield _joined(held)
                held, n = [], 0
    if n:
        yield _joined(held)


def _joined(held: list[Group]) -> Group:
    return np.concatenate([raw for raw, _ in held]), np.concatenate([places for _, places in held])


def _files(folder: Path, number: int, groups: Iterator[Group]) -> Iterator[SealedFile]:
    """Write Parquet files, synced."""
    written, part, writer, path = 0, 0, None, folder
    try:
        for raw, places in groups:
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"part-{part:04d}.parquet"
                writer = _writer(path)
            writer.write_table(record_columns.table(raw, places, number), row_group_size=2 * GROUP)
            written += len(raw)
            if written >= PART:
                writer.close()
                yield _synced(path, written)
                written, part, writer = 0, part + 1, None
        if writer is not None:
            writer.close()
            yield _synced(path, written)
            durable_files.sync(folder)
            writer = None
    finally:
        if writer is not None:
            with suppress(OSError, pa.ArrowException):
                writer.close()


def _writer(path: Path) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path, record_columns.SCHEMA, compression="zstd", compression_level=1, use_dictionary=record_columns.LISTED,
        column_encoding=record_columns.ENCODED,
    )  # fmt: skip


def _synced(path: Path, records: int) -> SealedFile:
    durable_files.sync(path)
    return file_of(path, records)


def _bytes(folder: Path, trace: SealedTrace) -> Iterator[bytes]:
    """The records of an incarnation in order, a row group at a time; zeros stand for what was no record."""
    end = 0
    for each in trace.files:
        with pq.ParquetFile(folder / each.name) as file:
            for number in range(file.num_row_groups):
                found = file.read_row_group(number)
                places = found["place"].to_numpy()
                after = int(places.max()) + 1
                whole = np.zeros(after - end, RECORD_DTYPE)
                whole[places - end] = record_columns.records(found)
                end = after
                yield whole.tobytes()
    if end < trace.places:
        yield bytes((trace.places - end) * RECORD_BYTES)
