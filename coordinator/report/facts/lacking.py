"""Missing parts of a run: records of plans and nodes that ran, without which no verdict on all of it can be given.

A trace that was collected while its plan still runs lacks nothing: what it does not tell yet has not been asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from coordinator.report.facts.merged_plans import number_of
from coordinator.report.facts.plan_view import PlanView

if TYPE_CHECKING:
    from coordinator.report.facts.completeness import Trace
    from coordinator.report.facts.reader import Run
    from coordinator.report.report_document import Report


def lacking(run: Run, traces: Sequence[Trace]) -> list[str]:
    """A sentence per plan and node; none: all that ran is here."""
    return [*_plans(run, traces), *_nodes(run.plan, traces), *_incomplete(run.plan, traces)]


def sentences(reports: Sequence[Report]) -> Iterator[str]:
    """Of several reports, each led by its run's name."""
    for report in reports:
        for line in report.lacking:
            yield f"{report.run}: {line}" if len(reports) > 1 else line


def _plans(run: Run, traces: Iterable[Trace]) -> Iterator[str]:
    """Plans of which records are here and no document."""
    found: dict[int, int] = defaultdict(int)
    for trace in traces:
        for stamp, records in trace.scan.others.items():
            if stamp not in run.going_on:
                found[stamp] += records
    for stamp, records in sorted(found.items()):
        yield (
            f"plan {_short(stamp)} ran as well and is not in the run: its {records:,} records are not judged; "
            f"'coordinator collect --resume {run.path} --earlier FILE' adds the plan"
        )


def _nodes(plan: PlanView, traces: Sequence[Trace]) -> Iterator[str]:
    """Nodes that a plan ran on, and that have no record of it."""
    ran = {number for trace in traces for number in trace.scan.ran}
    short = {number: _short(stamp) for stamp, number in plan.numbers.items()}
    there = {trace.incarnation.node for trace in traces}
    told: dict[int, set[int]] = defaultdict(set)
    for trace in traces:
        told[trace.incarnation.node] |= set(trace.scan.epochs.values())
    parts = _parts(plan)
    for number in sorted(ran, reverse=True):
        for node in sorted(parts[number] - {node for node, numbers in told.items() if number in numbers}):
            why = "has no record of it" if node in there else "has no trace"
            yield f"plan {short[number]} ran on node {plan.nodes[node]}, which {why}: what it did is not known"


def _parts(plan: PlanView) -> Mapping[int, set[int]]:
    """The nodes that have something to do, by the plan's number."""
    parts: dict[int, set[int]] = defaultdict(set)
    for source, (node, _) in plan.sources.items():
        parts[number_of(source)].add(node)
    for unit in plan.units.values():
        parts[number_of(unit.id)].add(unit.node)
    return parts


def _incomplete(plan: PlanView, traces: Iterable[Trace]) -> Iterator[str]:
    for trace in traces:
        if trace.why and not trace.only_open and not trace.faults:
            node = plan.nodes[trace.incarnation.node]
            yield f"the trace of {node}/{trace.incarnation.boot_hex} is incomplete: {'; '.join(trace.why)}"


def _short(stamp: int) -> str:
    return f"{stamp:016x}"[:8]


__all__ = ["lacking", "sentences"]
