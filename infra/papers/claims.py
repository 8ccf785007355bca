"""A statement and what its check found: one way to state a band, one way to state a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from typing import Literal

Verdict = Literal["yes", "no", "not determined"]
SHARE = 0.9  # of the draws: a statement without a value has to hold in so many


@dataclass(frozen=True)
class Band:
    """One quantity over the draws, at least one: its median, and its 10th and 90th percentile."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Band:
        """A value per draw. Raises ValueError for none."""
        found = tuple(sorted(values))
        if not found:
            raise ValueError("a band needs a value")
        return cls(found)

    def quantile(self, share: float) -> float:
        """Linear between the order statistics: the least value at 0, the largest at 1."""
        position = share * (len(self.values) - 1)
        below = min(floor(position), len(self.values) - 2) if len(self.values) > 1 else 0
        low, high = self.values[below], self.values[min(below + 1, len(self.values) - 1)]
        return low + (high - low) * (position - below)

    @property
    def low(self) -> float:
        """The 10th percentile."""
        return self.quantile(0.1)

    @property
    def median(self) -> float:
        """The 50th percentile."""
        return self.quantile(0.5)

    @property
    def high(self) -> float:
        """The 90th percentile."""
        return self.quantile(0.9)

    def __str__(self) -> str:
        if self.values[0] == self.values[-1]:
            return number(self.median)
        return f"{number(self.median)} [{number(self.low)}, {number(self.high)}]"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, or one of ours about its experiment, and what its check found."""

    says: str
    verdict: Verdict
    found: str


def holds(says: str, cases: Iterable[bool], of: str = "draws", share: float = SHARE) -> Claim:
    """A statement without a value: `yes` where it holds in the share of the cases. Raises ValueError for no case."""
    every = list(cases)
    if not every:
        raise ValueError(f"{says}: nothing was checked")
    held = sum(every)
    needed = "" if held >= share * len(every) else f", {share:.0%} needed"
    return Claim(says, "no" if needed else "yes", f"in {held} of {len(every)} {of}{needed}")


def always(says: str, cases: Iterable[bool], of: str) -> Claim:
    """As `holds`, in all cases."""
    return holds(says, cases, of, 1)


def value(says: str, band: Band, printed: float, upto: float | None = None) -> Claim:
    """A printed value, or a range of values, and its place in the band: `yes` only inside."""
    last = printed if upto is None else upto
    place = (
        "inside"
        if band.low <= printed and last <= band.high
        else "above"
        if printed > band.high
        else "below"
        if last < band.low
        else "partly inside"
    )
    return Claim(says, "yes" if place == "inside" else "no", f"{place} {band}")


def undetermined(says: str, lacking: str) -> Claim:
    """A statement that rests on what nobody printed."""
    return Claim(says, "not determined", lacking)


def number(of: float) -> str:
    """For people: three significant digits, and all before the point."""
    return f"{of:.0f}" if abs(of) >= 100 else f"{of:.3g}"
