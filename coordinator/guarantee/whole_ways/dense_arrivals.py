"""How near to a tuple those just before it come, where they come as densely as their curve has it.

Found from the curve alone and up to fixed numbers, so that it is the same however far the curve was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.calculus.curves import Curve, Staircase, Time, TooLongError
from coordinator.calculus.demand import Steps
from coordinator.calculus.flow import Known

MOST_BEFORE = 64  # tuples before one whose instants are carried
FARTHEST = 1 << 50  # ns
Came = tuple[Time, ...]


def dense(curve: Curve) -> Came:
    """Latest instants of a tuple, 0, and of those before it."""
    farthest: Time = 1
    while _own(curve).count(farthest) < MOST_BEFORE and farthest < FARTHEST:
        farthest *= 2
    return dense_within(curve, farthest)


def dense_within(curve: Curve, farthest: Time) -> Came:
    """The same, of what came before that as if it came then."""
    try:
        stairs = Staircase.of(_own(curve), farthest)
    except TooLongError:
        return (0,) * MOST_BEFORE
    return _before(stairs.times, stairs.counts, farthest)


def dense_releases(steps: Steps, busy: Time) -> Came:
    """The same of what releases a unit, as far as its node's busy period is long."""
    return _before(steps.times, steps.counts, busy)


def _own(curve: Curve) -> Curve:
    """What remembers how far it was asked is not to remember this."""
    return curve.curve if isinstance(curve, Known) else curve


def _before(times: Sequence[Time], counts: Sequence[int], farthest: Time) -> Came:
    found: list[Time] = []
    for at, count in zip(times, counts, strict=True):
        found += [-at] * (min(count, MOST_BEFORE) - len(found))
    return tuple(found + [-farthest] * (MOST_BEFORE - len(found)))


__all__ = ["MOST_BEFORE", "Came", "dense", "dense_releases", "dense_within"]
