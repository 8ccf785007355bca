"""Interval sets of windows and tuples per incarnation and source, in plain Python; as columns in spark_counts.py."""

from collections.abc import Iterable

from coordinator.report.counts import ADMITTED, BEGUN, TOLD, Span
from coordinator.report.ledger.balance_sheet import Row
from coordinator.report.ledger.results import instant
from protos import records as rec


def intervals(rows: Iterable[Row]) -> dict[tuple[int, int, int], Span]:
    """By incarnation, source and what it is of, from the records of the run's plans, facts among them."""
    found: dict[tuple[int, int, int], Span] = {}
    for incarnation, r in rows:
        if type(r) is rec.Admitted:
            about, low, high = ADMITTED, r.origin_lo_ns, r.origin_lo_ns
        elif type(r) is rec.Window:
            begun = r.state == rec.WINDOW_SKIPPED and r.cause == 0
            about, low, high = BEGUN if begun else TOLD, r.start, r.end
        else:
            continue
        new = Span(instant(r.at_ns), instant(r.at_ns), instant(low), instant(high))
        key = (incarnation, r.source, about)
        old = found.get(key, new)
        found[key] = Span(
            min(old.first_at_ns, new.first_at_ns), max(old.last_at_ns, new.last_at_ns),
            min(old.low_ns, new.low_ns), max(old.high_ns, new.high_ns),
        )  # fmt: skip
    return found


__all__ = ["intervals"]
