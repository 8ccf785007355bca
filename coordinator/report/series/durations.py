"""Durations counted on a logarithmic scale: quantiles of any number of them from a bounded number of counters."""

from __future__ import annotations

import numpy as np

from coordinator.report.series.record_rows import Ints

PER_OCTAVE = 16  # a counter is 4.4 % wide, so its middle is off by 2.2 % at most
LEAST_NS = 1 << 8  # shorter ones count as this
OCTAVES = 36  # up to five hours
COUNTERS = PER_OCTAVE * OCTAVES


def counter(ns: Ints) -> Ints:
    """Which counter each belongs to."""
    octaves = np.log2(np.maximum(ns, LEAST_NS) / LEAST_NS)
    return np.minimum((octaves * PER_OCTAVE).astype(np.int64), COUNTERS - 1)


def quantile_ns(counts: Ints, share: float, most_ns: int) -> int | None:
    """The nearest rank, to 2.2 %; most_ns: the greatest of them. None: there are none."""
    total = int(counts.sum())
    if not total:
        return None
    rank = max(1, int(np.ceil(share * total)))
    if rank == total:
        return most_ns
    at = int(np.searchsorted(np.cumsum(counts), rank))
    return min(most_ns, int(LEAST_NS * 2 ** ((at + 0.5) / PER_OCTAVE)))


__all__ = ["COUNTERS", "PER_OCTAVE", "counter", "quantile_ns"]
