"""Landed records as a table of pyarrow, with the columns of `record_fields`, and back again. Needs pyarrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, value
from coordinator.report.landing.record_fields import FIELDS, FLAGS, NAMES, WHEN, WORDS
from protos import records as rec
from protos.record_layout import Field, Flag

SCHEMA = pa.schema(
    [
        pa.field("trace", pa.int32(), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        *(pa.field(name, pa.int64()) for name in WORDS),
        *(pa.field(name, pa.bool_()) for name in FLAGS),
    ]
)


def table(raw: Raw, places: npt.NDArray[np.int64], trace: int) -> pa.Table:
    """Usable records as columns, those of a kind together."""
    order = np.argsort(raw["kind"], kind="stable")
    raw, places = raw[order], places[order]
    numbers, starts = np.unique(raw["kind"], return_index=True)
    kinds = pa.DictionaryArray.from_arrays(pa.array(raw["kind"].astype(np.int8) - 1), pa.array(NAMES, pa.string()))
    pieces: dict[str, list[pa.Array]] = {name: [] for name in (*WORDS, *FLAGS)}
    for number, start, end in zip(numbers.tolist(), starts.tolist(), [*starts.tolist()[1:], len(raw)], strict=True):
        mine, fields = raw[start:end], FIELDS[number]
        for name, found in pieces.items():
            found.append(_piece(mine, fields.get(name), SCHEMA.field(name).type))
    columns = [pa.chunked_array(found, type=SCHEMA.field(name).type) for name, found in pieces.items()]
    common = [pa.array(np.full(len(raw), trace, np.int32)), pa.array(places), kinds]
    return pa.Table.from_arrays([*common, *columns], schema=SCHEMA)


def _piece(mine: Raw, field: Field | None, kind: pa.DataType) -> pa.Array:
    """A column of records of one kind."""
    if field is None:
        return pa.nulls(len(mine), kind)
    missing = ~WHEN[field](mine) if field in WHEN else None
    if isinstance(field, Flag):
        return pa.array(mine["flags"] >= rec.FLAG, mask=missing)
    return pa.array(value(mine, field).astype(np.int64), mask=missing)


def records(landed: pa.Table) -> Raw:
    """Records as bytes again, as far as they are named; what a kind calls nothing is 0, and its
    ref NO_REF."""
    raw = np.zeros(len(landed), RECORD_DTYPE)
    kinds = landed["kind"].combine_chunks()
    numbers = np.array([NAMES.index(name) + 1 for name in kinds.dictionary.to_pylist()], np.int64)
    raw["kind"] = numbers[kinds.indices.to_numpy(zero_copy_only=False)]
    raw["ref"] = rec.NO_REF
    columns = {name: landed[name].combine_chunks() for name in (*WORDS, *FLAGS)}
    held = {name: column for name, column in columns.items() if column.null_count < len(landed)}
    values = {name: column.fill_null(0 if name in WORDS else False) for name, column in held.items()}
    arrays = {name: each.to_numpy(zero_copy_only=False) for name, each in values.items()}
    known = {name: column.is_valid().to_numpy(zero_copy_only=False) for name, column in held.items()}
    for number in np.unique(raw["kind"]).tolist():
        at = np.flatnonzero(raw["kind"] == number)
        for name, field in FIELDS[number].items():
            if name in held:
                where = at[known[name][at]]
                _put(raw, where, field, arrays[name][where])
    return raw


def _many(name: str) -> bool:
    """Whether a column has about as many values as rows, one near the other."""
    return name.endswith(("_ns", "seq", "_through", "place"))


ENCODED = {name: "DELTA_BINARY_PACKED" for name in SCHEMA.names if _many(name)}
LISTED = [name for name in SCHEMA.names if name not in ENCODED and name not in FLAGS]


def _put(raw: Raw, where: npt.NDArray[np.int64], field: Field, values: npt.NDArray[np.int64]) -> None:
    column = raw[field.column]
    if field.whole:
        column[where] = values.astype(column.dtype)
        return
    wide = np.uint64 if column.dtype.kind == "u" else np.int64
    bits = (values.astype(np.uint64) & np.uint64(field.mask)) << np.uint64(field.shift)
    column[where] = (column[where].astype(np.uint64) | bits).astype(wide).astype(column.dtype)
