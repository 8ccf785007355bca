"""A lane between its left and its right bound: the middle line and the width."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import NamedTuple

from sim_vehicles.world.geometry import Point


class Middle(NamedTuple):
    """The line between two bounds, in their direction, and their mean distance in metres."""

    line: tuple[Point, ...]
    width_m: float


def middle(left: Sequence[Point], right: Sequence[Point]) -> Middle:
    """The mean of points of both bounds at equal shares of their arc lengths, at every corner of either.

    Each bound has at least one point, and both run in the driving direction.
    """
    one, other = shares(left), shares(right)
    cuts = sorted({*one, *other})
    pairs = [(_at(left, one, share), _at(right, other, share)) for share in cuts]
    line = tuple(((ax + bx) / 2, (ay + by) / 2) for (ax, ay), (bx, by) in pairs)
    widths = [hypot(bx - ax, by - ay) for (ax, ay), (bx, by) in pairs]
    steps = [b - a for a, b in pairwise(cuts)]
    if not steps:
        return Middle(line, widths[0])
    means = ((a + b) / 2 for a, b in pairwise(widths))
    return Middle(line, sum(step * mean for step, mean in zip(steps, means, strict=True)))


def shares(line: Sequence[Point]) -> list[float]:
    """By corner: which share of the arc length lies before it, from 0 to 1; all 0 where the length is 0."""
    ways = [0.0]
    for (ax, ay), (bx, by) in pairwise(line):
        ways.append(ways[-1] + hypot(bx - ax, by - ay))
    whole = ways[-1]
    return [way / whole for way in ways] if whole > 0.0 else [0.0] * len(ways)


def _at(line: Sequence[Point], corners: Sequence[float], share: float) -> Point:
    i = bisect_right(corners, share) - 1
    if i >= len(line) - 1:
        return line[-1]
    along = (share - corners[i]) / (corners[i + 1] - corners[i])
    (ax, ay), (bx, by) = line[i], line[i + 1]
    return ax + along * (bx - ax), ay + along * (by - ay)
