"""The least change that holds, by bisection over whole numbers. Nothing here knows what is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

Holds = Callable[[int], bool]


class OverError(Exception):
    """The time for looking is over."""


@dataclass(frozen=True)
class Found:
    """A value that holds; `settled`: one a step nearer to where the search began does not."""

    value: int
    settled: bool


def first(holds: Holds, bad: int, good: int, near: Callable[[int], int] = lambda _: 1) -> Found:
    """A value that holds, `near` a value that does not and lies towards `bad`; `good` is known to hold, `bad` not to.

    `near(value)`: how close is close enough at that value, at least 1. Looks only at values strictly between the two.
    Where `holds` changes once between them, this is the change; else one of its changes. When `holds` raises
    OverError, the best value so far, not settled.
    """
    try:
        while abs(good - bad) > max(1, near(min(good, bad))):
            middle = between(bad, good)
            if holds(middle):
                good = middle
            else:
                bad = middle
    except OverError:
        return Found(good, False)
    return Found(good, True)


def between(one: int, other: int) -> int:
    """A value between two. Far apart, the geometric mean: what is least is mostly near the start, and attempts that
    hold are the fast ones."""
    low, high = min(one, other), max(one, other)
    return isqrt(low * high) if 0 < 2 * low < high and isqrt(low * high) > low else (one + other) // 2


def least(holds: Holds, start: int, limits: Sequence[int], near: Callable[[int], int] = lambda _: 1) -> Found | None:
    """The value nearest to `start` (known not to hold) that holds, `near` one that does not; None: not even the last of
    the `limits`, which go away from `start`: a likely one first, so that little is left to search where it holds.
    Raises OverError where there was no time to try these."""
    bad = start
    for limit in limits:
        if abs(limit - start) > abs(bad - start):
            if holds(limit):
                return first(holds, bad, limit, near)
            bad = limit
    return None
