"""Raw trace segments into a DuckDB table, read anew: nothing of the product's readers is used.

A segment is a header of 128 bytes and blocks: a head of 64 bytes and records of 64 bytes each, deflated or not. The
layouts are written down here a second time, on purpose.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

HEADER_BYTES, HEAD_BYTES, RECORD_BYTES = 128, 64, 64
HEAD = struct.Struct("<4sHHII5QQ")
SEAL, MISSING, FREED = 1, 2, 4
RECORD = np.dtype([
    ("kind", "<u1"), ("flags", "<u1"), ("ref", "<u2"), ("source", "<u2"), ("epoch", "<u2"), ("seq", "<i8"),
    ("word0", "<i8"), ("word1", "<i8"), ("word2", "<i8"), ("word3", "<i8"), ("word4", "<i8"), ("last", "<i8"),
])  # fmt: skip


def load(run: Path, nodes: dict[str, int], base: duckdb.DuckDBPyConnection) -> None:
    """Make the table `records` of all that lies in trace/raw. nodes: their numbers, by name; inc: of the trace."""
    columns = ", ".join(f"{name} BIGINT" for name in RECORD.names or ())
    base.execute(f"CREATE TABLE records (inc BIGINT, node BIGINT, {columns})")
    traces = sorted(path for path in (run / "trace" / "raw").glob("*/*") if path.parent.name in nodes)
    for number, trace in enumerate(traces):
        for segment in sorted(trace.glob("*.trace")):
            raw = np.frombuffer(_records(segment.read_bytes()), dtype=RECORD)
            node = nodes[trace.parent.name]
            batch = pa.table({name: raw[name].astype(np.int64) for name in RECORD.names or ()})
            base.register("batch", batch)
            base.execute(f"INSERT INTO records SELECT {number}, {node}, * FROM batch")
            base.unregister("batch")


def _records(data: bytes) -> bytes:
    return b"".join(_bodies(data))


def _bodies(data: bytes) -> Iterator[bytes]:
    at = HEADER_BYTES
    while at < len(data):
        _, flags, _, count, deflated, *_ = HEAD.unpack_from(data, at)
        size = 0 if flags & MISSING else deflated or count * RECORD_BYTES
        body = data[at + HEAD_BYTES : at + HEAD_BYTES + size]
        yield zlib.decompress(body) if deflated else body
        at += HEAD_BYTES + size
