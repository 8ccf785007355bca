"""Service curves ([Q] rules 1 to 5) and QoS deadlines (theorem 2), in the event domain.

A service curve is used through beta^-1(k) = inf {x: beta(x) >= k} only. Task number n, having arrived at a_n, is due at
D_n = max over j <= n of (a_j + beta^-1(n - j + 1)), which is theorem 2's inf over s in [0, a_n] turned over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from coordinator.calculus.curves import Time
from coordinator.errors import MistakeError


class Service(Protocol):
    """A service curve."""

    @property
    def rate(self) -> Fraction | None:
        """Tasks per unit of time in the long run; None: as many as arrive."""

    def inverse(self, k: int) -> Time:
        """beta^-1(k), k >= 1."""


@dataclass(frozen=True)
class DelayBound:
    """Rule 1: within `delay` of the arrival. beta is infinite after it, so beta^-1(k) = delay."""

    delay: Time

    @property
    def rate(self) -> None:
        """As many as arrive."""
        return None

    def inverse(self, k: int) -> Time:
        """The delay, for every k."""
        return self.delay


@dataclass(frozen=True)
class RateLatency:
    """Rule 3: `per` tasks per unit of time after `latency`. The first deadline is latency + 1/per, not latency.

    Rule 2 (the first result within L) is printed as max {t: beta(t) = 0} <= L; that needs beta(L+) >= 1.
    """

    per: Fraction
    latency: Time

    def __post_init__(self) -> None:
        if self.per <= 0 or self.latency < 0:
            raise MistakeError("not_above_zero", f"a rate of {self.per} after {self.latency} is no service")

    @property
    def rate(self) -> Fraction:
        """As given."""
        return Fraction(self.per)

    def inverse(self, k: int) -> Time:
        """L + k / P."""
        return self.latency + k / Fraction(self.per)


def deadlines(arrivals: Iterable[Time], service: Service) -> Iterator[Time]:
    """Theorem 2: D_n of tasks that arrive at those instants."""
    if isinstance(service, DelayBound):  # D_n = a_n + D
        yield from (at + service.delay for at in arrivals)
    elif isinstance(service, RateLatency):  # D_n = max(a_n + L, D_{n-1}) + 1/P
        last: Time | None = None
        every = 1 / Fraction(service.per)
        step: Time = every.numerator if every.denominator == 1 else every  # whole numbers stay whole: sorted sooner
        for at in arrivals:
            ready = at + service.latency
            last = (ready if last is None or ready > last else last) + step
            yield last
    else:
        seen: list[Time] = []
        for at in arrivals:
            seen.append(at)
            yield max(first + service.inverse(len(seen) - j) for j, first in enumerate(seen))


def composite(arrivals: Sequence[Time], services: Sequence[Service]) -> Iterator[Time]:
    """Rule 5: several at once. The printed supremum is sound but loose; each task is due at the least of its
    deadlines."""
    return (min(each) for each in zip(*(deadlines(arrivals, service) for service in services), strict=True))
