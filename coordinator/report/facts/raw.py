"""The records of an incarnation as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coordinator.report.landing.record_array import RECORD_DTYPE, Raw

if TYPE_CHECKING:
    from coordinator.report.facts.reader import Incarnation


def raw_records(incarnation: Incarnation) -> Raw:
    """Everything in an incarnation's segments, in order."""
    return np.frombuffer(b"".join(incarnation.chunks), dtype=RECORD_DTYPE)


__all__ = ["raw_records"]
