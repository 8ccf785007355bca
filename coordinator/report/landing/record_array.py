"""Trace records as an array of 64-byte structs: one numpy view of what protos/records.py defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from protos.record_layout import COLUMNS, RECORD, Field
from protos.records import KINDS

Raw = npt.NDArray[Any]
_LETTERS = {"B": "<u1", "H": "<u2", "q": "<i8", "Q": "<u8"}
RECORD_DTYPE = np.dtype(
    [(name, _LETTERS[letter]) for name, letter in zip(COLUMNS, RECORD.format.lstrip("<"), strict=True)]
)
SEQ_LIMIT = 1 << 63  # a lineage's seq beyond it is damage; it also keeps within Spark's integers


def value(columns: Raw | Mapping[str, Raw], field: Field) -> Raw:
    """A field of records that are all of its kind."""
    found: Raw = columns[field.column]
    if field.signed:
        return found.astype(np.int64, copy=False)
    return found if field.whole else found >> field.shift & field.mask


def usable_records(raw: Raw) -> npt.NDArray[np.bool_]:
    """Which of them are records, and not of an unknown kind or with an impossible seq."""
    found: npt.NDArray[np.bool_] = (raw["kind"] > 0) & (raw["kind"] < len(KINDS)) & (raw["seq"] < np.uint64(SEQ_LIMIT))
    return found
