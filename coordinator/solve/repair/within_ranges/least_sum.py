"""The least change of several numbers together, by branch and bound over boxes of values.

A box has a corner of least change and one of most. Where a change that holds still holds when any of its parts is
larger, a box whose most changed corner does not hold has nothing to give, and no point of a box changes less than its
least changed corner. The box with the least of these is split, until nothing that is left is less than the best by more
than CLOSE. Nothing here knows what is changed.

Rejected: boxes beside the point where a box's diagonal begins to hold. That point takes a bisection for each box, and
the whole two to five times as many looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from coordinator.solve.repair.bisect import Found, OverError, between, first

Point = tuple[int, ...]
CLOSE = 0.02  # of a sum of logarithms: the product of factors is within 2 % of the least


@dataclass(frozen=True)
class Axis:
    """Values from `start`, as it is, to `utmost`; `near`: how close is close enough, by the value."""

    start: int
    utmost: int
    near: Callable[[int], int]


@dataclass(frozen=True)
class LeastSum:
    """A point that holds; `settled`: none that holds has a sum that is less by more than CLOSE."""

    point: Point
    settled: bool


def least_sum(
    holds: Callable[[Point], bool], size: Callable[[Point], float], axes: Sequence[Axis], below: float = float("inf")
) -> LeastSum | None:
    """The point of least size that holds. The point of all that is utmost is known to hold. None: none has a size
    `below` that. When `holds` raises OverError, the best so far, not settled."""
    start, utmost = tuple(axis.start for axis in axes), tuple(axis.utmost for axis in axes)
    best, best_size = utmost, size(utmost)
    boxes = [(size(start), 0, start, utmost)]
    count, seen = 0, _Seen(holds, axes)
    try:
        while boxes:
            least, _, low, high = heappop(boxes)
            if least >= min(best_size, below) - CLOSE:
                break
            if seen.holds(low):
                best, best_size = low, least
                break
            for one, other in _halves(low, high, axes, size):
                if other != high and not seen.holds(other):
                    continue
                if (reached := size(other)) < best_size:
                    best, best_size = other, reached
                count += 1
                heappush(boxes, (size(one), count, one, other))
    except OverError:
        return LeastSum(best, False)
    return LeastSum(best, True) if best_size < below else None


def tightened(holds: Callable[[Point], bool], axes: Sequence[Axis], point: Point) -> LeastSum:
    """Each value as near to its start as those of the others allow, one after the other. `point`: holds; `settled`:
    there was time for all of them."""
    for i, axis in enumerate(axes):

        def along(value: int, i: int = i, at: Point = point) -> bool:
            return holds((*at[:i], value, *at[i + 1 :]))

        try:
            found = Found(axis.start, True) if along(axis.start) else first(along, axis.start, point[i], axis.near)
        except OverError:
            return LeastSum(point, False)
        point = (*point[:i], found.value, *point[i + 1 :])
        if not found.settled:
            return LeastSum(point, False)
    return LeastSum(point, True)


class _Seen:
    """What is known of points, and what follows: more than what holds does, less than what does not does not."""

    def __init__(self, holds: Callable[[Point], bool], axes: Sequence[Axis]) -> None:
        self._look = holds
        self._signs = [1 if axis.utmost >= axis.start else -1 for axis in axes]
        self._good: list[Point] = []
        self._bad: list[Point] = []

    def holds(self, point: Point) -> bool:
        """Whether it does. Raises OverError."""
        changes = tuple(sign * value for sign, value in zip(self._signs, point, strict=True))
        if any(_within(good, changes) for good in self._good):
            return True
        if any(_within(changes, bad) for bad in self._bad):
            return False
        found = self._look(point)
        (self._good if found else self._bad).append(changes)
        return found


def _within(one: Point, other: Point) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _halves(
    low: Point, high: Point, axes: Sequence[Axis], size: Callable[[Point], float]
) -> Iterator[tuple[Point, Point]]:
    """A box split where it is longest; nothing where it is short everywhere."""
    least = size(low)
    wide = [
        (size((*low[:i], high[i], *low[i + 1 :])) - least, i)
        for i, axis in enumerate(axes)
        if abs(high[i] - low[i]) > max(1, axis.near(min(high[i], low[i])))
    ]
    if wide:
        _, i = max(wide)
        middle = between(low[i], high[i])
        yield low, (*high[:i], middle, *high[i + 1 :])
        yield (*low[:i], middle, *low[i + 1 :]), high


__all__ = ["Axis", "LeastSum", "least_sum", "tightened"]
