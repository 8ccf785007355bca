"""Trace records as an array of 64-byte structs: one numpy view of what protos/records.py defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from protos.record_layout import COLUMNS, RECORD, Field
from protos.records import KINDS

if TYPE_CHECKING:
    from coordinator.report.facts.reader import Incarnation

Raw = npt.NDArray[Any]
_LETTERS = {"B": "<u1", "H": "<u2", "q": "<i8", "Q": "<u8"}
RECORD_DTYPE = np.dtype(
    [(name, _LETTERS[letter]) for name, letter in zip(COLUMNS, RECORD.format.lstrip("<"), strict=True)]
)


def raw_records(incarnation: Incarnation) -> Raw:
    """Everything in an incarnation's segments, in order."""
    return np.frombuffer(b"".join(incarnation.chunks), dtype=RECORD_DTYPE)


def value(columns: Raw | Mapping[str, Raw], field: Field) -> Raw:
    """A field of records that are all of its kind."""
    found: Raw = columns[field.column]
    if field.signed:
        return found.astype(np.int64, copy=False)
    return found if field.whole else found >> field.shift & field.mask


def usable_records(raw: Raw) -> npt.NDArray[np.bool_]:
    """Which of them are records: `reader.usable` for all at once."""
    found: npt.NDArray[np.bool_] = (raw["kind"] > 0) & (raw["kind"] < len(KINDS)) & (raw["seq"] < np.uint64(1 << 63))
    return found
