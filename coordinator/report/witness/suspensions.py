"""Tuples that were under way while their machine was suspended: they took longer than its clock says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.completeness import Trace
from coordinator.report.raw import raw_records, usable_records
from coordinator.report.witness.keys import Bools, Ints, Pairs
from coordinator.report.witness.rows import Rows
from protos import records as rec


def suspended(traces: Sequence[Trace], found: Rows) -> Bools:
    """The rows of such tuples."""
    wrong = np.zeros(len(found), np.bool_)
    for clock, since, until in _suspensions(traces):
        alike = [trace.incarnation.number for trace in traces if trace.incarnation.clock == clock]
        there = found.where(np.isin(found.inc, alike))
        has_origin = np.isin(there.kind, (rec.ADMITTED, rec.OUTPUT))
        first: Ints = np.where(has_origin, np.minimum(there.w0, there.w1), there.w0)
        last: Ints = np.where(there.kind == rec.RAN, there.w2, there.w0)
        way = Pairs((found.lineage,), (there.lineage,))
        wrong |= way.any() & (way.least(first) < until) & (way.most(last) > since)
    return wrong


def _suspensions(traces: Sequence[Trace]) -> Iterator[tuple[str, int, int]]:
    """Clock domain, and between which instants of it the clock stood still."""
    for trace in traces:
        raw = raw_records(trace.incarnation)
        told = raw[usable_records(raw) & (raw["kind"] == rec.CLOCK) & (raw["flags"] >= rec.FLAG)]
        for record in told:
            yield trace.incarnation.clock, int(record["w1"]), int(record["w0"])


__all__ = ["suspended"]
