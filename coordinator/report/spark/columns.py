"""Raw trace segments as columns: 64-byte records become parquet under trace/parquet/node=/boot=, vectorised.

The columns are those of record_layout.py, plus `place` (how many records came before it). `last` is
the same 64 bits read as a signed integer, as Spark has no unsigned ones; `inc`, `at_node` and `clock` are the
incarnation's number in its run, its node and its clock domain.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coordinator.report.facts.raw import raw_records, usable_records
from coordinator.report.facts.reader import Incarnation, Run
from protos.record_layout import COLUMNS as FIELDS
from protos.record_layout import RECORD

_WIDE = {"B": np.int32, "H": np.int32, "q": np.int64, "Q": np.int64}
COLUMNS = {
    name: _WIDE[letter] for name, letter in zip(FIELDS, RECORD.format.lstrip("<"), strict=True)
} | {"place": np.int64}  # fmt: skip


def table(incarnation: Incarnation) -> pa.Table:
    """The usable records of one incarnation."""
    raw = raw_records(incarnation)
    usable = usable_records(raw)
    place = np.arange(len(raw), dtype=np.int64)[usable] + incarnation.declared.first
    kept = raw[usable]
    columns = {name: kept[name].astype(kind) for name, kind in COLUMNS.items() if name != "place"}
    n = len(kept)
    same = {"inc": incarnation.number, "at_node": incarnation.node}
    wide = {name: np.full(n, value, dtype=np.int64) for name, value in same.items()}
    return pa.table(columns | {"place": place} | wide | {"clock": pa.array([incarnation.clock] * n, pa.string())})


def write_parquet(run: Run) -> Path | None:
    """(Re)write a run's trace/parquet. Returns its root, None when the run has no records at all."""
    root = run.path / "trace" / "parquet"
    shutil.rmtree(root, ignore_errors=True)
    for incarnation in run.incarnations:
        if incarnation.chunks:
            node = run.plan.nodes[incarnation.node]
            directory = root / f"node={node}" / f"boot={incarnation.boot_hex}"
            directory.mkdir(parents=True)
            pq.write_table(table(incarnation), directory / "part.parquet")
    return root if root.exists() else None
