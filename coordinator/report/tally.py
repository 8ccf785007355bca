"""What the figures of overload are made from, in plain Python; spark_tally.py is the same in columns.

Facts are summed by incarnation, kind and what they are about; overload.py says what the sums mean.
"""

from collections import defaultdict
from collections.abc import Iterable

from coordinator.report.blame import duration
from coordinator.report.books import Row
from coordinator.report.ledger import of_result
from coordinator.report.results import instant
from coordinator.report.shape import DURATION_LIMIT, Counts, Tally
from protos import records as rec
from protos.records import FLAG, NO_REF, PLAN_EPOCH_MASK, Record

SIGN = 1 << 63


def tally(rows: Iterable[Row], counts: Counts) -> None:
    """Sum up the records of the run's plans, facts among them, into `counts`."""
    sums: dict[tuple[int, int, int, int, int], Tally] = {}
    shed: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for incarnation, r in rows:
        if r.kind == rec.SHED:
            shed[r.source, r.w1].add((r.epoch, r.seq))
        about = _about(r)
        if r.kind == rec.REFUSED:
            _refused(sums, incarnation, r)
        elif about is not None:
            key, at_ns = (incarnation, *about), instant(r.w0)
            n, spent, first_ns, last_ns = sums.get(key, Tally(0, 0, at_ns, at_ns))
            n += not (r.kind == rec.RAN and r.flags & FLAG)
            sums[key] = Tally(n, spent + _spent(r), min(first_ns, at_ns), max(last_ns, at_ns))
    counts.tallies = sums
    counts.shed_tuples = {key: len(found) for key, found in shed.items()}


def _refused(sums: dict[tuple[int, int, int, int, int], Tally], incarnation: int, r: Record) -> None:
    """Tuples, how many are counted up to the last, and between which instants they originated."""
    count, before = max(0, min(DURATION_LIMIT, r.w2)), min(DURATION_LIMIT, r.seq)
    first_ns, last_ns = origins(r)
    key = (incarnation, r.kind, r.source, r.w1, r.flags & PLAN_EPOCH_MASK)
    n, upto, low_ns, high_ns = sums.get(key, Tally(0, 0, first_ns, last_ns))
    sums[key] = Tally(n + count, max(upto, before + count), min(low_ns, first_ns), max(high_ns, last_ns))


def origins(r: Record) -> tuple[int, int]:
    """The interval that holds the origins of a REFUSED record's tuples."""
    return instant(_last(r) - instant(r.w4)), instant(instant(r.w0) - instant(r.w3))


def _about(r: Record) -> tuple[int, int, int, int] | None:
    """(kind, ref, word, cause), of a record that is summed."""
    if r.kind == rec.ADMITTED:
        return r.kind, r.source, 0, 0
    if r.kind == rec.RAN:
        return r.kind, r.ref, 0, 0
    if r.kind == rec.LOST and not r.flags & FLAG and r.ref != NO_REF:
        return r.kind, r.ref, 0, r.w1
    if r.kind in (rec.SHED, rec.DEGRADED):
        return r.kind, r.ref, r.w1, int(r.kind == rec.SHED and of_result(r))
    return (r.kind, r.ref, r.w1, r.w4) if r.kind == rec.WINDOW else None


def _spent(r: Record) -> int:
    """ns of a RAN; how many windows a WINDOW is about."""
    if r.kind == rec.RAN:
        return duration(r.w2, r.w1)
    if r.kind != rec.WINDOW:
        return 0
    if r.w1 != rec.WINDOW_SKIPPED:
        return 1
    return max(0, min(DURATION_LIMIT, _last(r) - instant(r.seq) + 1))


def _last(r: Record) -> int:
    """The last word, as Spark has it: signed."""
    return instant(r.last - (2 * SIGN if r.last >= SIGN else 0))
