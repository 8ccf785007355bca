"""Arrivals of a source as query.yaml declares them: bursts, jittered periods, rates, recordings."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

from coordinator.spec.files import yaml_source
from coordinator.spec.files.query_file import ArrivalFile, SourceFile
from protos import digests
from protos.plan.arrivals import Arrival as PlanArrival
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival, TraceArrival


@dataclass(frozen=True)
class Arrival:
    """How tuples enter: `burst` of them at one instant at worst, `rate` tuples per ns on average; `written`: for
    plan.json."""

    burst: int
    rate: Fraction
    written: PlanArrival


NONE = Arrival(1, Fraction(0), RateArrival(rate_per_s=0, burst=1))  # of a file that is refused


def read(given: ArrivalFile, file: yaml_source.Source, keys: tuple[object, ...]) -> Arrival:
    """Burst and rate of each kind of arrival, for the costs per burst of [P] 5.2.2 (the input volume is fixed there).

    burst: as declared. jcp: L = floor(J / (T - D)) + 1 tuples, the longest run at the least gap ([Q] theorem 1).
    rate: its burst, 1 if none. trace: the largest count at one instant of the recording.
    """
    if given.jcp is not None:
        jcp = given.jcp
        burst = (jcp.early + jcp.late) // (jcp.period - jcp.min_gap) + 1
        written = JcpArrival(
            burst=burst, period_ns=jcp.period, min_gap_ns=jcp.min_gap, early_ns=jcp.early, late_ns=jcp.late
        )
        return Arrival(burst, Fraction(1, jcp.period), written)
    if given.rate is not None:
        burst = given.burst or 1
        rate = Fraction(str(given.rate)) / 10**9
        return Arrival(burst, rate, RateArrival(rate_per_s=given.rate, burst=burst))
    if given.trace is not None:
        return _recorded(given.trace, file, (*keys, "arrival", "trace"))
    assert given.period is not None  # the file's model has checked it
    burst = given.burst or 1
    return Arrival(burst, Fraction(burst, given.period), BurstArrival(burst=burst, period_ns=given.period))


def of_source(given: SourceFile, file: yaml_source.Source, keys: tuple[object, ...]) -> Arrival:
    """Of a source, with how late its tuples may be.

    A timer's are its ticks. A function is not called before the call before has ended, so n of its results in a row
    span n - 2 periods at least, however long calls take: that is a tuple a period, later by up to one.
    """
    if given.every is None:
        assert given.arrival is not None  # the file's model has checked it
        return tolerated(read(given.arrival, file, keys), given.tolerance)
    ticks = Arrival(1, Fraction(1, given.every), BurstArrival(burst=1, period_ns=given.every))
    late_ns = given.every if given.run else 0
    return tolerated(ticks, late_ns if given.tolerance is None else given.tolerance)


def tolerated(arrival: Arrival, tolerance_ns: int | None) -> Arrival:
    """With how late its tuples may be. Bursts are an ideal that no source keeps to the nanosecond; the other kinds say
    what they allow."""
    if tolerance_ns is None:
        tolerance_ns = arrival.written.period_ns // 10 if isinstance(arrival.written, BurstArrival) else 0
    return replace(arrival, written=replace(arrival.written, tolerance_ns=tolerance_ns))


def _recorded(name: str, file: yaml_source.Source, keys: tuple[object, ...]) -> Arrival:
    """A recording: one arrival instant in ns per line, not decreasing, `#` for comments; .gz is unpacked."""
    path = file.path.parent / name
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("ascii")
        instants = [int(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    except (OSError, ValueError, EOFError) as error:
        file.wrong(
            "unreadable_recording",
            keys,
            f"recording '{name}' cannot be read: {error}",
            "give a file with one instant in ns per line",
        )
        return NONE
    if len(instants) < 2 or instants != sorted(instants) or instants[0] == instants[-1]:
        file.wrong(
            "useless_recording",
            keys,
            f"recording '{name}' needs at least two instants, in ascending order",
            "correct the file",
        )
        return NONE
    from coordinator.calculus.curves import recorded_spans  # few queries have recordings

    burst, span_ns = max(Counter(instants).values()), instants[-1] - instants[0]
    counts, spans_ns = recorded_spans(instants)
    written = TraceArrival(
        file=name,
        sha256=digests.sha256(raw).hexdigest(),
        burst=burst,
        tuples=len(instants),
        span_ns=span_ns,
        counts=tuple(counts),
        spans_ns=tuple(spans_ns),
    )
    return Arrival(burst, Fraction(len(instants), span_ns), written)
