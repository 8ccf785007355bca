"""Intervals between nodes' clocks: what CLOCK records say for certain of instants that another clock showed.

A record holds the interval of (own clock - the peer's) at its instant; away from that it widens, as clocks move against
each other. Of several records the nearest ones before and after count together, and clocks that no record compares
are reached over others. A node that had several clocks while it ran cannot be told from a record about it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from coordinator.report.facts.one_clock import FAR_NS
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing.record_array import usable_records, value
from protos import records as rec
from protos.records import FLAG, Clock

DRIFT_PARTS = 1000  # clocks move against each other by less than a part in so many
LEAST_GAP_NS = 1_000_000_000  # between two records; what comes after the last one is as far from it
UNKNOWN_NS = 1 << 60  # an instant that nothing bounds; also how wide an offset is that nothing bounds


class Interval(NamedTuple):
    """From lo to hi, both included, ns."""

    lo: int
    hi: int


UNKNOWN = Interval(-UNKNOWN_NS, UNKNOWN_NS)


class _Knot(NamedTuple):
    """at_ns: on the far clock. What the near one is ahead of it, at least and at most."""

    at_ns: int
    lo: int
    hi: int


@dataclass(frozen=True)
class ClockProbe:
    """A CLOCK record of an incarnation: what its clock is ahead of a peer's."""

    incarnation: int
    at_ns: int
    peer: int
    lo_ns: int
    hi_ns: int


class ClockIntervals:
    """Of a run."""

    def __init__(self, incarnations: Sequence[Incarnation], told: Iterable[ClockProbe]) -> None:
        self._clocks: dict[int, set[str]] = {}
        for each in incarnations:
            self._clocks.setdefault(each.node, set()).add(each.clock or f"{each.node}/{each.boot_hex}")
        self._names = {each.number: each.clock or f"{each.node}/{each.boot_hex}" for each in incarnations}
        self._knots: dict[tuple[str, str], list[_Knot]] = {}  # (near, far)
        for record in told:
            self._add(record)
        for knots in self._knots.values():
            knots.sort()
        self._ways: dict[tuple[str, str], tuple[str, ...] | None] = {}

    def _add(self, told: ClockProbe) -> None:
        peer = self._clock(told.peer)
        own = self._names[told.incarnation]
        if peer is None or peer == own or abs(told.lo_ns) >= FAR_NS or abs(told.hi_ns) >= FAR_NS:
            return
        there_ns = told.at_ns - (told.lo_ns + told.hi_ns) // 2
        self._knots.setdefault((own, peer), []).append(_Knot(there_ns, told.lo_ns, told.hi_ns))
        self._knots.setdefault((peer, own), []).append(_Knot(told.at_ns, -told.hi_ns, -told.lo_ns))

    def _clock(self, node: int) -> str | None:
        """The only one that it had."""
        found = self._clocks.get(node, set())
        return next(iter(found)) if len(found) == 1 else None

    def ahead(self, node: int, other: int) -> Interval | None:
        """What the clock of `node` is ahead of that of `other` at any time of the run; None: nobody knows."""
        near, far = self._clock(node), self._clock(other)
        way = None if near is None or far is None else self._way(near, far)
        if way is None:
            return None
        found = [_at_any_time(self._knots[here, there]) for here, there in zip(way[1:], way, strict=False)]
        return Interval(sum(each.lo for each in found), sum(each.hi for each in found))

    def on(self, node: int, other: int, at_ns: int) -> Interval:
        """An instant of the clock of node `other`, on that of `node`."""
        near, far = self._clock(node), self._clock(other)
        if near is None or far is None:
            return UNKNOWN
        way = self._way(near, far)
        if way is None:
            return UNKNOWN
        lo = hi = at_ns
        for here, there in zip(way[1:], way, strict=False):
            knots = self._knots[here, there]
            ends = _ahead(knots, lo), _ahead(knots, hi)
            lo, hi = lo + ends[0].lo, hi + ends[1].hi
        return Interval(max(lo, -UNKNOWN_NS), min(hi, UNKNOWN_NS))

    def _way(self, near: str, far: str) -> tuple[str, ...] | None:
        """Clocks from the far one to the near one, each known to the next."""
        if (near, far) not in self._ways:
            before: dict[str, str] = {far: far}
            line = deque([far])
            while line and near not in before:
                there = line.popleft()
                for here, other in sorted(self._knots):
                    if other == there and here not in before:
                        before[here] = there
                        line.append(here)
            found = [near] if near in before else []
            while found and found[-1] != far:
                found.append(before[found[-1]])
            self._ways[near, far] = tuple(reversed(found)) or None
        return self._ways[near, far]


def _ahead(knots: Sequence[_Knot], at_ns: int) -> Interval:
    """What the near clock is ahead by then: what its neighbours say together, or either where they contradict."""
    right = bisect_right(knots, (at_ns, UNKNOWN_NS, UNKNOWN_NS))
    told = [_widened(each, at_ns) for each in knots[max(0, right - 1) : right + 1]]
    lo, hi = max(each.lo for each in told), min(each.hi for each in told)
    return Interval(lo, hi) if lo <= hi else Interval(min(each.lo for each in told), max(each.hi for each in told))


def _widened(knot: _Knot, at_ns: int) -> Interval:
    slack = (abs(at_ns - knot.at_ns) + knot.hi - knot.lo) // DRIFT_PARTS + 1 if at_ns != knot.at_ns else 0
    return Interval(knot.lo - slack, knot.hi + slack)


def _at_any_time(knots: Sequence[_Knot]) -> Interval:
    gap_ns = max((later.at_ns - each.at_ns for each, later in pairwise(knots)), default=0)
    slack = max(gap_ns, LEAST_GAP_NS) // DRIFT_PARTS
    return Interval(min(each.lo for each in knots) - slack, max(each.hi for each in knots) + slack)


@dataclass(frozen=True)
class RunClocks:
    """ahead: of two nodes, in their order, as `ClockIntervals.ahead`, where it is known. ends: of each node, the last
    instant that a record of it names."""

    clocks: ClockIntervals
    ahead: Mapping[tuple[int, int], Interval]
    ends: Mapping[int, int]


def run_clocks(run: Run) -> RunClocks:
    """One look at all records, a piece at a time."""
    told: list[ClockProbe] = []
    ends: dict[int, int] = {}
    for incarnation in run.incarnations:
        for _, raw in raw_pieces(incarnation):
            found = raw[usable_records(raw)]
            clocks = found[(found["kind"] == rec.CLOCK) & (found["flags"] < FLAG) & (found["ref"] != rec.NO_REF)]
            fields = (Clock.at_ns, Clock.peer, Clock.offset_lo_ns, Clock.offset_hi_ns)
            columns = (value(clocks, field).tolist() for field in fields)
            if not run.plan.peers:  # else a number is of one node or another, by the plan that wrote it
                told += (ClockProbe(incarnation.number, *each) for each in zip(*columns, strict=True))
            last = int(value(found, rec.Record.at_ns).max(initial=-UNKNOWN_NS))
            ends[incarnation.node] = max(ends.get(incarnation.node, -UNKNOWN_NS), min(last, UNKNOWN_NS))
    clocks = ClockIntervals(run.incarnations, told)
    nodes = sorted({incarnation.node for incarnation in run.incarnations})
    pairs = {(node, other): clocks.ahead(node, other) for node in nodes for other in nodes}
    return RunClocks(clocks, {pair: each for pair, each in pairs.items() if each is not None}, ends)


__all__ = ["UNKNOWN", "UNKNOWN_NS", "ClockIntervals", "ClockProbe", "Interval", "RunClocks", "run_clocks"]
