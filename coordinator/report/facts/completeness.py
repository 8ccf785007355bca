"""Is a trace whole? One judgement per incarnation, from counts that either engine gathers.

A trace is whole when as many usable records were found as run.json says were written, none was dropped or lost on its
node (GAP), every LOAD record stands where it says it does, and every record's plan epoch is named by a PLAN record of
that incarnation.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from coordinator.report.facts.mixing import Ints
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing.record_array import usable_records, value
from coordinator.report.report_document import Completeness, TraceState
from protos import records as rec

LEDGER_KINDS = (
    rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.OUTPUT, rec.SHED, rec.LOST, rec.MERGED, rec.ABSORBED,
)  # fmt: skip
ADMITTED_UNDER = (rec.STATE_COMMITTED, rec.STATE_DRAINING, rec.STATE_DRAINED)
NOT_OVER = "not over when the trace was collected"
SHORT = 10_000  # records of a trace that may have no LOAD record, of which a runtime writes one a second
LEAST_BACKWARDS = 5  # instances that began before the one that stands before them; a changed record makes two of them
FACT_KINDS = (rec.WINDOW, rec.DEGRADED, rec.REFUSED)  # in no ledger of admitted tuples


class Status(IntEnum):
    """What may be inferred from what a trace does not hold."""

    CLEAN = 0  # whole, and ended in order: nothing may be open
    CRASHED = 1  # whole up to the crash: what is open was lost
    DAMAGED = 2  # records are missing and nobody said so: unbalanced
    UNKNOWN = 3  # known to be incomplete, or not over yet: what is open is undecidable


@dataclass
class Scan:
    """Gathered from one incarnation's usable records."""

    found: int = 0
    unusable: int = 0
    gaps: int = 0  # GAP records
    dropped: int = 0  # records that they count, for want of room
    lost: int = 0  # and that were damaged on the node's disk
    cut: int = 0  # GAP records after which nobody knows what was written
    foreign: int = 0  # records of other plans
    misplaced: tuple[int, int] | None = None  # first LOAD record out of place: (place, what it says)
    others: Mapping[int, int] = field(default_factory=dict)  # the foreign ones by the start of their plan's hash
    ran: set[int] = field(default_factory=set)  # plans of the run that were committed here
    unnamed: int = 0  # ledger records under a plan epoch that no PLAN record names
    crashed: bool = False
    drained: set[int] = field(default_factory=set)  # plans of the run of which it was told to take nothing more
    epochs: Mapping[int, int] = field(default_factory=dict)  # of the run's plans, modulo 128 -> which plan


@dataclass(frozen=True)
class Trace:
    """An incarnation, judged. faults: what makes the run unbalanced; why: what makes the trace incomplete; reordered:
    all of its records are there, in another order than that in which they were written."""

    incarnation: Incarnation
    scan: Scan
    status: Status
    faults: tuple[str, ...] = field(default=())
    why: tuple[str, ...] = field(default=())
    reordered: bool = False

    @property
    def whole(self) -> bool:
        """True where nothing of the run is missing."""
        return not self.why

    @property
    def only_open(self) -> bool:
        """Whole up to when it was collected."""
        return self.why == (NOT_OVER,)


def judge(incarnation: Incarnation, scan: Scan, node: str) -> Trace:
    """Judge one incarnation by what was declared and what was found."""
    said = incarnation.declared
    faults, why = [], []
    place = f"{node}/{incarnation.boot_hex}"
    if not said.reachable:
        why.append("not reachable when the trace was collected")
    if not said.collected:
        why.append("its collection was interrupted; 'coordinator collect --resume RUN' goes on with it")
    why.extend(_gaps(scan))
    if said.records is None:
        why.append("nobody knows how many records it wrote")
    elif said.reachable and said.collected and said.records != scan.found:
        faults.append(f"{place}: run.json says {said.records} records, {scan.found} were found")
    mixed_up = reordered(incarnation, scan)
    if scan.misplaced and not scan.gaps and not mixed_up:
        at, says = scan.misplaced
        faults.append(f"{place}: LOAD record number {said.first + at} says that {says} records were written before it")
    if scan.unnamed and said.first:
        why.append(f"the first {said.first} records, with the plan's beginning, were collected elsewhere")
    elif scan.unnamed:
        faults.append(f"{place}: {scan.unnamed} records under a plan epoch that no PLAN record names")
    known = not why
    why.extend(fault.removeprefix(f"{place}: ") for fault in faults)
    crashed = said.crashed or scan.crashed
    if known and not (said.ended or crashed):
        known = False
        why.append(NOT_OVER)
    status = Status.CRASHED if crashed else Status.CLEAN
    if faults or not known:
        status = Status.DAMAGED if known else Status.UNKNOWN
    if mixed_up:
        why.append("its records are not in the order in which they were written; all of them are there")
    return Trace(incarnation, scan, status, tuple(faults), tuple(why), mixed_up)


def reordered(incarnation: Incarnation, scan: Scan) -> bool:
    """Whether all records are there, and their order is lost. A LOAD record, which tells how many were written before
    it, is out of its place then, or the trace is too short for one. Several of them, or many instances, do not follow
    one another. One record that was changed, and some that were left out with others put in, look otherwise."""
    suspect = scan.misplaced is not None or scan.found <= SHORT
    if not suspect or scan.gaps or incarnation.declared.records != scan.found:
        return False
    places, before, started = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for earlier, raw in raw_pieces(incarnation):
        usable = usable_records(raw)
        loads = np.flatnonzero(usable & (raw["kind"] == rec.LOAD))
        places.append(earlier + loads)
        before.append(value(raw[loads], rec.Load.records_before).astype(np.int64))
        started.append(value(raw[usable & (raw["kind"] == rec.RAN)], rec.Ran.start_ns).astype(np.int64))
    return _mixed_up(incarnation.declared.first, *map(np.concatenate, (places, before, started)))


def _mixed_up(first: int, places: Ints, before: Ints, started: Ints) -> bool:
    """By the places of LOAD records and what they say of them, and by when instances started."""
    wrong = before != first + places
    if wrong.sum() > 1 and (np.diff(before) < 0).any():
        return True
    backwards = int((np.diff(started) < 0).sum())
    return backwards >= LEAST_BACKWARDS and backwards * 10 > len(started)


def _gaps(scan: Scan) -> Iterator[str]:
    if scan.dropped or (scan.gaps and not scan.lost and not scan.cut):
        yield f"{scan.dropped} records dropped: the node had no more room for its trace, in memory or on disk"
    if scan.lost:
        yield f"{scan.lost} records were damaged on the node's disk"
    if scan.cut:
        yield "the node lost power, or its memory was emptied: nobody knows what it did after its last record here"


def judge_all(run: Run, scans: Iterable[Scan]) -> list[Trace]:
    """One judgement per incarnation, in the run's order."""
    pairs = zip(run.incarnations, scans, strict=True)
    return [judge(incarnation, scan, run.plan.nodes[incarnation.node]) for incarnation, scan in pairs]


def unknown_nodes(run: Run, traces: Iterable[Trace]) -> frozenset[int]:
    """Nodes of which something may be missing that nobody can count: no trace at all, or one of unknown status."""
    traces = list(traces)
    seen = {trace.incarnation.node for trace in traces}
    doubtful = {trace.incarnation.node for trace in traces if trace.status is Status.UNKNOWN}
    return frozenset(doubtful | (set(run.plan.nodes) - seen))


def lacking_nodes(run: Run, traces: Iterable[Trace]) -> frozenset[int]:
    """Nodes that may have done what no record here tells of, up to when their traces were collected."""
    traces = list(traces)
    seen = {trace.incarnation.node for trace in traces}
    doubtful = {t.incarnation.node for t in traces if t.status is Status.UNKNOWN and not t.only_open}
    return frozenset(doubtful | (set(run.plan.nodes) - seen))


def incomplete_nodes(run: Run, traces: Iterable[Trace]) -> frozenset[int]:
    """Nodes whose traces do not prove that a record is absent: the unknown and the damaged."""
    traces = list(traces)
    damaged = {trace.incarnation.node for trace in traces if trace.status is Status.DAMAGED}
    return unknown_nodes(run, traces) | damaged


def completeness(run: Run, traces: Iterable[Trace]) -> Completeness:
    """The `completeness` of report.json."""
    traces = list(traces)
    missing = [run.plan.nodes[node] for node in sorted(set(run.plan.nodes) - {t.incarnation.node for t in traces})]
    return Completeness(
        complete=not missing and not run.damage and all(trace.whole for trace in traces),
        incarnations=tuple(
            TraceState(
                node=run.plan.nodes[trace.incarnation.node],
                boot=trace.incarnation.boot_hex,
                records=trace.incarnation.declared.records,
                found=trace.scan.found,
                unusable=trace.scan.unusable,
                dropped=trace.scan.dropped,
                lost=trace.scan.lost,
                other_plans=trace.scan.foreign,
                status=trace.status.name.lower(),
                complete=trace.whole,
                why=tuple(trace.why),
            )
            for trace in traces
        ),
        nodes_without_trace=tuple(missing),
        damage=tuple(run.damage),
    )
