"""Records as columns, a piece at a time: of some kinds, and only the columns that are asked for.

From the landed Parquet where a run is large and has it, which is ten times as fast; else from the raw segments. Columns
are called as fields are, whichever it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from coordinator.report import report_extra
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing import landed_run
from coordinator.report.landing.landed_run import Landed
from coordinator.report.landing.record_array import RECORD_DTYPE, usable_records, value
from coordinator.report.landing.record_fields import FIELDS, NAMES
from coordinator.report.landing.seal import SealedTrace
from protos.record_layout import Flag
from protos.records import FLAG, PLAN_EPOCH_MASK, RECORD_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Wanted = Mapping[int, Sequence[str]]  # kind -> columns
PIECE = 1 << 18  # records
LARGE = 200_000  # records of a run, from which on its Parquet is looked for
MOST_NS = 1 << 60  # instants beyond it are damage; clamped, so that differences fit
CLAMPED = ("_ns", "tuples")
EPOCH = "plan_epoch"


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of one kind."""

    columns: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Ints:
        """A column; instants within bounds."""
        return self.columns[name]

    def where(self, chosen: Bools | Ints) -> Rows:
        """Some of them."""
        return Rows({name: column[chosen] for name, column in self.columns.items()})

    def own(self, epochs: Mapping[int, int]) -> Own:
        """Those of the run's plans. epochs: the number of the plan that each plan epoch stands for."""
        table = np.full(PLAN_EPOCH_MASK + 1, -1, np.int64)
        for epoch, number in epochs.items():
            table[epoch] = number
        numbers = table[self[EPOCH] & PLAN_EPOCH_MASK]
        known = numbers >= 0
        return Own(self.where(known), numbers[known])


@dataclass(frozen=True, slots=True)
class Own:
    """Records of one kind that belong to the run's plans. number: the plan of each."""

    rows: Rows
    number: Ints

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, name: str) -> Ints:
        return self.rows[name]

    def where(self, chosen: Bools | Ints) -> Own:
        """Some of them."""
        return Own(self.rows.where(chosen), self.number[chosen])

    def id(self, name: str) -> Ints:
        """An id as the joined view has it."""
        return self[name] | self.number << ID_BITS

    def outputs(self, plan: PlanView) -> Ints:
        """Ids of outputs, which several plans may share."""
        ids = self.id("output")
        for moved, known in plan.same.items():
            ids[ids == moved] = known
        return ids


Piece = Mapping[int, Rows]  # by kind, all that were asked for


class RunRecords:
    """The records of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        large = sum(each.places for each in run.incarnations) >= LARGE
        usable = large and report_extra.has("pyarrow")
        self._landed = landed_run.find(run.path, run.firsts) if usable else None
        traces = self._landed.seal.traces if self._landed is not None else ()
        self._sealed = {(each.node, each.boot): each for each in traces}

    def pieces(self, incarnation: Incarnation, wanted: Wanted) -> Iterator[Piece]:
        """All records of one incarnation, in order within each kind. wanted: names as in `FIELDS`, and the epoch."""
        names = {kind: (*(name for name in found if name != EPOCH), EPOCH) for kind, found in wanted.items()}
        sealed = self._sealed.get((self._run.plan.nodes[incarnation.node], incarnation.boot_hex))
        if self._landed is not None and sealed is not None:
            return _of_parquet(self._landed, sealed, names)
        return _of_segments(incarnation, names)


def _of_segments(incarnation: Incarnation, wanted: Wanted) -> Iterator[Piece]:
    for chunk in incarnation.chunks:
        for at in range(0, len(chunk), PIECE * RECORD_BYTES):
            raw = np.frombuffer(chunk[at : at + PIECE * RECORD_BYTES], RECORD_DTYPE)
            raw = raw[usable_records(raw)]
            found: dict[int, Rows] = {}
            for kind, names in wanted.items():
                mine = raw[raw["kind"] == kind]
                columns = {}
                for name in names:
                    field = FIELDS[kind][name]
                    columns[name] = mine["flags"] >= FLAG if isinstance(field, Flag) else value(mine, field)
                found[kind] = Rows({name: _sound(name, column) for name, column in columns.items()})
            yield found


def _of_parquet(landed: Landed, sealed: SealedTrace, wanted: Wanted) -> Iterator[Piece]:
    import pyarrow.parquet as pq

    names = sorted({name for found in wanted.values() for name in found})
    for each in sealed.files:
        with pq.ParquetFile(landed.folder / sealed.folder / each.name) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number, columns=["kind", *names])
                kinds = _numbers(table["kind"].combine_chunks())
                columns = {name: _filled(table[name]) for name in names}
                where = {kind: np.flatnonzero(kinds == kind) for kind in wanted}
                yield {
                    kind: Rows({name: _sound(name, columns[name][where[kind]]) for name in found})
                    for kind, found in wanted.items()
                }


def _numbers(kinds: pa.DictionaryArray) -> Ints:
    """Of kinds, which a file numbers in its own way."""
    numbers = np.array([NAMES.index(name) + 1 for name in kinds.dictionary.to_pylist()], np.int64)
    found: Ints = numbers[kinds.indices.to_numpy(zero_copy_only=False)]
    return found


def _filled(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    import pyarrow as pa

    empty = False if pa.types.is_boolean(column.type) else 0
    found: Ints = column.combine_chunks().fill_null(empty).to_numpy(zero_copy_only=False)
    return found


def _sound(name: str, column: npt.NDArray[np.generic]) -> Ints:
    """Words without a sign as Parquet has them, the same bits with one; instants and counts within bounds."""
    found: Ints = (column.view(np.int64) if column.dtype == np.uint64 else column).astype(np.int64)
    return np.clip(found, -MOST_NS, MOST_NS) if name.endswith(CLAMPED) else found


__all__ = ["EPOCH", "MOST_NS", "Bools", "Ints", "Own", "Rows", "RunRecords", "Wanted"]
