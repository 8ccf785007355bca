"""Counts that an engine of the report computes, plain or on Spark: integers only; `assembly` makes ratios of them."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from coordinator.report.facts.clock_intervals import RunClocks
from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.problems import Problem
from protos.records import POLICY_ARRIVALS, POLICY_SELECTIVITY

PROBLEMS_SHOWN = 10
QUANTILES = 200  # points of the latency distribution: k/200 for k = 1..200; p50, p95 and p99 are among them
INSTANT_LIMIT = 1 << 60  # instants are clamped to it; a latency bound of that size is no bound
DURATION_LIMIT = 1 << 50  # durations in the blame split are clamped to 0..this, so that damage cannot overflow


class Outcome(IntEnum):
    """How an obligation ended. The order is that of the report."""

    CONSUMED = 1
    FILTERED = 2
    DELIVERED = 3
    SENT = 4
    ABSORBED = 5
    MERGED = 6
    SHED = 7
    LOST = 8
    UNDECIDABLE = 9
    OPEN = 10


LOST_LINK, LOST_RESTART = -1, -2  # causes that are inferred, beside those of records.CAUSES
INFERRED = {LOST_LINK: "link", LOST_RESTART: "restart"}


class Rank(IntEnum):
    """What became of an expected result; of several answers for one key the least counts."""

    DELIVERED = 0
    UNDECIDABLE = 1
    LOST = 2
    SHED = 3
    POLICED = 4  # shed beyond what a source or an operator declared
    LOST_UNSURE = 5  # an operator on the way may have filtered it
    SHED_UNSURE = 6
    POLICED_UNSURE = 7
    MET = 8
    LATE = 9


POLICED = (POLICY_ARRIVALS, POLICY_SELECTIVITY)  # policies of SHED: a declaration did not hold


class Hop(IntEnum):
    """Where a delivered result's latency was spent. ref: a unit, or for LINK the receiving node."""

    AGE = 0
    QUEUE = 1
    RUN = 2
    LINK = 3
    REST = 4


class StageTime(NamedTuple):
    """Sums over delivered results, and over those at or beyond p99."""

    total_ns: int
    tail_ns: int


class Above(NamedTuple):
    """Delivered results that took longer than their plan's bound for certain: how many, and by how much at most."""

    n: int
    most_ns: int


class AggregatedCount(NamedTuple):
    """Records that are about one thing: how many ended something; their extent, ns that they ran (of WINDOW: windows
    that they are about); and the first and last instant. Of REFUSED: tuples, how many are counted up to the last, and
    the interval that holds their origins."""

    n: int
    extent: int
    first_ns: int
    last_ns: int


TOLD, BEGUN, ADMITTED = range(3)  # what a Span is of


class Span(NamedTuple):
    """Of one incarnation and source, ns: between which instants its records lie, and what they are about.

    TOLD: windows, from the start of the first to the end of the last; BEGUN: those that were on their way as the
    incarnation began; ADMITTED: a source's tuples, least and greatest lower bound of an origin.
    """

    first_at_ns: int
    last_at_ns: int
    low_ns: int
    high_ns: int


class Seen(NamedTuple):
    """Numbers of a source that any record names: the least and the greatest."""

    first: int
    last: int


class Came(NamedTuple):
    """Results of windows at one incarnation: the least and the greatest lower bound of their origins, ns there."""

    first_ns: int
    last_ns: int


Number = tuple[int, int]  # of a source's tuple: epoch and seq, in the order in which they were admitted


class Extent(NamedTuple):
    """What of a source is behind a result. oldest_lo_ns: of all that may be behind it, the least lower bound of an
    origin; oldest_hi_ns: of all that is for certain, the least upper bound; newest, and newest_sure, likewise. Instants
    of the source's node, clamped; None: nothing is, for certain."""

    oldest_lo_ns: int
    oldest_hi_ns: int | None
    newest: Number
    newest_sure: Number | None


@dataclass(slots=True)
class Behind:
    """A delivered result of an output that asks for the age of its data. least_ns, most_ns: its latency; at_ns: on its
    node's clock. unread: whether an instance on its way read a side input without a value. extents: by source, as the
    last plan names it; its own tuple's origin is in the latency alone."""

    output: int
    source: int
    epoch: int
    seq: int
    ordinal: int
    at_ns: int
    least_ns: int
    most_ns: int
    unread: bool
    extents: dict[int, Extent] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, ...]:
        """Which result it is."""
        return self.output, self.source, self.epoch, self.seq, self.ordinal


class Origin(NamedTuple):
    """Of an admitted tuple: its number, and where its origin lies, on its node's clock, clamped."""

    number: Number
    lo_ns: int
    hi_ns: int


@dataclass
class Counts:
    """Everything an engine computes. Output ids, unit ids and node numbers are the plan's."""

    traces: list[Trace] = field(default_factory=list)
    admitted: int = 0
    accounted: int = 0
    obligations: int = 0
    outcomes: dict[tuple[int, int], int] = field(default_factory=dict)  # (Outcome, cause or policy, else 0) -> n
    problems: list[Problem] = field(default_factory=list)  # the first PROBLEMS_SHOWN, sorted
    problem_count: int = 0
    contradictions: dict[tuple[int, int, int], int] = field(default_factory=dict)  # `problems.grouped` -> how many
    results: dict[tuple[int, int], int] = field(default_factory=dict)  # (output, Rank) -> n
    delivered: dict[int, int] = field(default_factory=dict)
    above: dict[int, Above] = field(default_factory=dict)  # output -> results beyond the bound, where there are any
    ranks: dict[int, dict[int, int]] = field(default_factory=dict)  # output -> rank from 1 -> latency upper bound
    broken_down: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # output -> results broken down, in their tail
    latency: dict[int, StageTime] = field(default_factory=dict)
    stage_times: dict[tuple[int, int, int], StageTime] = field(default_factory=dict)  # (output, Hop, ref)
    # (incarnation, kind, ref, word, cause): of ADMITTED and REFUSED the source, of RAN, SHED, LOST and DEGRADED the
    # unit, of WINDOW the operator; word: policy, operator of DEGRADED, state of WINDOW, reason of REFUSED; cause of
    # WINDOW, LOST; 1 for a result SHED; plan epoch of REFUSED, which are counted anew as a plan comes
    aggregated: dict[tuple[int, int, int, int, int], AggregatedCount] = field(default_factory=dict)
    shed_tuples: dict[tuple[int, int], int] = field(default_factory=dict)  # (source, policy) -> tuples
    window_answers: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # (output, source) -> n, met
    idle: dict[int, int] = field(default_factory=dict)  # source of windows -> windows that nothing was fed into
    idle_met: dict[int, int] = field(default_factory=dict)  # output -> results of those that were met
    intervals: dict[tuple[int, int, int], Span] = field(
        default_factory=dict
    )  # (incarnation, source, what) -> what it covers
    # Of sources, and windows, whose node lacks records. epoch: 0 for windows
    seen: dict[tuple[int, int], Seen] = field(default_factory=dict)  # (source, epoch)
    known: dict[tuple[int, int, int], int] = field(default_factory=dict)  # (output, source, epoch) -> numbers
    came: dict[tuple[int, int], Came] = field(default_factory=dict)  # (incarnation, source of windows)
    filtering: frozenset[tuple[int, int]] = frozenset()  # (unit, exit) pairs that filtered a tuple in this run
    # Where an output asks for the age of its data, or for their reaction
    clocks: RunClocks | None = None
    behind: list[Behind] = field(default_factory=list)
    origins: dict[int, list[Origin]] = field(default_factory=dict)  # by source, as the last plan names it


def nearest_rank(n: int, k: int, of: int = QUANTILES) -> int:
    """The rank, from 1, of the k/of quantile of n values (nearest rank: the least value that k/of do not exceed)."""
    return max(1, -(-k * n // of))
