"""A run's ledger records in parts that fit in memory, each with all records of its lineages.

A run of one part stays in memory. Else its records lie in a file per part, chosen by the lineage, for as long as they
are compared: 76 bytes each, in the folder for temporary files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.mixing import Codes, mixed
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw
from coordinator.report.witness.keys import Ints
from coordinator.report.witness.rows import Rows, joined, ledger_rows
from protos import records as rec
from protos.records import Merged, Sent

OF_A_PART = 1 << 19  # records: some 400 bytes of memory each while they are compared
WRITTEN = np.dtype([("inc", "<i4"), ("place", "<i8"), ("record", RECORD_DTYPE)])


@dataclass(frozen=True, slots=True)
class Part:
    """rows: all of some lineages; merged: the MERGED whose parents are among these; numbered: all SENT of some numbers
    of links."""

    rows: Rows
    merged: Rows
    numbered: Rows


class Parts:
    """Takes the records of all incarnations, one incarnation after the other; then there are parts."""

    def __init__(self, plan: PlanView, traces: Sequence[Trace], folder: ExitStack, most: int = OF_A_PART) -> None:
        """folder: closes the files."""
        self._plan = plan
        self._traces: Mapping[int, Trace] = {trace.incarnation.number: trace for trace in traces}
        self._n = max(1, -(-sum(trace.incarnation.places for trace in traces) // most))
        self._rows: list[Rows] = []
        self._files = [_Files.opened(folder) for _ in range(self._n if self._n > 1 else 0)]

    def add(self, raw: Raw, rows: Rows, before: int) -> None:
        """Some records of one incarnation, as they are and as rows; and how many came before them."""
        if not self._files:
            self._rows.append(rows)
        elif len(rows):
            told = np.zeros(len(rows), WRITTEN)
            told["inc"], told["place"], told["record"] = rows.inc, rows.place, raw[rows.place - before]
            self._write("rows", told, mixed(rows.source, rows.epoch, rows.seq))
            merged = np.flatnonzero(rows.kind == rec.MERGED)
            source = rows[Merged.parent_source] | rows.number << ID_BITS
            parents = mixed(source, rows[Merged.parent_epoch], rows[Merged.parent_seq])
            self._write("merged", told[merged], parents[merged])
            sent = np.flatnonzero(rows.kind == rec.SENT)
            self._write("numbered", told[sent], mixed(rows.inc, rows.ref, rows[Sent.link_seq])[sent])

    def __iter__(self) -> Iterator[Part]:
        if not self._files:
            rows = joined(self._rows)
            yield Part(rows, rows.of(rec.MERGED), rows.of(rec.SENT))
        for files in self._files:
            yield Part(*(self._read(each) for each in (files.rows, files.merged, files.numbered)))

    def _write(self, which: str, told: npt.NDArray[np.void], codes: Codes) -> None:
        number = (codes % np.uint64(self._n)).astype(np.int64)
        order = np.argsort(number, kind="stable")
        ends = np.searchsorted(number[order], np.arange(self._n + 1))
        told = told[order]
        for files, since, until in zip(self._files, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if until > since:
                getattr(files, which).write(told[since:until].tobytes())

    def _read(self, file: IO[bytes]) -> Rows:
        file.seek(0)
        told = np.frombuffer(file.read(), WRITTEN)
        inc: Ints = told["inc"].astype(np.int64)
        return joined(
            [
                ledger_rows(self._plan, self._traces[each], mine["record"], mine["place"].astype(np.int64))
                for each in np.unique(inc).tolist()
                for mine in (told[inc == each],)
            ]
        )


@dataclass(frozen=True, slots=True)
class _Files:
    """Of one part."""

    rows: IO[bytes]
    merged: IO[bytes]
    numbered: IO[bytes]

    @classmethod
    def opened(cls, folder: ExitStack) -> _Files:
        return cls(*(folder.enter_context(tempfile.TemporaryFile(prefix="shimekiri-")) for _ in range(3)))


__all__ = ["Part", "Parts"]
