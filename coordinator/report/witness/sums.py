"""Results against the sum of their latencies that the engine kept, from one LOAD record to the next, and tuples against
the counts that it kept of those admitted and refused.

Of results that came in the middle of an instance, or straight from a link, no other record has the exact instant. Of
tuples that were refused, or shed at the entry, no other node may know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.problems import Fault, Problem
from coordinator.report.facts.raw import raw_records
from coordinator.report.landing.record_array import Raw, usable_records, value
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Bools, Ints
from coordinator.report.witness.rows import Rows
from protos import records as rec
from protos.records import Load, Output, Refused


def compare(traces: Sequence[Trace], found: Rows) -> Iterator[Found]:
    """The results between two LOAD records that disagree with their difference."""
    outputs = found.of(rec.OUTPUT)
    for trace in traces:
        if not (trace.scan.gaps or trace.reordered):
            mine = outputs.where(outputs.inc == trace.incarnation.number)
            stretch, wrong = _stretches(trace, mine.place)
            yield Fault.ODD_SUM, mine.where(np.isin(stretch, wrong))


def counts(traces: Sequence[Trace]) -> Iterator[Problem]:
    """The LOAD records that count other tuples than there are records of since the one before."""
    for trace in traces:
        if trace.scan.gaps or trace.reordered:
            continue
        raw = raw_records(trace.incarnation)
        told = _with_sums(raw)
        admitted = np.cumsum(_of(raw, rec.ADMITTED), dtype=np.int64)
        refused = np.cumsum(np.where(_of(raw, rec.REFUSED), value(raw, Refused.tuples), 0), dtype=np.int64)
        odd = _differ(admitted[told], value(raw[told], Load.admitted)) | _differ(
            refused[told], value(raw[told], Load.refused)
        )
        if trace.incarnation.declared.first > 0:
            odd[:1] = False
        for place in told[odd].tolist():
            yield Problem(int(Fault.ODD_COUNT), trace.incarnation.number, rec.LOAD, 0, 0, place, 0, 1)


def _of(raw: Raw, kind: int) -> Bools:
    found: Bools = usable_records(raw) & (raw["kind"] == kind)
    return found


def _with_sums(raw: Raw) -> Ints:
    """Places of the LOAD records with sums."""
    return np.flatnonzero(_of(raw, rec.LOAD) & (raw["flags"] >= rec.FLAG))


def _differ(kept: Ints, counted: Raw) -> Bools:
    """Whether the counts, from one to the next, are others modulo `COUNTED`."""
    beside = (kept - counted.astype(np.int64)) % rec.COUNTED
    found: Bools = np.diff(beside, prepend=0) != 0
    return found


def _stretches(trace: Trace, places: Ints) -> tuple[Ints, Ints]:
    """Of each place how many sums were told before it; and the numbers of the stretches that end with a wrong one."""
    raw = raw_records(trace.incarnation)
    told, results = _with_sums(raw), np.flatnonzero(_of(raw, rec.OUTPUT))
    instants = (Output.at_ns, Output.origin_lo_ns, Output.origin_hi_ns)
    at, lo, hi = (value(raw[results], each).astype(np.uint64) for each in instants)
    kept = np.concatenate(([np.uint64(0)], np.cumsum(2 * at - lo - hi, dtype=np.uint64)))
    upto = kept[np.searchsorted(results, told)]
    first = trace.incarnation.declared.first > 0  # what was before the first sum is elsewhere
    mask = np.uint64(rec.SUM_MASK)
    here = np.diff(upto, prepend=np.uint64(0)) & mask
    there = np.diff(value(raw[told], Load.latencies_ns), prepend=np.uint64(0)) & mask
    wrong = np.flatnonzero(here != there)
    return np.searchsorted(told, places), wrong[wrong > 0] if first else wrong


__all__ = ["compare", "counts"]
