"""Tuples that were under way while their machine was suspended: they took longer than its clock says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coordinator.report.facts.completeness import Trace
from coordinator.report.landing.record_array import Raw, value
from coordinator.report.witness.keys import Bools, Ints, Pairs
from coordinator.report.witness.rows import Rows
from protos import records as rec
from protos.records import Admitted, Clock, Output, Ran, Received


def suspended(traces: Sequence[Trace], found: Rows, clocks: Mapping[int, Raw]) -> Bools:
    """The rows of such tuples. clocks: the CLOCK records of each incarnation."""
    wrong = np.zeros(len(found), np.bool_)
    for clock, since, until in _suspensions(traces, clocks):
        alike = [trace.incarnation.number for trace in traces if trace.incarnation.clock == clock]
        there = found.where(np.isin(found.inc, alike))
        has_origin = np.isin(there.kind, (rec.ADMITTED, rec.OUTPUT))
        origin_ns = np.where(there.kind == rec.OUTPUT, there[Output.origin_lo_ns], there[Admitted.origin_lo_ns])
        first: Ints = np.where(has_origin, np.minimum(there.at_ns, origin_ns), there.at_ns)
        last: Ints = np.where(there.kind == rec.RAN, there[Ran.end_ns], there.at_ns)
        left = _left(traces, clock, found)
        way = Pairs((found.lineage,), (np.concatenate([there.lineage, left.lineage]),))
        first = np.concatenate([first, left[Received.sent_ns]])
        last = np.concatenate([last, left[Received.sent_ns]])
        wrong |= way.any() & (way.least(first) < until) & (way.most(last) > since)
    return wrong


def _left(traces: Sequence[Trace], clock: str, found: Rows) -> Rows:
    """Where tuples came to that machines of that clock had sent: until it was stamped, each was in a link there."""
    nodes = sorted({trace.incarnation.node for trace in traces if trace.incarnation.clock == clock})
    return found.where((found.kind == rec.RECEIVED) & np.isin(found.ref, nodes))


def _suspensions(traces: Sequence[Trace], clocks: Mapping[int, Raw]) -> Iterator[tuple[str, int, int]]:
    """Clock domain, and between which instants of it the clock stood still."""
    for trace in traces:
        told = clocks[trace.incarnation.number]
        told = told[told["flags"] >= rec.FLAG]
        for since_ns, until_ns in zip(value(told, Clock.since_ns), value(told, Clock.at_ns), strict=True):
            yield trace.incarnation.clock, int(since_ns), int(until_ns)


__all__ = ["suspended"]
