"""Data behind the results of outputs that ask for their age or their reaction, in plain Python.

A result's tuple is followed back to what the units on its way read and merged, from place to place (`data_ways.py`);
spark_behind.py says the same in columns. An instance reads its side inputs as it starts: the last value that came under
its own plan. Before the first of these it may be the last one of the plan before, where the operator goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.report.counts import INSTANT_LIMIT, Behind, Counts, Extent, Origin
from coordinator.report.facts.clock_intervals import Interval, RunClocks
from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.data_ways import COUNT, DataWays, Slot, data_ways, positions
from coordinator.report.facts.merged_plans import epochs_before
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.windows_view import WindowView
from coordinator.report.ledger.balance_sheet import Row
from coordinator.report.ledger.results import Key, instant
from protos import records as rec
from protos.latency import Latency

Ahead = Mapping[tuple[int, int], Interval]  # what the first node's clock is ahead of the second's
Lineage = tuple[int, int, int]
NOWHERE = Interval(4 * INSTANT_LIMIT, 4 * INSTANT_LIMIT)
Extents = dict[int, Extent]  # by source, as the last plan names it


class Datum(NamedTuple):
    """A tuple that came to a place."""

    place: int
    lineage: Lineage
    ordinal: int


class _Value(NamedTuple):
    """A side input's value. at_ns: when it came."""

    at_ns: int
    lineage: Lineage
    ordinal: int


class _Read(NamedTuple):
    """What an instance read of a side input. value: None is none. missing: for certain at one of the ports."""

    place: int
    value: _Value | None
    sure: bool
    missing: bool


class _Window(NamedTuple):
    """One that closed. at_ns: when, on its node's clock."""

    start: int
    end: int
    at_ns: int
    incarnation: int
    lineage: Lineage


class _Youngest(NamedTuple):
    """The origin of the youngest of a source's lower numbers, at least and at most."""

    lo_ns: int
    hi_ns: int


class _Started(NamedTuple):
    """epoch: of its plan, modulo 128."""

    start_ns: int
    epoch: int


@dataclass(slots=True)
class _Admission:
    """Of a tuple: its origin, on the clock of that node. Several records of one tuple contradict each other."""

    lo_ns: int
    hi_ns: int
    node: int


def look_behind(
    rows: Sequence[Row], plan: PlanView, clocks: RunClocks, delivered: Mapping[Key, Latency], counts: Counts
) -> None:
    """Into `counts`, which have the traces. rows: of the kinds that the ledgers and the figures of windows read.
    delivered: latencies of the results of outputs that ask."""
    counts.clocks, traces = clocks, counts.traces
    found = _Found(rows, traces, plan, clocks.ahead)
    first: dict[Key, int] = {}
    for incarnation, r in rows:
        if type(r) is rec.Output and traces[incarnation].incarnation.node == plan.outputs[r.output].node:
            key = (r.output, r.source, r.epoch, r.seq, r.ordinal)
            if key in delivered:
                first[key] = min(first.get(key, INSTANT_LIMIT), instant(r.at_ns))
    for key in sorted(first):
        output, source, epoch, seq, ordinal = key
        latency, datum = delivered[key], Datum(found.ways.outputs[output], (source, epoch, seq), ordinal)
        counts.behind.append(
            Behind(
                output, source, epoch, seq, ordinal, first[key], latency.least_ns, latency.most_ns,
                found.unread(datum), found.of_result(datum),
            )
        )  # fmt: skip
    asked = {source for output in found.ways.outputs for source in found.ways.behind(output)}
    for (source, epoch, seq), each in sorted(found.admitted.items()):
        canonical = found.ways.canonical.get(source)
        if source not in plan.windows and canonical in asked and canonical is not None:
            counts.origins.setdefault(canonical, []).append(Origin((epoch, seq), each.lo_ns, each.hi_ns))
    for origins in counts.origins.values():
        origins.sort()


class _Found:
    """Records by what is looked for."""

    def __init__(self, rows: Sequence[Row], traces: Sequence[Trace], plan: PlanView, ahead: Ahead) -> None:
        self.ways: DataWays = data_ways(plan)
        self._ahead = ahead
        self._positions = positions(plan, self.ways, ahead)
        self.admitted: dict[Lineage, _Admission] = {}
        self._plan, self._traces = plan, traces
        self._started: dict[tuple[int, Lineage, int], dict[int, _Started]] = defaultdict(dict)
        self._values: dict[tuple[int, int], dict[int, list[_Value]]] = defaultdict(lambda: defaultdict(list))
        self._merged: dict[tuple[int, Lineage], set[tuple[Lineage, int]]] = defaultdict(set)
        self._closed: dict[Lineage, tuple[int, rec.Window]] = {}
        self._extents: dict[Datum, Extents] = {}
        for incarnation, r in rows:
            self._add(incarnation, r)
        for by_epoch in self._values.values():
            for values in by_epoch.values():
                values.sort(key=lambda each: each.at_ns)  # stable: of one instant in the order of the trace
        self._collected = self._in_windows()

    def _add(self, incarnation: int, r: rec.Record) -> None:
        lineage = (r.source, r.epoch, r.seq)
        if type(r) is rec.Admitted:
            self._admit(incarnation, lineage, r)
        elif type(r) is rec.Ran or (type(r) is rec.Lost and r.in_unit and r.start_ns):
            self._start(incarnation, r.unit, lineage, r.ordinal, _Started(instant(r.start_ns), r.plan_epoch_low))
        elif type(r) is rec.Absorbed and not r.unreadable:
            place = self.ways.absorbs.get((r.operator, r.stream))
            if place is not None:
                values = self._values[incarnation, place][r.plan_epoch_low]
                values.append(_Value(instant(r.at_ns), lineage, r.ordinal))
        elif type(r) is rec.Merged and r.unit in self.ways.fusions and not r.partner_absent:
            parent = (r.parent_source, r.parent_epoch, r.parent_seq)
            self._merged[r.unit, parent].add((lineage, r.ordinal))
        elif type(r) is rec.Window and r.state == rec.WINDOW_CLOSED and r.source in self.ways.windows:
            self._closed.setdefault(lineage, (incarnation, r))

    def _admit(self, incarnation: int, lineage: Lineage, r: rec.Admitted) -> None:
        lo_ns, hi_ns = instant(r.origin_lo_ns), instant(r.origin_hi_ns)
        known = self.admitted.setdefault(lineage, _Admission(lo_ns, hi_ns, self._node(incarnation)))
        known.lo_ns, known.hi_ns = min(known.lo_ns, lo_ns), max(known.hi_ns, hi_ns)
        known.node = min(known.node, self._node(incarnation))

    def _node(self, incarnation: int) -> int:
        return self._traces[incarnation].incarnation.node

    def _start(self, incarnation: int, unit: int, lineage: Lineage, ordinal: int, new: _Started) -> None:
        if unit in self.ways.slots or unit in self.ways.fusions or unit in self.ways.collects.values():
            started = self._started[unit, lineage, ordinal]
            started[incarnation] = min(started.get(incarnation, new), new)

    # -- windows

    def _in_windows(self) -> dict[Lineage, list[tuple[Lineage, bool]]]:
        """By the lineage of a window: the tuples that are in it, or that may be."""
        found: dict[Lineage, list[tuple[Lineage, bool]]] = defaultdict(list)
        windows: dict[int, list[_Window]] = defaultdict(list)
        for lineage, (incarnation, r) in self._closed.items():
            window = _Window(instant(r.start), instant(r.end), instant(r.at_ns), incarnation, lineage)
            if window.end - window.start <= self._plan.windows[lineage[0]].length_ns:
                windows[lineage[0]].append(window)
        youngest = self._youngest() if windows else {}
        for source, each in windows.items():
            each.sort()
            view, collects = self._plan.windows[source], self.ways.collects[source]
            for (unit, lineage, ordinal), started in self._started.items():
                if unit != collects or ordinal or lineage not in self.admitted:
                    continue
                late = self._late(view, lineage, youngest[lineage])
                if late is True:
                    continue
                lo, hi = self._position(source, view, lineage)
                for window in each[bisect_right(each, (lo - view.length_ns,)) :]:
                    if window.start > hi:
                        break
                    came = started.get(window.incarnation)
                    if lo < window.end and came is not None and came.start_ns <= window.at_ns:
                        sure = window.start <= lo and hi < window.end and late is False
                        found[window.lineage].append((lineage, sure))
        return found

    def _youngest(self) -> dict[Lineage, _Youngest]:
        """Of each tuple. The lower numbers are settled before it, so what has one that is too young is in no window."""
        found: dict[Lineage, _Youngest] = {}
        before, youngest = (-1, -1), _Youngest(-INSTANT_LIMIT, -INSTANT_LIMIT)
        for lineage, each in sorted(self.admitted.items()):
            if lineage[:2] != before:
                before, youngest = lineage[:2], _Youngest(-INSTANT_LIMIT, -INSTANT_LIMIT)
            found[lineage] = youngest
            youngest = _Youngest(max(youngest.lo_ns, each.lo_ns), max(youngest.hi_ns, each.hi_ns))
        return found

    def _late(self, view: WindowView, lineage: Lineage, youngest: _Youngest) -> bool | None:
        """Whether a tuple is so much older than a lower number that windows leave it out; None: it may be."""
        if view.kind == COUNT:
            return False
        admitted = self.admitted[lineage]
        if admitted.hi_ns + view.lateness_ns < youngest.lo_ns:
            return True
        return None if admitted.lo_ns + view.lateness_ns < youngest.hi_ns else False

    def _position(self, source: int, view: WindowView, lineage: Lineage) -> tuple[int, int]:
        """Where a tuple lies among the windows of a source, at least and at most; nowhere: nobody knows, as is said."""
        if view.kind == COUNT:
            return lineage[2], lineage[2]
        admitted = self.admitted[lineage]
        offset = self._positions.get((source, admitted.node), NOWHERE)
        return admitted.lo_ns + offset.lo, admitted.lo_ns + offset.hi

    # -- what is behind

    def of_result(self, datum: Datum) -> Extents:
        """What is behind a result; of its own tuple the number alone."""
        source, epoch, seq = datum.lineage
        found = self._below(datum)
        if source not in self._plan.windows and source in self.ways.canonical:
            own = Extent(INSTANT_LIMIT, None, (epoch, seq), (epoch, seq))
            _add(found, {self.ways.canonical[source]: own}, sure=True)
        return found

    def _of(self, datum: Datum) -> Extents:
        """What is behind a tuple, with itself."""
        if datum not in self._extents:
            found = self._below(datum)
            source, epoch, seq = datum.lineage
            if source not in self._plan.windows and source in self.ways.canonical:
                admitted, number = self.admitted.get(datum.lineage), (epoch, seq)
                own = Extent(-INSTANT_LIMIT, None, number, number)
                if admitted is not None:
                    own = own._replace(oldest_lo_ns=admitted.lo_ns, oldest_hi_ns=admitted.hi_ns)
                _add(found, {self.ways.canonical[source]: own}, sure=True)
            self._extents[datum] = found
        return self._extents[datum]

    def _below(self, datum: Datum) -> Extents:
        found: Extents = {}
        for child, sure in self._children(datum):
            _add(found, self._of(child), sure)
        return found

    def _children(self, datum: Datum) -> Iterator[tuple[Datum, bool]]:
        """The tuples that are behind it, each at its place, and whether they are for certain."""
        lineage = datum.lineage
        view = self.ways.places[datum.place]
        for unit in view.units:
            parts = self.ways.fusions.get(unit)
            if parts in view.below and parts is not None:
                for part, of in self._merged.get((unit, lineage), ()):
                    yield Datum(parts, part, of), True
        for read in self._reads(datum):
            if read.value is not None:
                yield Datum(read.place, read.value.lineage, read.value.ordinal), read.sure
        window = self.ways.windows.get(lineage[0])
        if window in view.below and window is not None:
            for each, sure in self._collected.get(lineage, ()):
                yield Datum(window, each, 0), sure

    def unread(self, datum: Datum) -> bool:
        """Whether an instance on its way read nothing for certain, at some port."""
        return any(read.missing for read in self._reads(datum))

    def _reads(self, datum: Datum) -> Iterator[_Read]:
        """What instances on its way read."""
        view = self.ways.places[datum.place]
        for unit in view.units:
            slots = [slot for slot in self.ways.slots.get(unit, ()) if slot.place in view.below]
            for each in _line(datum.ordinal) if slots else ():
                for incarnation, started in self._started.get((unit, datum.lineage, each), {}).items():
                    for slot in slots:
                        yield self._read(incarnation, started, slot)

    def _read(self, incarnation: int, started: _Started, slot: Slot) -> _Read:
        came = self._values.get((incarnation, slot.place), {})
        for epoch in epochs_before(started.epoch, came):
            at = bisect_right(came[epoch], started.start_ns, key=lambda each: each.at_ns)
            if at:
                value = came[epoch][at - 1]
                fresh, everywhere = (
                    self._fresh(incarnation, started.start_ns, value, most_ns)
                    for most_ns in (slot.max_age_ns, slot.strictest_ns)
                )
                sure = fresh is True and epoch == started.epoch
                return _Read(slot.place, None if fresh is False else value, sure, everywhere is False)
        return _Read(slot.place, None, sure=False, missing=True)

    def _fresh(self, incarnation: int, start_ns: int, value: _Value, max_age_ns: int) -> bool | None:
        """Whether a value was young enough to be one; None: unknown, as no record has its origin on that clock."""
        if not max_age_ns:
            return True
        if start_ns - value.at_ns > max_age_ns:
            return False
        admitted = self.admitted.get(value.lineage)
        ahead = None if admitted is None else self._ahead.get((self._node(incarnation), admitted.node))
        if admitted is None or ahead is None:
            return None
        age_ns = start_ns - admitted.lo_ns
        if age_ns - ahead.hi > max_age_ns:
            return False
        return True if age_ns - ahead.lo <= max_age_ns else None


def _add(found: Extents, more: Mapping[int, Extent], sure: bool) -> None:
    for source, new in more.items():
        each = new if sure else new._replace(oldest_hi_ns=None, newest_sure=None)
        if source in found:
            each = _both(found[source], each)
        found[source] = each


def _both(one: Extent, other: Extent) -> Extent:
    oldest = [each for each in (one.oldest_hi_ns, other.oldest_hi_ns) if each is not None]
    newest = [each for each in (one.newest_sure, other.newest_sure) if each is not None]
    return Extent(
        min(one.oldest_lo_ns, other.oldest_lo_ns),
        min(oldest, default=None),
        max(one.newest, other.newest),
        max(newest, default=None),
    )


def _line(ordinal: int) -> Iterable[int]:
    """The ordinals of the tuples that a result stems from."""
    return {ordinal, ordinal >> 8, ordinal >> 16, ordinal >> 24, 0}


__all__ = ["look_behind"]
