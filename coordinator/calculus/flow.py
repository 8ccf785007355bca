"""Curves made of curves: what a stream looks like after a unit, a link, a union, a join."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge

from coordinator.calculus.curves import LARGEST_POINTS, Curve, Staircase, Time, TooLongError
from coordinator.calculus.selectivity import Selectivity


@dataclass(frozen=True)
class Jittered:
    """A stream each tuple of which is delayed by something between two figures that differ by `jitter`.

    alpha_out(t) = alpha(t + d - best) of the theory: those that leave in a window of t arrived in one of t + jitter.
    """

    curve: Curve
    jitter: Time

    @property
    def rate(self) -> Fraction:
        """Unchanged."""
        return self.curve.rate

    def count(self, t: Time) -> int:
        """alpha(t + jitter)."""
        return self.curve.count(t + self.jitter)

    def points(self, limit: Time) -> Sequence[Time]:
        """Earlier by the jitter."""
        return [0, *(at - self.jitter for at in self.curve.points(limit + self.jitter) if at > self.jitter)]


def jittered(curve: Curve, jitter: Time) -> Curve:
    """`Jittered`, flat: jitters add up."""
    if not jitter:
        return curve
    if isinstance(curve, Jittered):
        return Jittered(curve.curve, curve.jitter + jitter)
    return Jittered(curve, jitter)


@dataclass(frozen=True)
class Spaced:
    """`first` at once, then one per `gap`: what one thread can turn out. floor(t / c_best) + 1 of the theory."""

    first: int
    gap: Time

    @property
    def rate(self) -> Fraction:
        """1 / gap."""
        return 1 / Fraction(self.gap)

    def count(self, t: Time) -> int:
        """first + floor(t / gap)."""
        return self.first + int(t // self.gap)

    def points(self, limit: Time) -> Sequence[Time]:
        """Multiples of the gap."""
        number = int(limit // self.gap) + 1
        if number > LARGEST_POINTS:
            raise TooLongError(f"more than {LARGEST_POINTS} completions in one busy period")
        return [i * self.gap for i in range(number)]


@dataclass(frozen=True)
class Selected:
    """What passes an operator."""

    curve: Curve
    selectivity: Selectivity

    @property
    def rate(self) -> Fraction:
        """Mean by the worst case."""
        return self.curve.rate * self.selectivity.rate

    def count(self, t: Time) -> int:
        """sigma(alpha(t))."""
        return self.selectivity(self.curve.count(t))

    def points(self, limit: Time) -> Sequence[Time]:
        """The input's."""
        return self.curve.points(limit)


def selected(curve: Curve, chain: Sequence[Selectivity]) -> Curve:
    """Through several operators, the first first."""
    for each in chain:
        curve = curve if each.pairs == ((1, 1),) else Selected(curve, each)
    return curve


@dataclass(frozen=True)
class Least:
    """Both bounds hold."""

    curves: tuple[Curve, ...]

    @property
    def rate(self) -> Fraction:
        """The least."""
        return min(curve.rate for curve in self.curves)

    def count(self, t: Time) -> int:
        """The least."""
        return min(curve.count(t) for curve in self.curves)

    def points(self, limit: Time) -> Sequence[Time]:
        """Of each curve until it reaches the least at the limit: from there on the others say what the least is."""
        most = self.count(limit)
        return list(merge(*(_until(curve, most, curve.points(limit)) for curve in reversed(self.curves))))


def _until(curve: Curve, most: int, points: Sequence[Time]) -> Sequence[Time]:
    """The points up to the first at which the curve is at `most`, or all."""
    return points[: bisect_left(points, most, key=curve.count) + 1]


@dataclass(frozen=True)
class Most:
    """One of the bounds holds, whichever."""

    curves: tuple[Curve, ...]

    @property
    def rate(self) -> Fraction:
        """The largest."""
        return max(curve.rate for curve in self.curves)

    def count(self, t: Time) -> int:
        """The largest."""
        return max(curve.count(t) for curve in self.curves)

    def points(self, limit: Time) -> Sequence[Time]:
        """All of them."""
        return list(merge(*(curve.points(limit) for curve in reversed(self.curves))))


@dataclass(frozen=True)
class Total:
    """Several streams as one."""

    curves: tuple[Curve, ...]

    @property
    def rate(self) -> Fraction:
        """The sum."""
        return sum((curve.rate for curve in self.curves), Fraction(0))

    def count(self, t: Time) -> int:
        """The sum."""
        return sum(curve.count(t) for curve in self.curves)

    def points(self, limit: Time) -> Sequence[Time]:
        """All of them."""
        return list(merge(*(curve.points(limit) for curve in reversed(self.curves))))


class Known:
    """A curve that remembers what it was asked: its steps up to the largest limit, and single counts beyond it.

    Streams share their beginnings; without this a row of diamonds would be worked out once per path. It never asks its
    own curve for more than it was asked: margins would multiply along the streams. So curves made of several ask the
    last ones first: one that rests on others asks these for longer windows. `asked`: the longest window so far.
    """

    __slots__ = ("asked", "beyond", "curve", "in_the_long_run", "stairs")

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.asked: Time = 0
        self.stairs = Staircase((0,), (curve.count(0),), 0)
        self.beyond: dict[Time, int] = {}
        self.in_the_long_run: Fraction | None = None

    @property
    def rate(self) -> Fraction:
        """Unchanged."""
        if self.in_the_long_run is None:
            self.in_the_long_run = self.curve.rate
        return self.in_the_long_run

    def count(self, t: Time) -> int:
        """Unchanged."""
        if t <= self.stairs.limit:
            return self.stairs.count(t)
        if t not in self.beyond:
            self.beyond[t] = self.curve.count(t)
            self.asked = max(self.asked, t)
        return self.beyond[t]

    def points(self, limit: Time) -> Sequence[Time]:
        """The steps themselves."""
        if limit > self.stairs.limit:
            self.asked = max(self.asked, limit)
            self.stairs = Staircase.of(self.curve, limit)
            self.beyond.clear()
        times = self.stairs.times
        return times[: bisect_right(times, limit)]


def least(curves: Sequence[Curve]) -> Curve:
    """`Least` of one or more."""
    return curves[0] if len(curves) == 1 else Least(tuple(curves))


def most(curves: Sequence[Curve]) -> Curve:
    """`Most` of one or more."""
    return curves[0] if len(curves) == 1 else Most(tuple(curves))


def total(curves: Sequence[Curve]) -> Curve:
    """`Total` of one or more."""
    return curves[0] if len(curves) == 1 else Total(tuple(curves))
