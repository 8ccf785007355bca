"""Rules 2 and 4 of [Q], written down as they stand: what the product's straight lines are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from coordinator.calculus.curves import Spanned, Time


@dataclass(frozen=True)
class FirstWithin:
    """Rule 2: the first result of a busy period within `wait`: beta(wait+) >= 1, and nothing is asked of the others."""

    wait: Time

    @property
    def rate(self) -> Fraction:
        """None is asked."""
        return Fraction(0)

    def inverse(self, k: int) -> Time:
        """The first only; callers take the largest time they know for infinity."""
        return self.wait if k == 1 else Fraction(10**30)


@dataclass(frozen=True)
class QueueBound:
    """Rule 4: at most `tasks` wait, [alpha(t) - M/size]^+: task k has to be done when task k + M/size may arrive."""

    arrivals: Spanned
    tasks: int

    @property
    def rate(self) -> Fraction:
        """The arrivals'."""
        return self.arrivals.rate

    def inverse(self, k: int) -> Time:
        """inf {x: alpha(x) >= k + M/size} = delta(k + M/size)."""
        return self.arrivals.span(k + self.tasks)
