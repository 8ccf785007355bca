"""The latency of a result and its verdict: the one rule for one result at a time.

An origin on another machine is known as an interval of the own clock, so a latency is one as well. The record of a
result (`protos.records.Output`), the plain report, its drawings and the story of a run take their latencies and
verdicts from here. Two places have the rule in another form on purpose: Spark computes it in columns, as a second
opinion on reports, and an agent's delivery path subtracts and compares by itself, since a call per result is dear.
"""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """Whether a result that was delivered kept its deadline."""

    MET = "met"
    LATE = "late"
    UNDECIDABLE = "undecidable"


def most_ns(at_ns: int, origin_lo_ns: int) -> int:
    """The most that a result took which was delivered at `at_ns`: as if its oldest tuple were from the lower end."""
    return at_ns - origin_lo_ns


def least_ns(at_ns: int, origin_hi_ns: int) -> int:
    """The least that it took: as if that tuple were from the upper end."""
    return at_ns - origin_hi_ns


def verdict(most_ns: int, least_ns: int, deadline_ns: int) -> Verdict:
    """Met where even the most that it took is within the deadline, late where even the least is beyond it."""
    if most_ns <= deadline_ns:
        return Verdict.MET
    return Verdict.LATE if least_ns > deadline_ns else Verdict.UNDECIDABLE


class Latency(NamedTuple):
    """Between its bounds [ns]. They compare as a tuple: the least of two is the one that is bounded closer to zero."""

    most_ns: int
    least_ns: int

    @classmethod
    def between(cls, origin_lo_ns: int, origin_hi_ns: int, at_ns: int) -> "Latency":
        """Of a result that was delivered at `at_ns` and whose oldest tuple is from within the two instants."""
        return cls(most_ns(at_ns, origin_lo_ns), least_ns(at_ns, origin_hi_ns))

    @property
    def middle_ns(self) -> int:
        """As if the origin were in the middle of its interval, rounded down: for drawings, never for a verdict."""
        return -(-(self.most_ns + self.least_ns) // 2)

    @property
    def uncertain_ns(self) -> int:
        """How far the bounds are from the middle, rounded down."""
        return (self.most_ns - self.least_ns) // 2

    def verdict(self, deadline_ns: int) -> Verdict:
        """Against a deadline [ns]."""
        return verdict(self.most_ns, self.least_ns, deadline_ns)
