"""Results against the sum of their latencies that the engine kept, from one LOAD record to the next, and tuples against
the counts that it kept of those admitted and refused.

Of results that came in the middle of an instance, or straight from a link, no other record has the exact instant. Of
tuples that were refused, or shed at the entry, no other node may know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.problems import Fault, Problem
from coordinator.report.landing.record_array import Raw, usable_records, value
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Bools, Ints
from coordinator.report.witness.rows import Rows
from protos import records as rec
from protos.records import Load, Output, Refused

Sum = npt.NDArray[np.uint64]


def compare(found: Rows, sums: Sequence[Sums]) -> Iterator[Found]:
    """The results between two LOAD records that disagree with their difference."""
    outputs = found.of(rec.OUTPUT)
    for each in sums:
        mine = outputs.where(outputs.inc == each.inc)
        yield Fault.ODD_SUM, mine.where(each.is_odd(mine.place))


def counts(sums: Sequence[Sums]) -> Iterator[Problem]:
    """The LOAD records that count other tuples than there are records of since the one before."""
    for each in sums:
        for place in each.odd_counts().tolist():
            yield Problem(int(Fault.ODD_COUNT), each.inc, rec.LOAD, 0, 0, place, 0, 1)


class Sums:
    """What an incarnation's LOAD records say of its records, beside what these add up to."""

    def __init__(self, trace: Trace) -> None:
        self.inc = trace.incarnation.number
        self._comparable = not (trace.scan.gaps or trace.reordered)
        self._from_elsewhere = trace.incarnation.declared.first > 0  # what was before the first sum
        self._sums = np.zeros(3, np.uint64)  # admitted and refused tuples, twice the latencies, so far
        self._places = [np.zeros(0, np.int64)]
        self._here, self._there = [np.zeros((3, 0), np.uint64)], [np.zeros((3, 0), np.uint64)]

    def take(self, before: int, raw: Raw) -> None:
        """Records, with how many came before them."""
        if not self._comparable:
            return
        sums = self._sums[:, None] + np.cumsum(_parts(raw), axis=1, dtype=np.uint64)
        told = np.flatnonzero(_of(raw, rec.LOAD) & (raw["flags"] >= rec.FLAG))
        said = (value(raw[told], each) for each in (Load.admitted, Load.refused, Load.latencies_ns))
        self._places.append(before + told)
        self._here.append(sums[:, told])
        self._there.append(np.stack([each.astype(np.uint64) for each in said]))
        self._sums = sums[:, -1]

    def odd_counts(self) -> Ints:
        """Places of the LOAD records that count other tuples."""
        odd = self._differ(0, rec.COUNTED) | self._differ(1, rec.COUNTED)
        found: Ints = np.concatenate(self._places)[odd]
        return found

    def is_odd(self, places: Ints) -> Bools:
        """Which of these places lie before a LOAD record with another sum of latencies."""
        stretch = np.searchsorted(np.concatenate(self._places), places)
        found: Bools = np.isin(stretch, np.flatnonzero(self._differ(2, rec.SUM_MASK + 1)))
        return found

    def _differ(self, which: int, limit: int) -> Bools:
        """Whether a sum, from one record to the next, is another one modulo a power of two."""
        here, there = (np.concatenate(each, axis=1)[which] for each in (self._here, self._there))
        found: Bools = np.diff(here - there, prepend=np.uint64(0)) & np.uint64(limit - 1) != 0
        if self._from_elsewhere:
            found[:1] = False
        return found


def _parts(raw: Raw) -> Sum:
    """What each record adds."""
    at, lo, hi = (
        value(raw, each).astype(np.uint64) for each in (Output.at_ns, Output.origin_lo_ns, Output.origin_hi_ns)
    )
    return np.stack(
        [
            _of(raw, rec.ADMITTED).astype(np.uint64),
            np.where(_of(raw, rec.REFUSED), value(raw, Refused.tuples).astype(np.uint64), np.uint64(0)),
            np.where(_of(raw, rec.OUTPUT), np.uint64(2) * at - lo - hi, np.uint64(0)),
        ]
    )


def _of(raw: Raw, kind: int) -> Bools:
    found: Bools = usable_records(raw) & (raw["kind"] == kind)
    return found


__all__ = ["Sums", "compare", "counts"]
