"""Writes the records of an incarnation into Parquet files, and reads them back. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from coordinator import durable_files
from coordinator.report.landing import record_columns
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, usable_records
from coordinator.report.landing.seal import SealedFile, SealedTrace, file_of
from coordinator.report.landing.segment_files import SegmentSummary, follow
from protos.records import RECORD_BYTES

GROUP = 1 << 17  # records of a row group
PART = 1 << 22  # records of a file, about
Group = tuple[Raw, npt.NDArray[np.int64]]  # records, and their places


def grouped(path: Path, first: int | None, told: SegmentSummary) -> Iterator[Group]:
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


def write(folder: Path, number: int, groups: Iterator[Group]) -> Iterator[SealedFile]:
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


def record_bytes(folder: Path, trace: SealedTrace) -> Iterator[bytes]:
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
