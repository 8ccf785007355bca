"""The least change that holds, by bisection over whole numbers. Nothing here knows what is changed."""

from __future__ import annotations

from collections.abc import Callable

Holds = Callable[[int], bool]


def first(holds: Holds, bad: int, good: int, near: Callable[[int], int] = lambda _: 1) -> int:
    """A value that holds, `near` a value that does not and lies towards `bad`; `good` is known to hold, `bad` not to.

    `near(value)`: how close is close enough at that value, at least 1. Looks only at values strictly between the two.
    Where `holds` changes once between them, this is the change; else one of its changes.
    """
    while abs(good - bad) > max(1, near(min(good, bad))):
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def growing(holds: Holds, start: int, limit: int, gap: int = 1, near: Callable[[int], int] = lambda _: 1) -> int | None:
    """The least value above `start` (known not to hold) that holds, `near` one that does not; None: not even `limit`.

    Steps that double, from `gap`, before bisecting: what is least is mostly near the start, and far from it attempts
    take longer.
    """
    if not holds(limit):
        return None
    bad, good = start, min(start + gap, limit)
    while good < limit and not holds(good):
        bad, gap = good, 2 * gap
        good = min(bad + gap, limit)
    return first(holds, bad, good, near)


def step_of(quantity: int) -> int:
    """A round step of about a thousandth of a quantity: 300 ms in steps of 0.1 ms, 3 s in steps of 1 ms."""
    step = 1
    while step * 10_000 <= quantity:
        step *= 10
    return step
