"""What the outcomes of many encounters say: crash probability and impact speed, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, sqrt
from typing import Any

import numpy as np

from sim_vehicles.contest.contest_results import Crashes, Interval, Pair

Z = 1.959964  # of a standard normal: 95 % lie within
DRAWS = 4000  # of a bootstrap


def summed(impacts_kmh: Sequence[float | None], seed: int = 1) -> Crashes:
    """impacts_kmh: of each encounter, None where the two did not touch."""
    hit = [each for each in impacts_kmh if each is not None]
    return Crashes(
        len(impacts_kmh),
        len(hit),
        wilson(len(hit), len(impacts_kmh)),
        _bootstrap(hit, np.median, seed) if hit else None,
        _bootstrap([each or 0.0 for each in impacts_kmh], np.mean, seed),
    )


def paired(first: Sequence[float | None], second: Sequence[float | None]) -> Pair:
    """The impacts of two ways, encounter by encounter."""
    hits = [(one is not None, other is not None) for one, other in zip(first, second, strict=True)]
    alone = hits.count((True, False)), hits.count((False, True))
    n, fewer = sum(alone), min(alone)
    tail = sum(comb(n, k) for k in range(fewer + 1)) / 2**n
    return Pair(hits.count((True, True)), *alone, min(1.0, 2 * tail))


def wilson(hits: int, n: int) -> Interval:
    """Of a share: Wilson's score interval (1927), which keeps within 0 and 1 and does not vanish at either."""
    if not n:
        return Interval(0.0, 0.0, 1.0)
    share = hits / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def _bootstrap(values: Sequence[float], of: Callable[..., Any], seed: int) -> Interval:
    known = np.array(values)
    drawn = of(known[np.random.default_rng(seed).integers(0, len(known), (DRAWS, len(known)))], axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(of(known)), float(low), float(high))


__all__ = ["paired", "summed", "wilson"]
