"""Tuples are admitted once, and nothing comes of one that was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.completeness import Status, Trace
from coordinator.report.plan_view import PlanView
from coordinator.report.problems import Fault
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Pairs
from coordinator.report.witness.rows import Rows, mapped
from protos import records as rec


def compare(plan: PlanView, traces: Sequence[Trace], found: Rows) -> Iterator[Found]:
    """Lineages that were admitted again, and results of tuples that no node admitted."""
    admitted, outputs = found.of(rec.ADMITTED), found.of(rec.OUTPUT)
    if len(admitted):
        yield Fault.ADMITTED_AGAIN, admitted.where(np.bincount(admitted.lineage)[admitted.lineage] > 1)
    told: dict[int, bool] = dict.fromkeys((t.incarnation.node for t in traces), True)
    for trace in traces:
        told[trace.incarnation.node] &= trace.status is not Status.UNKNOWN or trace.only_open
    sure = {source: 1 for source, (node, _) in plan.sources.items() if told.get(node, False)}
    known = Pairs((outputs.lineage,), (admitted.lineage,)).any()
    yield Fault.NEVER_ADMITTED, outputs.where(~known & (mapped(outputs.source, sure, 0) > 0))


__all__ = ["compare"]
