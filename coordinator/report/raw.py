"""Trace records as an array of 64-byte structs: one numpy view of what protos/records.py defines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from protos.records import KINDS, RECORD, Record

if TYPE_CHECKING:
    from coordinator.report.reader import Incarnation

_LETTERS = {"B": "<u1", "H": "<u2", "q": "<i8", "Q": "<u8"}
RECORD_DTYPE = np.dtype(
    [(name, _LETTERS[letter]) for name, letter in zip(Record._fields, RECORD.format.lstrip("<"), strict=True)]
)


def raw_records(incarnation: Incarnation) -> npt.NDArray[np.void]:
    """Everything in an incarnation's segments, in order."""
    return np.frombuffer(b"".join(incarnation.chunks), dtype=RECORD_DTYPE)


def usable_records(raw: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Which of them are records: `reader.usable` for all at once."""
    found: npt.NDArray[np.bool_] = (raw["kind"] > 0) & (raw["kind"] < len(KINDS)) & (raw["seq"] < np.uint64(1 << 63))
    return found
