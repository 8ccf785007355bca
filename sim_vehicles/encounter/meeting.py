"""Whether, and when, the boxes of two moving vehicles touch, or how near they come: exact for tracks whose motion is
linear between their states, as `Track.at` has it.

The distance of two convex bodies cannot change by more than they move relative to one another, nor by more than a
corner moves when they turn. So an interval whose ends are farther apart than that cannot hold a contact, nor a
smaller distance than one already found; all others are halved (conservative advancement, after Mirtich 1996). And
while neither turns, the distance is a convex function of time, so three of its values bound it from below in between:
that is what makes passing alongside at a constant distance cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import hypot
from typing import NamedTuple

from sim_vehicles.world.geometry import box, gap
from sim_vehicles.world.motion import State, Track, wrap

CONTACT_S = 1e-4  # a contact is found to this instant
GAP_M = 5e-4  # a least gap to this length

Near = tuple[float, float]  # gap in metres, instant in seconds


class Meeting(NamedTuple):
    """contact_s: first instant of contact, None without one; gap_m: least distance, 0 with a contact, None where the
    two are never there together; least_s: when that is."""

    contact_s: float | None
    gap_m: float | None
    least_s: float | None


class _Stretch:
    """Both vehicles between two neighbouring instants of their records."""

    __slots__ = ("_a", "_b", "_ends", "from_s", "moved_m", "near_m", "turned_m", "until_s")

    def __init__(self, a: Track, b: Track, ends: tuple[State, State, State, State]) -> None:
        a0, a1, b0, b1 = ends
        self._a, self._b, self._ends = a, b, ends
        self.from_s, self.until_s = a0.t_s, a1.t_s
        reach_a, reach_b = hypot(a.length_m, a.width_m) / 2, hypot(b.length_m, b.width_m) / 2
        shift = hypot(a1.x_m - a0.x_m - b1.x_m + b0.x_m, a1.y_m - a0.y_m - b1.y_m + b0.y_m)
        turn_a, turn_b = wrap(a1.heading_rad - a0.heading_rad), wrap(b1.heading_rad - b0.heading_rad)
        self.turned_m = reach_a * abs(turn_a) + reach_b * abs(turn_b)
        self.moved_m = shift + self.turned_m
        self.near_m = hypot(a0.x_m - b0.x_m, a0.y_m - b0.y_m) - shift - reach_a - reach_b  # no gap here is smaller

    def gap_m(self, share: float) -> float:
        a0, a1, b0, b1 = self._ends
        return gap(_box(self._a, a0, a1, share), _box(self._b, b0, b1, share))

    def contact(self, low: float, low_m: float, high: float, high_m: float) -> float | None:
        """The first share in [low, high] where the gap is 0."""
        if low_m == 0:
            return low
        if low_m + high_m > self.moved_m * (high - low):
            return None
        if (high - low) * (self.until_s - self.from_s) <= CONTACT_S:
            return high if high_m == 0 else None
        middle = (low + high) / 2
        middle_m = self.gap_m(middle)
        left_m, right_m = self._floors(high - low, low_m, middle_m, high_m)
        early = None if left_m > 0 else self.contact(low, low_m, middle, middle_m)
        return early if early is not None or right_m > 0 else self.contact(middle, middle_m, high, high_m)

    def least(self, best: Near, low: float, low_m: float, high: float, high_m: float) -> Near:
        """The smaller of `best` (gap, instant) and what [low, high] holds."""
        for share, gap_m in ((low, low_m), (high, high_m)):
            if gap_m < best[0]:
                best = gap_m, self.from_s + share * (self.until_s - self.from_s)
        if (low_m + high_m - self.moved_m * (high - low)) / 2 >= best[0] - GAP_M:
            return best
        middle = (low + high) / 2
        middle_m = self.gap_m(middle)
        if middle_m < best[0]:
            best = middle_m, self.from_s + middle * (self.until_s - self.from_s)
        left_m, right_m = self._floors(high - low, low_m, middle_m, high_m)
        if left_m < best[0] - GAP_M:
            best = self.least(best, low, low_m, middle, middle_m)
        return self.least(best, middle, middle_m, high, high_m) if right_m < best[0] - GAP_M else best

    def _floors(self, share: float, low_m: float, middle_m: float, high_m: float) -> tuple[float, float]:
        """What the gap is at least in the first and in the second half of a part with these gaps at its beginning,
        middle and end: a convex function lies above the line through two of its points, outside of them. The gap is
        within `off_m` of the one with the headings of the middle, which is convex."""
        off_m = self.turned_m * share / 2
        least_m = middle_m - 2 * off_m
        return min(least_m, 2 * middle_m - high_m - 4 * off_m), min(least_m, 2 * middle_m - low_m - 4 * off_m)


def meet(a: Track, b: Track, from_s: float, until_s: float) -> Meeting:
    """How the boxes of a and b meet in [from_s, until_s] of their common time."""
    stretches = list(_stretches(a, b, from_s, until_s))
    for one in stretches:
        if one.near_m <= 0:
            share = one.contact(0.0, one.gap_m(0.0), 1.0, one.gap_m(1.0))
            if share is not None:
                at_s = one.from_s + share * (one.until_s - one.from_s)
                return Meeting(at_s, 0.0, at_s)
    best = (float("inf"), 0.0)
    for one in sorted(stretches, key=lambda each: each.near_m):
        if one.near_m >= best[0]:
            break
        best = one.least(best, 0.0, one.gap_m(0.0), 1.0, one.gap_m(1.0))
    return Meeting(None, best[0], best[1]) if stretches else Meeting(None, None, None)


def _stretches(a: Track, b: Track, from_s: float, until_s: float) -> Iterator[_Stretch]:
    recorded = {state.t_s for track in (a, b) for state in track.states if from_s < state.t_s < until_s}
    knots = ((t_s, a.at(t_s), b.at(t_s)) for t_s in sorted(recorded | {from_s, until_s}))
    for (t0, a0, b0), (t1, a1, b1) in pairwise(knots):
        if a0 is None or a1 is None or b0 is None or b1 is None:
            continue
        middle_s = (t0 + t1) / 2
        if a.at(middle_s) is not None and b.at(middle_s) is not None:  # else one of them has vanished in between
            yield _Stretch(a, b, (a0, a1, b0, b1))


def _box(track: Track, before: State, after: State, share: float) -> list[tuple[float, float]]:
    turn = wrap(after.heading_rad - before.heading_rad)
    return box(
        before.x_m + share * (after.x_m - before.x_m),
        before.y_m + share * (after.y_m - before.y_m),
        before.heading_rad + share * turn,
        track.length_m,
        track.width_m,
    )
