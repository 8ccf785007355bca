"""Aggregated counts behind the figures of overload, in plain Python; spark_counts.py is the same in columns.

Facts are summed by incarnation, kind and what they are about; overload.py says what the sums mean.
"""

from collections import defaultdict
from collections.abc import Iterable

from coordinator.report.counts import DURATION_LIMIT, AggregatedCount, Counts
from coordinator.report.ledger.balance_sheet import Row
from coordinator.report.ledger.latency_breakdown import duration
from coordinator.report.ledger.results import instant
from protos import records as rec
from protos.records import Ran, Record, Refused, Shed


def aggregate(rows: Iterable[Row], counts: Counts) -> None:
    """Sum up the records of the run's plans, facts among them, into `counts`."""
    sums: dict[tuple[int, int, int, int, int], AggregatedCount] = {}
    shed: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for incarnation, r in rows:
        if type(r) is Shed:
            shed[r.source, r.policy].add((r.epoch, r.seq))
        about = _about(r)
        if type(r) is Refused:
            _refused(sums, incarnation, r)
        elif about is not None:
            key, at_ns = (incarnation, *about), instant(r.at_ns)
            n, extent, first_ns, last_ns = sums.get(key, AggregatedCount(0, 0, at_ns, at_ns))
            n += not (type(r) is Ran and r.unfinished)
            sums[key] = AggregatedCount(n, extent + _extent(r), min(first_ns, at_ns), max(last_ns, at_ns))
    counts.aggregated = sums
    counts.shed_tuples = {key: len(found) for key, found in shed.items()}


def _refused(sums: dict[tuple[int, int, int, int, int], AggregatedCount], incarnation: int, r: Refused) -> None:
    """Tuples, how many are counted up to the last, and between which instants they originated."""
    count, before = max(0, min(DURATION_LIMIT, r.tuples)), min(DURATION_LIMIT, r.refused_before)
    first_ns, last_ns = origins(r)
    key = (incarnation, r.kind, r.source, r.reason, r.plan_epoch_low)
    n, upto, low_ns, high_ns = sums.get(key, AggregatedCount(0, 0, first_ns, last_ns))
    sums[key] = AggregatedCount(n + count, max(upto, before + count), min(low_ns, first_ns), max(high_ns, last_ns))


def origins(r: Refused) -> tuple[int, int]:
    """The interval that holds the origins of its tuples."""
    first_at_ns, last_at_ns = instant(r.first_at_ns), instant(r.at_ns)
    return instant(first_at_ns - instant(r.age_hi_ns)), instant(last_at_ns - instant(r.age_lo_ns))


def _about(r: Record) -> tuple[int, int, int, int] | None:
    """(kind, ref, word, cause), of a record that is summed."""
    if type(r) is rec.Admitted:
        return r.kind, r.source, 0, 0
    if type(r) is Ran:
        return r.kind, r.unit, 0, 0
    if type(r) is rec.Lost and r.in_unit:
        return r.kind, r.unit, 0, r.cause
    if type(r) is Shed:
        return r.kind, r.unit, r.policy, int(r.of_result)
    if type(r) is rec.Degraded:
        return r.kind, r.unit, r.operator, 0
    return (r.kind, r.operator, r.state, r.cause) if type(r) is rec.Window else None


def _extent(r: Record) -> int:
    """ns of a RAN; how many windows a WINDOW is about."""
    if type(r) is Ran:
        return duration(r.end_ns, r.start_ns)
    if type(r) is not rec.Window:
        return 0
    if r.state != rec.WINDOW_SKIPPED:
        return 1
    return max(0, min(DURATION_LIMIT, instant(r.last_number) - instant(r.seq) + 1))
