"""The records of an incarnation as arrays, a piece at a time: what is in memory is a piece, for a run of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from coordinator.report.landing.record_array import RECORD_DTYPE, Raw
from protos.records import RECORD_BYTES

if TYPE_CHECKING:
    from coordinator.report.facts.reader import Incarnation

PIECE = 1 << 17  # records


def raw_pieces(incarnation: Incarnation) -> Iterator[tuple[int, Raw]]:
    """Everything in an incarnation's segments, in order: how many records came before, and records."""
    before = 0
    for chunk in incarnation.chunks:
        for at in range(0, len(chunk), PIECE * RECORD_BYTES):
            raw = np.frombuffer(chunk[at : at + PIECE * RECORD_BYTES], dtype=RECORD_DTYPE)
            yield before, raw
            before += len(raw)


__all__ = ["raw_pieces"]
