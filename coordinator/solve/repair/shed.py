"""Shedding at a source ([Q] 4.4): every n-th tuple is kept, or in general a share rho of them, evenly.

A shedder that keeps tuple i where floor(i rho) steps keeps at most ceil(rho m) of any m in a row. So what is kept has
the curve ceil(rho alpha), and k kept ones in a row span at least what floor((k - 1) / rho) + 1 tuples span. The
declarations below bound that curve from above, each in its own kind.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from coordinator.calculus.curves import Recorded
from coordinator.solve.repair.repair import Edit
from coordinator.spec.arrivals import Arrival
from coordinator.units import exact
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival, TraceArrival

LEAST = 100  # at least every hundredth tuple, or burst, is kept


def share(arrival: Arrival, index: int) -> Fraction:
    """The index-th share worth a look, from 0: 1, falling: by single tuples of a declared burst and then by whole
    bursts of one; else by hundredths."""
    if not isinstance(arrival.written, BurstArrival):
        return Fraction(100 - index, 100)
    if index < arrival.burst:
        return Fraction(arrival.burst - index, arrival.burst)
    return Fraction(1, arrival.burst * (index - arrival.burst + 2))


def last(arrival: Arrival) -> int:
    """The index of the smallest share worth a look."""
    return arrival.burst + LEAST - 2 if isinstance(arrival.written, BurstArrival) else 99


def half(arrival: Arrival) -> int:
    """The index of about half of it."""
    return arrival.burst // 2 if isinstance(arrival.written, BurstArrival) else 50


def thinned(arrival: Arrival, rho: Fraction) -> Arrival:
    """What is left of it, 0 < rho <= 1, as a declaration."""
    if rho == 1:
        return arrival
    written = arrival.written
    match written:
        case BurstArrival():
            return _burst(written, rho)
        case JcpArrival():
            return _jcp(written, rho)
        case RateArrival():
            # floor(sigma + r t) tuples come in a closed window; at most ceil(rho n) <= rho n + 1 - 1/q are kept of n
            burst = ceil(rho * arrival.burst + 1 - Fraction(1, rho.denominator))
            per_s = ceil(Fraction(str(written.rate_per_s)) * rho * 10**6) / 10**6
            return Arrival(burst, Fraction(str(per_s)) / 10**9, replace(written, rate_per_s=per_s, burst=burst))
        case TraceArrival():
            return _recorded(written, rho)


def _burst(written: BurstArrival, rho: Fraction) -> Arrival:
    """ceil(rho burst) per period; below one of a burst, one of every so many periods."""
    kept = rho * written.burst
    burst, period_ns = ceil(kept), written.period_ns * (floor(1 / kept) if kept < 1 else 1)
    return Arrival(burst, Fraction(burst, period_ns), replace(written, burst=burst, period_ns=period_ns))


def _jcp(written: JcpArrival, rho: Fraction) -> Arrival:
    """Exact where every n-th is kept: (n T, n D, J). Else k - 1 gaps of what is kept span floor((k - 1) / rho) of the
    stream's, which is at least (k - 1) / rho - (1 - 1/p) of them: jitter for the period."""
    period_ns = floor(written.period_ns / rho)
    gap_ns = min(written.min_gap_ns * floor(1 / rho), period_ns - 1)
    late_ns = written.late_ns + ceil(written.period_ns * (1 - Fraction(1, rho.numerator)))
    burst = (written.early_ns + late_ns) // (period_ns - gap_ns) + 1
    changed = replace(written, burst=burst, period_ns=period_ns, min_gap_ns=gap_ns, late_ns=late_ns)
    return Arrival(burst, Fraction(1, period_ns), changed)


def _recorded(written: TraceArrival, rho: Fraction) -> Arrival:
    """Spans of what is kept, from the recording's."""
    curve = Recorded(written.counts, written.spans_ns)
    tuples = max(2, ceil(rho * written.tuples))
    counts = tuple(sorted({1, 2, tuples, *(ceil(rho * count) for count in written.counts)}))
    spans_ns = tuple(int(curve.span(floor((count - 1) / rho) + 1)) for count in counts)
    burst = ceil(rho * written.burst)
    changed = replace(written, burst=burst, tuples=tuples, counts=counts, spans_ns=spans_ns)
    return Arrival(burst, Fraction(tuples, written.span_ns), changed)


FIELDS = {
    "burst": {"burst": "arrival.burst", "period_ns": "arrival.period"},
    "jcp": {"period_ns": "arrival.jcp.period", "min_gap_ns": "arrival.jcp.min_gap", "late_ns": "arrival.jcp.late"},
    "rate": {"rate_per_s": "arrival.rate", "burst": "arrival.burst"},
}


def edits(source: str, before: Arrival, after: Arrival) -> tuple[Edit, ...]:
    """The keys of the file that declare it; none for a recording."""
    written = after.written
    found = []
    for key, field in FIELDS.get(written.kind, {}).items():
        was, now = getattr(before.written, key), getattr(written, key)
        if was != now:
            found.append(Edit("sources", source, field, exact(now) if key.endswith("_ns") else str(now)))
    if written.tolerance_ns and written.kind == "burst" and any(edit.field.endswith("period") for edit in found):
        found.append(
            Edit("sources", source, "tolerance", exact(written.tolerance_ns))
        )  # else it would be of the longer period
    return tuple(found)
