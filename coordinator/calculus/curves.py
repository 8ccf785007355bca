"""Arrival curves in the event domain: how many tuples can fall into a window of time, exactly.

[Q] definition 6 bounds R(t) - R(s) by alpha(t - s) over half-open windows. Here a curve says `count(t)`, the most
tuples in a *closed* window of length t, which is alpha's right limit, so a burst at one instant is count(0);
`alpha(t)` is the printed form. Where a curve knows the least time span of n tuples it says `span(n)` (delta in theory
of events): count(t) = max {n: span(n) <= t}. Time is in whole nanoseconds; the paper's examples use any exact unit
(Fraction).

`points(limit)` are all places in [0, limit] where count can step: tests need look nowhere else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import ceil, floor
from typing import Protocol

from coordinator.errors import MistakeError

Time = int | Fraction
LARGEST_POINTS = 50_000


class TooLongError(ValueError):
    """More steps than a bound is searched through: the node is so full that its busy period does not end soon."""


class Curve(Protocol):
    """An arrival curve."""

    @property
    def rate(self) -> Fraction:
        """Tuples per unit of time in the long run, at most."""

    def count(self, t: Time) -> int:
        """The most tuples in a closed window of length t >= 0."""

    def points(self, limit: Time) -> Sequence[Time]:
        """A superset of the t in [0, limit] where count steps; 0 is one. Raises TooLongError."""


class Spanned:
    """A curve by its spans: `span(n)` does not decrease, `count` is its inverse."""

    rate: Fraction

    @property
    def burst(self) -> Fraction:
        """sigma with count(t) <= sigma + rate t for every t."""
        raise NotImplementedError

    def span(self, n: int) -> Time:
        """The least time between the first and the last of n >= 1 tuples in a row."""
        raise NotImplementedError

    def count(self, t: Time) -> int:
        """The most tuples in a closed window of length t."""
        raise NotImplementedError

    def alpha(self, t: Time) -> int:
        """The printed curve, over half-open windows: tuples with span below t; alpha(0) = 0."""
        if t <= 0:
            return 0
        n = self.count(t)
        while n and self.span(n) >= t:
            n -= 1
        return n

    def points(self, limit: Time) -> Sequence[Time]:
        """Every step: a span is where one more tuple fits."""
        found: list[Time] = []
        n = 1
        while (at := self.span(n)) <= limit:
            found.append(at)
            n = self.count(at) + 1
            if len(found) > LARGEST_POINTS:
                raise TooLongError(f"more than {LARGEST_POINTS} arrivals in one busy period")
        return found


@dataclass(frozen=True)
class Jcp(Spanned):
    """[Q] theorem 1: period T, least gap D, jitter J = tau + tau' (early and late).

    delta(n) = max(0, (n-1) D, (n-1) T - J), so alpha(t) = min(ceil(t/D), ceil((t+J)/T)). Printed by cases at K D with a
    ceiling in K; the minimum of both is the same where K = floor(J/(T-D)) and needs no case.
    """

    period: Time
    gap: Time
    jitter: Time

    def __post_init__(self) -> None:
        if not 0 <= self.gap < self.period:
            raise MistakeError(
                "gap_above_period", f"a least gap of {self.gap} contradicts a period of {self.period}: D < T is needed"
            )
        if self.jitter < 0:
            raise MistakeError("negative", f"a jitter of {self.jitter} is negative")

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """1/T."""
        return 1 / Fraction(self.period)

    @property
    def burst(self) -> Fraction:
        """1 + J/T."""
        return 1 + self.jitter / Fraction(self.period)

    def span(self, n: int) -> Time:
        """delta(n)."""
        return max(0, (n - 1) * self.gap, (n - 1) * self.period - self.jitter)

    def count(self, t: Time) -> int:
        """floor instead of ceil: closed windows."""
        by_period = int((t + self.jitter) // self.period) + 1
        return min(by_period, int(t // self.gap) + 1) if self.gap else by_period


@dataclass(frozen=True)
class Bursts(Spanned):
    """`size` tuples at one instant, once a period; also: at most `size` in any half-open window of a period."""

    size: int
    period: Time

    def __post_init__(self) -> None:
        if self.size < 1 or self.period <= 0:
            raise MistakeError(
                "not_above_zero", f"a burst of {self.size} every {self.period} is none; both have to be above 0"
            )

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """size / period."""
        return self.size / Fraction(self.period)

    @property
    def burst(self) -> Fraction:
        """A whole one."""
        return Fraction(self.size)

    def span(self, n: int) -> Time:
        """(number of bursts - 1) periods."""
        return (n - 1) // self.size * self.period

    def count(self, t: Time) -> int:
        """A burst at either end of the window."""
        return self.size * (int(t // self.period) + 1)


@dataclass(frozen=True)
class RateBurst(Spanned):
    """At most size + rate t tuples in any window of length t (sigma-rho); size >= 1."""

    size: int
    rate: Fraction
    whole: bool = True  # instants are whole numbers of the unit of time

    def __post_init__(self) -> None:
        if self.size < 1 or self.rate <= 0:
            raise MistakeError(
                "not_above_zero", f"a burst of {self.size} at rate {self.rate} is no stream; burst >= 1, rate > 0"
            )

    @property
    def burst(self) -> Fraction:
        """As given."""
        return Fraction(self.size)

    def span(self, n: int) -> Time:
        """(n - size) / rate, on the next whole instant."""
        exact = max(Fraction(0), (n - self.size) / self.rate)
        return ceil(exact) if self.whole else exact

    def count(self, t: Time) -> int:
        """floor(size + rate t)."""
        return self.size + floor(self.rate * t)


@dataclass(frozen=True)
class Recorded(Spanned):
    """From a recording: `spans[i]` is the least span of counts[i] tuples in a row anywhere in it; counts from 1.

    Beyond and between the given counts the spans follow by superadditivity: m gaps and k gaps span at least the sum.
    So this says what the recording says of any stretch, and of a longer stream that does nothing denser.
    """

    counts: tuple[int, ...]
    spans: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.counts) < 2 or self.counts[0] != 1 or self.spans[-1] <= 0:
            raise MistakeError("unusable_recording", "a recording needs at least two instants that differ")

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        """The longest stretch's."""
        return Fraction(self.counts[-1] - 1, self.spans[-1])

    @property
    def burst(self) -> Fraction:
        """The whole recording at once."""
        return Fraction(self.counts[-1])

    def span(self, n: int) -> Time:
        """Whole copies of the longest stretch, and the rest's span."""
        copies, gaps = divmod(n - 1, self.counts[-1] - 1)
        return copies * self.spans[-1] + self.spans[bisect_right(self.counts, gaps + 1) - 1]

    def count(self, t: Time) -> int:
        """The last count whose span is within t."""
        copies = int(t // self.spans[-1])
        left = t - copies * self.spans[-1]
        index = bisect_right(self.spans, left)  # the first span that is beyond what is left
        held = self.counts[index] - 1 if index < len(self.counts) else self.counts[-1]
        return copies * (self.counts[-1] - 1) + held


def recorded_spans(instants: Sequence[int], most: int = 256) -> tuple[list[int], list[int]]:
    """(counts, spans) of a recording, ascending instants: every count up to 64, then ever fewer, about `most` in
    all."""
    length, counts, n = len(instants), [], 1
    while n < length:
        counts.append(n)
        n = n + 1 if n < 64 else max(n + 1, n * 21 // 20)
        if len(counts) > most:
            n = length
    counts.append(length)
    return counts, [min(instants[i + n - 1] - instants[i] for i in range(length - n + 1)) for n in counts]


@dataclass(frozen=True)
class Staircase:
    """A curve written out up to `limit`, for the many looks that a test takes. Beyond it: not asked."""

    times: tuple[Time, ...]
    counts: tuple[int, ...]
    limit: Time

    @classmethod
    def of(cls, curve: Curve, limit: Time) -> Staircase:
        """Raises TooLongError."""
        times = sorted(set(chain([0], curve.points(limit))))
        counts = [curve.count(at) for at in times]
        kept = [i for i in range(len(times)) if not i or counts[i] > counts[i - 1]]
        return cls(tuple(times[i] for i in kept), tuple(counts[i] for i in kept), limit)

    def count(self, t: Time) -> int:
        """The most tuples in a closed window of length t; 0 for t < 0."""
        assert t <= self.limit
        return self.counts[bisect_right(self.times, t) - 1] if t >= 0 else 0

    def span(self, n: int) -> Time | None:
        """The least span of n tuples, None beyond the limit."""
        index = bisect_left(self.counts, n)
        return self.times[index] if index < len(self.times) else None
