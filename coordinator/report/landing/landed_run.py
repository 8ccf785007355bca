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

from coordinator import durable_files
from coordinator.report import report_extra
from coordinator.report.landing import seal
from coordinator.report.landing.seal import Firsts, Seal, SealedTrace, file_of, left_out, trace_folders
from coordinator.report.landing.segment_files import SegmentSummary, Stored, segments

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
        """The records of an incarnation, as bytes. Raises ReportExtraError where pyarrow is not installed."""
        report_extra.require("pyarrow", f"{self.folder} is Parquet, and reading it")
        from coordinator.report.landing import parquet_files

        return Stored(partial(parquet_files.record_bytes, self.folder / trace.folder, trace), trace.places)


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
    """What was landed before, or now. Raises OSError: what was there is there then. Raises ReportExtraError."""
    report_extra.require("pyarrow", "Parquet")
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
    from coordinator.report.landing import parquet_files

    node, boot = path.parent.name, path.name
    first, told = firsts.get((node, boot)), SegmentSummary()
    sealed = tuple(map(file_of, segments(path)))
    groups = parquet_files.grouped(path, first, told)
    files = tuple(parquet_files.write(new / f"node={node}" / f"boot={boot}", number, groups))
    return SealedTrace(
        node, boot, first, told.clock, told.virtual, told.sealed, told.places, tuple(told.damage), sealed, files
    )
