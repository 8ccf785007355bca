"""Origins of results against those that their tuples were admitted with, from clock to clock along the way they went.

A receiver maps an origin by what it knew of the sender's clock when the tuple came: the CLOCK record before that. Its
lower bound only falls between two such records, so none that is higher is true; on one clock nothing is mapped, and
the origins are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Fault
from coordinator.report.landing.record_array import Raw, value
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import LEAST, MOST, Bools, Ints, Pairs, codes
from coordinator.report.witness.rows import BEYOND_NS, Rows
from protos import records as rec
from protos.records import Admitted, Clock, Output, Received, Sent

FAR_NS = 1 << 60  # an offset beyond it is how an agent writes that it knows none
DRIFT_PARTS = 1000  # clocks move against each other by less than a part in so many


@dataclass(slots=True)
class _Origins:
    """Of each (tuple, incarnation) that there is: where its origin lies on that clock at the most."""

    low: Ints
    high: Ints
    ceiling: Ints  # no true lower bound is above it
    exact: Bools  # it was never mapped

    @classmethod
    def unknown(cls, size: int) -> _Origins:
        return cls(np.full(size, MOST), np.full(size, LEAST), np.full(size, LEAST), np.ones(size, np.bool_))

    def add(self, at: Ints, low: Ints, high: Ints, ceiling: Ints, exact: Bools) -> None:
        np.minimum.at(self.low, at, low)
        np.maximum.at(self.high, at, high)
        np.maximum.at(self.ceiling, at, ceiling)
        np.logical_and.at(self.exact, at, exact)


def compare(plan: PlanView, traces: Sequence[Trace], found: Rows, clocks: Mapping[int, Raw]) -> Iterator[Found]:
    """Results with another origin than the one that was admitted; and those from before it. clocks: the CLOCK
    records of each incarnation."""
    outputs = found.of(rec.OUTPUT)
    lo, hi = outputs[Output.origin_lo_ns], outputs[Output.origin_hi_ns]
    yield Fault.ODD_ORIGIN, outputs.where((outputs.at_ns < lo) | (lo > hi))
    admitted, received = found.of(rec.ADMITTED), found.of(rec.RECEIVED)
    sender = _senders(found, received)
    places = codes(
        np.concatenate((admitted.lineage, received.lineage, received.lineage, outputs.lineage)),
        np.concatenate((admitted.inc, sender, received.inc, outputs.inc)),
    )
    ends = np.cumsum([len(admitted), len(received), len(received)])
    at_admission, at_sender, here, asked = np.split(places, ends)
    known = _Origins.unknown(int(places.max(initial=-1)) + 1)
    since, until = admitted[Admitted.origin_lo_ns], admitted[Admitted.origin_hi_ns]
    known.add(at_admission, since, until, since, np.ones(len(admitted), np.bool_))
    hop = _Hops(traces, received, sender, clocks)
    for _ in plan.nodes:  # a tuple goes from node to node, so often at the most
        before = known.low.copy(), known.high.copy()
        told = (sender >= 0) & (known.low[at_sender] != MOST)
        known.add(here[told], *hop.mapped(known, at_sender, told))
        if np.array_equal(before[0], known.low) and np.array_equal(before[1], known.high):
            break
    low, high, exact = known.low[asked], known.high[asked], known.exact[asked]
    other = (lo != low) | (hi != high)
    apart = (lo > known.ceiling[asked]) | (lo > high) | (hi < low)
    yield Fault.ODD_ORIGIN, outputs.where((low != MOST) & np.where(exact, other, apart))


def _senders(found: Rows, received: Rows) -> Ints:
    """The incarnation that sent each tuple which was received; -1: no record tells."""
    sent = found.of(rec.SENT)
    there, here = sent[Sent.link_seq], received[Received.link_seq]
    inc = Pairs(
        (received.ref, received.node, received.stream, received.lineage, received.ordinal, here),
        (sent.node, sent.ref, sent.stream, sent.lineage, sent.ordinal, there),
    ).most(sent.inc)
    return np.where(inc == LEAST, -1, inc)


class _Hops:
    """What each receipt knew of the sender's clock."""

    def __init__(self, traces: Sequence[Trace], received: Rows, sender: Ints, told: Mapping[int, Raw]) -> None:
        self._at = received.at_ns
        clocks = [trace.incarnation.clock for trace in traces]
        domain = codes(np.unique(np.array([*clocks, ""]), return_inverse=True)[1].astype(np.int64))
        nameless = domain[-1]
        named = (domain[sender] != nameless) & (domain[received.inc] != nameless)
        self._same = (domain[sender] == domain[received.inc]) & named
        self._lo, self._hi = np.full(len(received), -BEYOND_NS), np.full(len(received), BEYOND_NS)
        self._age = np.zeros(len(received), np.int64)
        self._untold = ~named  # something was known of the clock, no record says what; or it is not known which it is
        for trace in traces:
            self._look_up(trace, received, told[trace.incarnation.number])

    def _look_up(self, trace: Trace, received: Rows, clock: Raw) -> None:
        mine = (received.inc == trace.incarnation.number) & ~self._same
        if not mine.any():
            return
        clock = clock[clock["flags"] < rec.FLAG]
        # A CLOCK record without a number is of a client, or of a peer that no plan had named yet.
        unnamed = value(clock[clock["ref"] == rec.NO_REF], Clock.at_ns)
        since = int(unnamed.min(initial=BEYOND_NS)) if _tells_all(trace) else -BEYOND_NS
        for peer in np.unique(received.ref[mine]):
            told = clock[clock["ref"] == peer]
            told = told[np.argsort(value(told, Clock.at_ns), kind="stable")]
            told_ns = value(told, Clock.at_ns)
            at = np.flatnonzero(mine & (received.ref == peer))
            before = np.searchsorted(told_ns, self._at[at], side="right") - 1
            self._untold[at] |= (before < 0) & (self._at[at] >= since)
            at, before = at[before >= 0], before[before >= 0]
            lo, hi = value(told, Clock.offset_lo_ns)[before], value(told, Clock.offset_hi_ns)[before]
            era = value(told, Clock.era)
            after = np.minimum(before + 1, len(told) - 1)
            known = (np.abs(lo) < FAR_NS) & (np.abs(hi) < FAR_NS)
            steady = era[before] == era[after]  # else it may have forgotten the one and not yet known the other
            self._lo[at] = np.where(known, lo, self._lo[at])
            self._hi[at] = np.where(known, hi, self._hi[at])
            self._age[at] = np.where(known & steady, self._at[at] - told_ns[before], BEYOND_NS)

    def mapped(self, known: _Origins, sender: Ints, told: Bools) -> tuple[Ints, Ints, Ints, Bools]:
        """Low, high and ceiling on the receiver's clock, and whether they are still exact; of the rows `told`."""
        low, high, ceiling = known.low[sender[told]], known.high[sender[told]], known.ceiling[sender[told]]
        same, at = self._same[told], self._at[told]
        lo, hi = self._lo[told], self._hi[told]
        moved_low, moved_high = _sum(low, lo), np.minimum(_sum(high, hi), at)
        since = np.clip(at - moved_low, 0, BEYOND_NS)
        slack = (np.minimum(self._age[told], BEYOND_NS) + since) // DRIFT_PARTS + 1
        highest = np.where(lo <= -BEYOND_NS, -FAR_NS, _sum(ceiling, lo))
        return (
            np.where(same, low, np.maximum(moved_low - slack, -BEYOND_NS)),
            np.where(same, high, np.minimum(moved_high + slack, at)),
            np.where(same, ceiling, np.where(self._untold[told], BEYOND_NS, highest)),
            same & known.exact[sender[told]],
        )


def _tells_all(trace: Trace) -> bool:
    """All that it knew of clocks is there, up to when it was collected."""
    gaps = trace.scan.gaps or trace.incarnation.declared.first
    return not gaps and (trace.status is not Status.UNKNOWN or trace.only_open)


def _sum(instants: Ints, offsets: Ints) -> Ints:
    found: Ints = np.clip(instants + offsets, -BEYOND_NS, BEYOND_NS)
    return found


__all__ = ["compare"]
