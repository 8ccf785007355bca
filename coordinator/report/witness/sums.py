"""Results against the sum of their latencies that the engine kept, from one LOAD record to the next.

Of results that came in the middle of an instance, or straight from a link, no other record has the exact instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.completeness import Trace
from coordinator.report.problems import Fault
from coordinator.report.raw import raw_records, usable_records
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Ints
from coordinator.report.witness.rows import Rows
from protos import records as rec


def compare(traces: Sequence[Trace], found: Rows) -> Iterator[Found]:
    """The results between two LOAD records that disagree with their difference."""
    outputs = found.of(rec.OUTPUT)
    for trace in traces:
        if not trace.scan.gaps:
            mine = outputs.where(outputs.inc == trace.incarnation.number)
            stretch, wrong = _stretches(trace, mine.place)
            yield Fault.ODD_SUM, mine.where(np.isin(stretch, wrong))


def _stretches(trace: Trace, places: Ints) -> tuple[Ints, Ints]:
    """Of each place how many sums were told before it; and the numbers of the stretches that end with a wrong one."""
    raw = raw_records(trace.incarnation)
    usable = usable_records(raw)
    told = np.flatnonzero(usable & (raw["kind"] == rec.LOAD) & (raw["flags"] >= rec.FLAG))
    results = np.flatnonzero(usable & (raw["kind"] == rec.OUTPUT))
    w0, w1, w2 = (raw[word][results].astype(np.uint64) for word in ("w0", "w1", "w2"))
    kept = np.concatenate(([np.uint64(0)], np.cumsum(2 * w0 - w1 - w2, dtype=np.uint64)))
    upto = kept[np.searchsorted(results, told)]
    first = trace.incarnation.declared.first > 0  # what was before the first sum is elsewhere
    mask = np.uint64(rec.SUM_MASK)
    here = np.diff(upto, prepend=np.uint64(0)) & mask
    there = np.diff(raw["seq"][told], prepend=np.uint64(0)) & mask
    wrong = np.flatnonzero(here != there)
    return np.searchsorted(told, places), wrong[wrong > 0] if first else wrong


__all__ = ["compare"]
