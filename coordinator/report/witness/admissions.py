"""Tuples are admitted once, one number after the other, and nothing comes of one that was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Fault
from coordinator.report.facts.raw import raw_records
from coordinator.report.landing.record_array import usable_records
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Ints, Pairs
from coordinator.report.witness.rows import Rows, mapped
from protos import records as rec


def compare(plan: PlanView, traces: Sequence[Trace], found: Rows) -> Iterator[Found]:
    """Lineages that were admitted again, and results of tuples that no node admitted."""
    admitted, outputs = found.of(rec.ADMITTED), found.of(rec.OUTPUT)
    if len(admitted):
        yield Fault.ADMITTED_AGAIN, admitted.where(np.bincount(admitted.lineage)[admitted.lineage] > 1)
    for trace in traces:
        if not trace.scan.gaps and trace.status is not Status.UNKNOWN:
            mine = admitted.where(admitted.inc == trace.incarnation.number)
            fed = mine.where(~np.isin(mine.source, list(plan.windows)))
            yield Fault.NUMBER_SKIPPED, fed.where(np.isin(fed.place, _skipped(trace)))
    told: dict[int, bool] = dict.fromkeys((t.incarnation.node for t in traces), True)
    for trace in traces:
        told[trace.incarnation.node] &= trace.status is not Status.UNKNOWN or trace.only_open
    sure = {source: 1 for source, (node, _) in plan.sources.items() if told.get(node, False)}
    known = Pairs((outputs.lineage,), (admitted.lineage,)).any()
    yield Fault.NEVER_ADMITTED, outputs.where(~known & (mapped(outputs.source, sure, 0) > 0))


def _skipped(trace: Trace) -> Ints:
    """Places of the tuples before which their source, which counts on over all plans, left numbers out."""
    raw = raw_records(trace.incarnation)
    places = np.flatnonzero(usable_records(raw) & (raw["kind"] == rec.ADMITTED))
    places = places[np.lexsort([raw[name][places] for name in ("seq", "epoch", "source")])]
    source, epoch, seq = (raw[name][places] for name in ("source", "epoch", "seq"))
    same = (source[1:] == source[:-1]) & (epoch[1:] == epoch[:-1])
    skipped: Ints = places[1:][same & (seq[1:] - seq[:-1] > 1)]
    return skipped


__all__ = ["compare"]
