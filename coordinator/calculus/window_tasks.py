"""Windows as streams of tasks ([Q] 2.2): one task per window, when it ends; what it costs depends on what is in it.

Printed are alpha/H and t/H, which most traces violate: a stretch may begin and end just at the end of a window, so both
are rounded up. A task costs c0 + c alpha(Z), a window of length Z being half-open.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from coordinator.calculus.curves import Spanned, Time
from coordinator.calculus.service import Service
from coordinator.calculus.theorems import QosQuery
from coordinator.errors import MistakeError


@dataclass(frozen=True)
class TimeWindows(Spanned):
    """One every `hop` of time: alpha_W(t) = ceil(t/H)."""

    hop: Time

    def __post_init__(self) -> None:
        if self.hop <= 0:
            raise MistakeError("not_above_zero", f"a hop of {self.hop} is none")

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """1/H."""
        return 1 / Fraction(self.hop)

    @property
    def burst(self) -> Fraction:
        """One."""
        return Fraction(1)

    def span(self, n: int) -> Time:
        """(n - 1) H."""
        return (n - 1) * self.hop

    def count(self, t: Time) -> int:
        """One at either end."""
        return int(t // self.hop) + 1


@dataclass(frozen=True)
class CountWindows(Spanned):
    """One every `hop` tuples: alpha_W(t) = ceil(alpha(t) / H)."""

    tuples: Spanned
    hop: int

    def __post_init__(self) -> None:
        if self.hop < 1:
            raise MistakeError("not_above_zero", f"a hop of {self.hop} tuples is none")

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """The tuples' / H."""
        return self.tuples.rate / self.hop

    @property
    def burst(self) -> Fraction:
        """ceil((sigma + rho t) / H) is at most a whole window more."""
        return self.tuples.burst / self.hop + 1

    def span(self, n: int) -> Time:
        """From the tuple that ends the first to the one that ends the last: (n - 1) H tuples later."""
        return self.tuples.span((n - 1) * self.hop + 1)

    def count(self, t: Time) -> int:
        """ceil(alpha / H)."""
        return -(-self.tuples.count(t) // self.hop)


@dataclass(frozen=True)
class WindowCost:
    """`fixed` (c0) per window and `each` (c) per tuple in it."""

    fixed: Time
    each: Time

    def __post_init__(self) -> None:
        if self.fixed < 0 or self.each < 0:
            raise MistakeError("negative", f"a window that costs {self.fixed} and {self.each} per tuple is none")

    def of(self, tuples: int) -> Time:
        """Of a window with that many tuples."""
        return self.fixed + self.each * tuples


def windows_by_time(
    name: str, tuples: Spanned, length: Time, hop: Time, cost: WindowCost, service: Service
) -> QosQuery:
    """Windows of that length, one every hop: alpha(Z) tuples in each, at most."""
    if length <= 0:
        raise MistakeError("not_above_zero", f"a window of {length} is none")
    return QosQuery(name, TimeWindows(hop), service, cost.of(tuples.alpha(length)))


def windows_by_count(name: str, tuples: Spanned, size: int, hop: int, cost: WindowCost, service: Service) -> QosQuery:
    """Windows of so many tuples, one every `hop` tuples."""
    if size < 1:
        raise MistakeError("not_above_zero", f"a window of {size} tuples is none")
    return QosQuery(name, CountWindows(tuples, hop), service, cost.of(size))
