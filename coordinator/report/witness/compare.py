"""All comparisons of a run's records, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Problem
from coordinator.report.witness import admissions, ends, instants, links, origins, sums
from coordinator.report.witness.rows import rows
from coordinator.report.witness.suspensions import suspended


class Witnessed(NamedTuple):
    """problems: where a record and its second witness disagree, each record once per kind of disagreement, sorted.
    suspended: lineages (source, epoch, seq) that took longer than their clock says."""

    problems: list[Problem]
    suspended: frozenset[tuple[int, int, int]]


def compare(plan: PlanView, traces: Sequence[Trace]) -> Witnessed:
    """What the records of a run's plans say of each other."""
    found = rows(plan, traces)
    told = {
        Problem(int(fault), int(inc), int(kind), int(source), int(epoch), int(seq), int(ordinal), 1)
        for fault, wrong in (
            *instants.compare(plan, traces, found),
            *origins.compare(plan, traces, found),
            *links.compare(found),
            *ends.compare(plan, traces, found),
            *admissions.compare(plan, traces, found),
            *sums.compare(traces, found),
        )
        for inc, kind, source, epoch, seq, ordinal in zip(
            wrong.inc, wrong.kind, wrong.source, wrong.epoch, wrong.seq, wrong.ordinal, strict=True
        )
    }
    told |= set(sums.counts(traces))
    slow = found.where(suspended(traces, found))
    lineages = zip(slow.source.tolist(), slow.epoch.tolist(), slow.seq.tolist(), strict=True)
    return Witnessed(sorted(told), frozenset(lineages))


__all__ = ["Witnessed", "compare"]
