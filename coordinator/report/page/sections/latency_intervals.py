"""How sure a figure of one run is: intervals that hold for 95 of 100 runs, were results independent of one another.

Results that wait in one queue are not, so other runs differ by more; it is the least that two runs must differ by.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt

Z = 1.96  # of 95 %


def quantile_interval(ranks_ns: Sequence[int | None], results: int, share: float) -> tuple[int, int] | None:
    """Of a quantile, from evenly many ranks, by the binomial distribution of the rank. None: there are too few.

    ranks_ns: the k-th is the nearest rank of k/n, as in report.json.
    """
    known, steps = [ns for ns in ranks_ns if ns is not None], len(ranks_ns)
    if not known or len(known) < steps or results < 2:
        return None
    apart = Z * sqrt(share * (1 - share) / results)
    low = max(0, floor((share - apart) * steps) - 1)
    high = min(steps - 1, ceil((share + apart) * steps) - 1)
    return known[low], known[max(low, high)]


def share_interval(share: tuple[float, float], results: int) -> tuple[float, float]:
    """Of a share that is an interval already (Wilson's score, at either end)."""
    return _wilson(share[0], results)[0], _wilson(share[1], results)[1]


def _wilson(share: float, results: int) -> tuple[float, float]:
    if not results:
        return 0.0, 1.0
    middle = (share + Z * Z / (2 * results)) / (1 + Z * Z / results)
    apart = Z * sqrt(share * (1 - share) / results + Z * Z / (4 * results * results)) / (1 + Z * Z / results)
    return max(0.0, middle - apart) if share > 0 else 0.0, min(1.0, middle + apart) if share < 1 else 1.0


__all__ = ["quantile_interval", "share_interval"]
