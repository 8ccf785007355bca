"""How the tuples of a source arrive at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from protos.json_shape import omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstArrival:
    """So many at one instant, once a period."""

    kind: Literal["burst"] = "burst"
    burst: int
    period_ns: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JcpArrival:
    """One a period, by so much too early or too late, at least a gap apart. burst: the most at the least gap."""

    kind: Literal["jcp"] = "jcp"
    burst: int
    period_ns: int
    min_gap_ns: int
    early_ns: int
    late_ns: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateArrival:
    """burst + rate t in any t seconds."""

    kind: Literal["rate"] = "rate"
    rate_per_s: float
    burst: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceArrival:
    """As in a recording. counts, spans_ns: so many tuples span at least so long."""

    kind: Literal["trace"] = "trace"
    file: str
    sha256: str
    burst: int
    tuples: int
    span_ns: int
    counts: tuple[int, ...]
    spans_ns: tuple[int, ...]
    tolerance_ns: int = omitted(0)


Arrival = BurstArrival | JcpArrival | RateArrival | TraceArrival
