"""Who made the data old: where the oldest datum behind an output's oldest results was, hop by hop.

Of the results above their limit, or the worst one, that a report names. A result is followed back to the datum as the
engines do it, and each tuple on the way there as a missed result is (`way.py`). What no hop explains is the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coordinator.report.blame import way
from coordinator.report.blame.missed import ClockNews
from coordinator.report.blame.near import NearRecord, near
from coordinator.report.blame.record_pieces import BEYOND_NS, Notes, Piece, pieces
from coordinator.report.blame.way import Stretch, Way
from coordinator.report.facts.clock_intervals import run_clocks
from coordinator.report.facts.data_ways import COUNT, Place, data_ways
from coordinator.report.facts.merged_plans import epochs_before
from coordinator.report.facts.mixing import mixed
from coordinator.report.facts.plan_view import SIDE as SIDE_CONSUMER
from coordinator.report.facts.plan_view import consumer_id
from coordinator.report.facts.reader import Run
from coordinator.report.landing.record_array import value
from coordinator.report.report_document import AgeHop, AgeHopKind, DataAge, Freshness, OldResult, Report
from protos import records as rec

SIDE, WINDOW, INPUTS = "side", "window", "inputs"
Lineage = tuple[int, int, int]


def with_hops(run: Run, report: Report) -> dict[str, Freshness]:
    """What the report says of ages, with the hops of the oldest data."""
    if not any(each.age is not None and each.age.worst for each in report.freshness.values()):
        return dict(report.freshness)
    search = _Search(run)
    return {
        name: each if each.age is None else replace(each, age=search.blamed(name, each.age))
        for name, each in report.freshness.items()
    }


class Datum(NamedTuple):
    """A tuple at a place."""

    place: int
    lineage: Lineage
    ordinal: int


class _Step(NamedTuple):
    """From a datum to one behind it. kind: it lay at a side input, in a window or a fusion; from when to when, on the
    clock of the incarnation. unit: that read, fused or collected it. max_age_ns: of a value that was read; 0: any."""

    child: Datum
    kind: str
    incarnation: int
    from_ns: int
    until_ns: int
    unit: int
    max_age_ns: int = 0


class _Admission(NamedTuple):
    """lo_ns: the origin at the least, on the clock of that node."""

    lo_ns: int
    node: int


class _Oldest(NamedTuple):
    """origin_ns: on the clock of the output's node, at the least."""

    origin_ns: int
    steps: tuple[_Step, ...]


class _Value(NamedTuple):
    """Of a side input. at_ns: when it came."""

    at_ns: int
    lineage: Lineage
    ordinal: int


@dataclass(frozen=True, slots=True)
class _Came:
    """Values of one side input at one incarnation, in the order in which they came."""

    at_ns: list[int]
    data: list[tuple[Lineage, int]]

    def before(self, at_ns: int) -> _Value | None:
        """The last one by then."""
        at = bisect_right(self.at_ns, at_ns)
        return _Value(self.at_ns[at - 1], *self.data[at - 1]) if at else None


class _Records:
    """What is looked up beside the records of single tuples, as the joined view names it."""

    def __init__(self, run: Run) -> None:
        self.ways = data_ways(run.plan)
        self.came: dict[tuple[int, int], dict[int, _Came]] = defaultdict(dict)  # each by the plan epoch
        self.merged: dict[tuple[int, Lineage], list[tuple[Lineage, int, int, int]]] = defaultdict(list)
        self.collected: dict[int, set[Lineage]] = defaultdict(set)
        self.origins: dict[Lineage, int] = {}
        notes = {each.number: Notes.of(each) for each in run.incarnations}
        self.epochs = {number: each.epochs(run.plan.numbers) for number, each in notes.items()}
        self.clocks = {number: list(_news(each)) for number, each in notes.items()}
        kinds = (rec.ABSORBED, rec.MERGED, *((rec.ADMITTED, rec.RAN) if self.ways.windows else ()))
        for incarnation in run.incarnations:
            for piece in pieces(incarnation, self.epochs[incarnation.number], kinds):
                self._take(incarnation.number, piece)

    def _take(self, incarnation: int, piece: Piece) -> None:
        absorbed = piece.of(rec.ABSORBED)
        streams, ordinals = absorbed.id(rec.Absorbed.stream).tolist(), absorbed[rec.Absorbed.ordinal].tolist()
        at = absorbed.instant(rec.Absorbed.at_ns).tolist()
        under, unreadable = (absorbed.raw["flags"] & rec.PLAN_EPOCH_MASK).tolist(), absorbed.flagged.tolist()
        columns = (_lineages(absorbed), absorbed.ref.tolist(), streams, ordinals, at, under, unreadable)
        for lineage, operator, stream, ordinal, at_ns, epoch, spoilt in zip(*columns, strict=True):
            place = self.ways.absorbs.get((operator, stream))
            if place is not None and not spoilt:
                came = self.came[incarnation, place].setdefault(epoch, _Came([], []))
                came.at_ns.append(at_ns)
                came.data.append((lineage, ordinal))
        merged = piece.of(rec.MERGED)
        fields = (rec.Merged.parent_epoch, rec.Merged.parent_seq, rec.Merged.ordinal, rec.Merged.at_ns)
        parents = merged.id(rec.Merged.parent_source).tolist()
        columns = (_lineages(merged), merged.ref.tolist(), parents, *(merged[each].tolist() for each in fields))
        for lineage, unit, source, epoch, seq, ordinal, at_ns in zip(*columns, strict=True):
            if unit in self.ways.fusions:
                self.merged[unit, (source, epoch, seq)].append((lineage, ordinal, incarnation, at_ns))
        if self.ways.windows:
            self._take_windows(piece)

    def _take_windows(self, piece: Piece) -> None:
        ran, collects = piece.of(rec.RAN), set(self.ways.collects.values())
        ran = ran.where(np.isin(ran.ref, list(collects)))
        for unit, lineage in zip(ran.ref.tolist(), _lineages(ran), strict=True):
            self.collected[unit].add(lineage)
        admitted = piece.of(rec.ADMITTED)
        lo = admitted.instant(rec.Admitted.origin_lo_ns).tolist()
        self.origins.update(zip(_lineages(admitted), lo, strict=True))


def _lineages(piece: Piece) -> list[Lineage]:
    columns = (piece.source.tolist(), piece.raw["epoch"].tolist(), piece.raw["seq"].tolist())
    return list(zip(*columns, strict=True))


def _news(notes: Notes) -> Iterator[ClockNews]:
    told = notes.clocks[notes.clocks["flags"] < rec.FLAG]
    fields = (rec.Clock.peer, rec.Clock.at_ns, rec.Clock.offset_lo_ns, rec.Clock.offset_hi_ns)
    columns = (np.clip(value(told, each).astype(np.int64), -BEYOND_NS, BEYOND_NS).tolist() for each in fields)
    yield from (ClockNews(*each) for each in zip(*columns, strict=True))


class _Search:
    def __init__(self, run: Run) -> None:
        self._run, self._plan = run, run.plan
        self._records = _Records(run)
        self._ways, self._clocks = self._records.ways, run_clocks(run).clocks
        self._near: dict[Lineage, Sequence[NearRecord]] = {}
        self._steps: dict[Datum, tuple[_Step, ...]] = {}

    def blamed(self, output: str, age: DataAge) -> DataAge:
        """With its hops, of the results above the limit for certain, else of the worst one."""
        above = [each for each in age.worst if each.age_least_ns > age.limit_ns] or list(age.worst[:1])
        id_ = next(each.id for each in self._plan.outputs.values() if each.name == output)
        found = [(each, datum) for each in above for datum in self._named(id_, each)]
        self._follow([datum for _, datum in found])
        sums: dict[tuple[str, str], int] = defaultdict(int)
        whole = n = 0
        for each, datum in found:
            hops = self._hops(id_, datum)
            if hops is None or each.age_ns is None:
                continue
            n, whole = n + 1, whole + each.age_ns
            hops["rest", "rest"] += max(0, each.age_ns - sum(hops.values()))
            for hop, ns in hops.items():
                sums[hop] += ns
        longest = sorted(sums.items(), key=lambda one: (-one[1], one[0]))
        return replace(age, blamed=n, hops=tuple(_hop(*hop, ns, n, whole) for hop, ns in longest if ns))

    def _named(self, output: int, result: OldResult) -> Iterator[Datum]:
        """The results that it may be: a name stands for a source of each plan."""
        names = {id_: self._plan.streams[stream] for id_, (_, stream) in self._plan.sources.items()}
        names |= {id_: view.name for id_, view in self._plan.windows.items()}
        for source, name in names.items():
            if name == result.source:
                yield Datum(self._ways.outputs[output], (source, result.epoch, result.seq), result.ordinal)

    # -- what is behind

    def _follow(self, data: Sequence[Datum]) -> None:
        """Reads what is needed of all data and of those behind them, place after place."""
        line = list(dict.fromkeys(data))
        for _ in range(self._ways.depth):
            self._read({each.lineage for each in line})
            self._steps.update((each, tuple(self._behind(each))) for each in line if each not in self._steps)
            line = list(dict.fromkeys(step.child for each in line for step in self._steps[each]))
        self._read({each.lineage for each in line})

    def _read(self, lineages: set[Lineage]) -> None:
        wanted = sorted(lineages - self._near.keys())
        if wanted:
            columns = (np.array(each, np.int64) for each in zip(*wanted, strict=True))
            codes = mixed(*columns)
            told = near(self._run, self._records.epochs, codes)
            self._near.update(
                (lineage, told.get(code, ())) for lineage, code in zip(wanted, codes.tolist(), strict=True)
            )

    def _behind(self, datum: Datum) -> Iterator[_Step]:
        view = self._ways.places[datum.place]
        for unit in sorted(view.units):
            parts = self._ways.fusions.get(unit)
            if parts is not None and parts in view.below:
                for lineage, ordinal, incarnation, at_ns in self._records.merged.get((unit, datum.lineage), ()):
                    yield _Step(Datum(parts, lineage, ordinal), INPUTS, incarnation, at_ns, at_ns, unit)
            yield from self._side_values(datum, unit)
        window = self._ways.windows.get(datum.lineage[0])
        if window is not None and window in view.below:
            yield from self._oldest_within(datum.lineage, window)

    def _side_values(self, datum: Datum, unit: int) -> Iterator[_Step]:
        below = self._ways.places[datum.place].below
        slots = [each for each in self._ways.slots.get(unit, ()) if each.place in below]
        began: dict[tuple[int, int], tuple[int, int]] = {}  # when, and under which plan epoch
        line = {datum.ordinal, datum.ordinal >> 8, datum.ordinal >> 16, datum.ordinal >> 24, 0}
        for told in self._near[datum.lineage] if slots else ():
            r = told.record
            if isinstance(r, (rec.Ran, rec.Lost)) and r.ref == unit and r.ordinal in line and r.start_ns:
                key = told.incarnation.number, r.ordinal
                new = r.start_ns, r.plan_epoch_low
                began[key] = min(began.get(key, new), new)
        for (incarnation, _), (start_ns, epoch) in began.items():
            for slot in slots:
                came = self._records.came.get((incarnation, slot.place), {})
                before = (came[each].before(start_ns) for each in epochs_before(epoch, came))
                value = next((each for each in before if each is not None), None)
                if value and (not slot.max_age_ns or start_ns - value.at_ns <= slot.max_age_ns):
                    child = Datum(slot.place, value.lineage, value.ordinal)
                    yield _Step(child, SIDE, incarnation, value.at_ns, start_ns, unit, slot.max_age_ns)

    def _oldest_within(self, lineage: Lineage, place: int) -> Iterator[_Step]:
        """Of a window's tuples the one with the oldest origin."""
        unit = self._ways.collects[lineage[0]]
        for told in self._near[lineage]:
            r = told.record
            if not isinstance(r, rec.Window) or r.state != rec.WINDOW_CLOSED:
                continue
            inside = [each for each in self._collected(lineage[0]) if r.start <= each[0] < r.end]
            if inside:
                _, oldest = min(inside)
                yield _Step(Datum(place, oldest, 0), WINDOW, told.incarnation.number, r.at_ns, r.at_ns, unit)

    def _collected(self, source: int) -> list[tuple[int, Lineage]]:
        """Where the tuples lie that a source's windows collect."""
        view, found = self._plan.windows[source], []
        for lineage in self._records.collected[self._ways.collects[source]]:
            if view.kind == COUNT:
                found.append((lineage[2], lineage))
            elif lineage in self._records.origins:
                node = self._plan.sources[lineage[0]][0]
                offset = self._clocks.ahead(view.node, node)
                if offset is not None:
                    found.append((self._records.origins[lineage] + offset.lo, lineage))
        return found

    def _oldest(self, datum: Datum, node: int, without: Sequence[str]) -> _Oldest | None:
        """The oldest datum that counts, of all that are behind one."""
        found = [self._origin(datum, node, without)] if datum.lineage[0] not in self._plan.windows else []
        for step in self._steps.get(datum, ()):
            behind = self._oldest(step.child, node, without) if self._counts(step) else None
            found.append(None if behind is None else _Oldest(behind.origin_ns, (step, *behind.steps)))
        return min((each for each in found if each is not None), key=lambda each: each.origin_ns, default=None)

    def _counts(self, step: _Step) -> bool:
        """Whether a value may have been young enough to be one, by its origin."""
        admitted = self._admitted(step.child.lineage)
        if not step.max_age_ns or admitted is None:
            return True
        ahead = self._clocks.ahead(self._run.incarnations[step.incarnation].node, admitted.node)
        return ahead is None or step.until_ns - admitted.lo_ns - ahead.hi <= step.max_age_ns

    def _admitted(self, lineage: Lineage) -> _Admission | None:
        told = [each for each in self._near.get(lineage, ()) if isinstance(each.record, rec.Admitted)]
        if not told:
            return None
        lo_ns = min(each.record.origin_lo_ns for each in told if isinstance(each.record, rec.Admitted))
        return _Admission(lo_ns, min(each.incarnation.node for each in told))

    def _origin(self, datum: Datum, node: int, without: Sequence[str]) -> _Oldest | None:
        source, (there, stream) = datum.lineage[0], self._plan.sources.get(datum.lineage[0], (0, 0))
        if source not in self._plan.sources or self._plan.streams[stream] in without:
            return None
        admitted = self._admitted(datum.lineage)
        return None if admitted is None else _Oldest(self._clocks.on(node, there, admitted.lo_ns).lo, ())

    # -- the way there

    def _hops(self, output: int, result: Datum) -> dict[tuple[str, str], int] | None:
        """(kind, place) -> ns; None: there is no such result, or nothing behind it."""
        view = self._plan.outputs[output]
        ends = [
            each
            for each in self._near[result.lineage]
            if isinstance(each.record, rec.Output) and each.incarnation.node == view.node
            and (each.record.output, each.record.ordinal) == (output, result.ordinal)
        ]  # fmt: skip
        end = min(ends, key=lambda each: each.record.at_ns, default=None)
        oldest = self._oldest(result, view.node, self._plan.freshness[output].age_without)
        if end is None or oldest is None:
            return None
        sums: dict[tuple[str, str], int] = defaultdict(int)
        made = self._way(result).to_result(output, end.incarnation.number, end.record.at_ns, result.ordinal)
        for step in oldest.steps:
            self._sum(sums, _after(made, step))
            made = self._way_to(step, sums)
        self._sum(sums, made)
        return sums

    def _way(self, datum: Datum) -> Way:
        return Way(self._plan, self._near.get(datum.lineage, ()), self._records.clocks)

    def _way_to(self, step: _Step, sums: dict[tuple[str, str], int]) -> tuple[Stretch, ...]:
        """Of the tuple that was read, fused or collected, to where it lay; how long it lay there is summed."""
        child, incarnation = step.child, self._run.incarnations[step.incarnation]
        place = self._ways.places[child.place]
        if step.kind == SIDE:
            streams = [
                stream
                for (operator, stream), number in self._ways.absorbs.items()
                if number == child.place
                and consumer_id(SIDE_CONSUMER, operator, stream) in self._plan.consumers.get((place.node, stream), ())
            ]
            at = f"lying at side input {place.name} at {self._plan.nodes[place.node]}"
            sums[SIDE, at] += max(0, step.until_ns - step.from_ns)
            return self._way(child).to_place(incarnation.node, streams, step.from_ns, child.ordinal)
        if step.kind == INPUTS:
            made = self._way(child).to_unit(step.unit, incarnation, step.from_ns, child.ordinal)
            waited = made[-1:] if made and made[-1].kind == way.QUEUE and made[-1].unit == step.unit else ()
            sums[INPUTS, self._waiting(place)] += sum(each.ns for each in waited)
            return made[: len(made) - len(waited)]
        ends = (each.record for each in self._near[child.lineage] if each.incarnation is incarnation)
        until = max((r.end_ns for r in ends if isinstance(r, rec.Ran) and r.unit == step.unit), default=step.until_ns)
        at = f"in a window of {place.name} at {self._plan.nodes[place.node]}"
        sums[WINDOW, at] += max(0, step.until_ns - until)
        return self._way(child).to_unit(step.unit, incarnation, until, child.ordinal)

    def _sum(self, sums: dict[tuple[str, str], int], stretches: Sequence[Stretch]) -> None:
        for number, each in enumerate(stretches):
            fused = (
                self._fused(stretches[number + 1]) if each.kind == way.REST and number + 1 < len(stretches) else None
            )
            hop = (each.kind, self._place(each)) if fused is None else (INPUTS, fused)
            sums[hop] += each.ns + (each.unsure_ns if each.kind == way.ADMISSION else 0)

    def _fused(self, queued: Stretch) -> str | None:
        """What a tuple waited for that was the oldest one of a fusion."""
        if queued.kind != way.QUEUE or queued.unit not in self._ways.fusions:
            return None
        return self._waiting(self._ways.places[self._ways.fusions[queued.unit]])

    def _waiting(self, fusion: Place) -> str:
        return f"waiting for other inputs of {fusion.name} at {self._plan.nodes[fusion.node]}"

    def _place(self, each: Stretch) -> str:
        node = self._plan.nodes.get(each.at.node, "?")
        if each.kind in {way.QUEUE, way.RUN}:
            label = self._plan.units[each.unit].label if each.unit in self._plan.units else "?"
            return f"{'queued for' if each.kind == way.QUEUE else 'running'} {label} at {node}"
        if each.kind == way.ADMISSION and isinstance(each.record, rec.Admitted):
            return f"before admission of {self._names.get(each.record.source_id, '?')}"
        return f"on the link to {node}" if each.kind == way.LINK else "rest"

    @cached_property
    def _names(self) -> Mapping[int, str]:
        return {source: self._plan.streams[stream] for source, (_, stream) in self._plan.sources.items()}


def _after(made: Sequence[Stretch], step: _Step) -> Sequence[Stretch]:
    """What of a way came after it read, fused, or its window closed."""
    if step.kind == WINDOW:
        return [each for each in made if each.kind != way.ADMISSION]
    kinds = {way.RUN} if step.kind == SIDE else {way.RUN, way.QUEUE}
    for number, each in enumerate(made):
        if each.at.number == step.incarnation and each.unit == step.unit and each.kind in kinds:
            return made[number:]
    return ()


def _hop(kind: str, place: str, ns: int, results: int, whole: int) -> AgeHop:
    told: AgeHopKind = kind  # type: ignore[assignment]
    return AgeHop(told, place, ns // results, ns / whole if whole else None)


__all__ = ["with_hops"]
