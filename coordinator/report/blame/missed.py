"""The missed results of a run, as its records tell of them; and what else one look at all records gives.

A result is late, or undecidable, as its OUTPUT record says; shed or lost as a SHED or LOST record keeps it away; lost
with a runtime that crashed, or on a link, where records lack (`unended.py`). What was delivered was not missed,
even if a copy of it was lost. Results that a filter might have taken are left out, as in the sums of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from coordinator.report.blame.record_pieces import BEYOND_NS, Bools, Codes, Ints, Notes, Piece, mixed, pieces
from coordinator.report.counts import POLICED
from coordinator.report.facts.plan_view import UNIT, PlanView, Reach, consumer_id
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing.record_array import Raw, value
from protos import records as rec
from protos.record_layout import Field

LINEAGE = ("source", "epoch", "seq")
LATE, UNDECIDABLE, LOST, SHED = range(4)  # of several ends of one result the least counts, but for what was delivered
OUTCOMES = ("late", "undecidable", "lost", "shed")
RESTART, LINK = -1, -2  # causes of LOST that no record has
DTYPE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "output", "source", "epoch", "seq", "ordinal", "outcome", "why", "incarnation", "at_ns", "latency_ns",
            "most_ns", "unit", "stream", "operator", "peer", "detail",
        )
    ]
)  # fmt: skip
Rows = Raw  # of DTYPE: why: SHED's policy or LOST's cause; unit, stream, operator, peer: -1 where it has none;
# detail: of a window without a result, the cause of WINDOW
MOST_FILTERED = 10_000
KINDS = (
    rec.ADMITTED,
    rec.OUTPUT,
    rec.SHED,
    rec.LOST,
    rec.RAN,
    rec.SENT,
    rec.RECEIVED,
    rec.MERGED,
    rec.ABSORBED,
    rec.WINDOW,
)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a source admitted, in the order of the records. sent_ns: 0 where the client said nothing."""

    at_ns: Ints
    sent_ns: Ints
    origin_ns: Ints
    code: Codes


@dataclass(frozen=True, slots=True)
class ClockNews:
    """What an incarnation says of a peer's clock: from `at_ns` on its own is ahead of it by lo_ns to hi_ns."""

    peer: int
    at_ns: int
    lo_ns: int
    hi_ns: int


@dataclass(frozen=True, slots=True)
class Stood:
    """The node's own clock stood still, for slept_ns at least, before `at_ns`."""

    since_ns: int
    at_ns: int
    slept_ns: int


@dataclass
class Looked:
    """What one look at all records of a run gives. open: (incarnation, code) of lineages that owe ends in one that
    crashed; unreceived: codes of lineages that a peer never got; heard: of an incarnation and a peer, when the first
    and the last tuple that it got had left there, on the peer's clock; began: when incarnations began that followed
    another one of their node."""

    notes: Mapping[int, Notes]
    epochs: Mapping[int, Mapping[int, int]]
    missed: Rows = field(default_factory=lambda: np.zeros(0, DTYPE))
    arrivals: dict[int, Arrivals] = field(default_factory=dict)
    clocks: dict[int, list[ClockNews]] = field(default_factory=dict)
    stood: dict[int, list[Stood]] = field(default_factory=dict)
    open: dict[int, Codes] = field(default_factory=dict)
    unreceived: Codes = field(default_factory=lambda: np.zeros(0, np.uint64))
    heard: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    filtering: frozenset[tuple[int, int]] = frozenset()
    delivered: Codes = field(default_factory=lambda: np.zeros(0, np.uint64))


def look(run: Run, crashed: frozenset[int], whole: frozenset[int]) -> Looked:
    """Two looks at all records. crashed: incarnations whose open tuples went with them; whole: nodes whose traces prove
    that a record is absent."""
    notes = {each.number: Notes.of(each) for each in run.incarnations}
    epochs = {number: each.epochs(run.plan.numbers) for number, each in notes.items()}
    found = Looked(notes, epochs)
    scan = _Scan(run.plan, found)
    for incarnation in run.incarnations:
        for piece in pieces(incarnation, epochs[incarnation.number], KINDS):
            scan.take(incarnation, piece, incarnation.number in crashed)
        _clocks(run.plan, incarnation, found)
    scan.settle(whole)
    found.began = dict(_begun_again(run, notes, crashed))
    return found


def _begun_again(run: Run, notes: Mapping[int, Notes], crashed: frozenset[int]) -> Iterator[tuple[int, int]]:
    """When those incarnations began that another one of their node came before. Their numbers tell no order."""
    began = {number: int(value(each.plans, rec.Plan.at_ns)[0]) for number, each in notes.items() if len(each.plans)}
    for each in run.incarnations:
        others = [other for other in run.incarnations if other.node == each.node and other is not each]
        for other in others:
            known = each.number in began and other.number in began
            before = other.clock == each.clock and known and began[other.number] < began[each.number]
            if before or (known and other.clock != each.clock and other.number in crashed):
                yield each.number, began[each.number]


def key_of(rows: Rows) -> Codes:
    """One number per result."""
    return mixed(*(rows[name] for name in ("output", "source", "epoch", "seq", "ordinal")))


def reduced(rows: Rows, delivered: Codes) -> Rows:
    """Each result once, and none that was delivered but for how it was. delivered: sorted."""
    if not len(rows):
        return rows
    keys = key_of(rows)
    kept = (rows["outcome"] <= UNDECIDABLE) | ~_among(keys, delivered)
    rows, keys = rows[kept], keys[kept]
    order = np.lexsort((rows["latency_ns"], rows["most_ns"], np.maximum(rows["outcome"], UNDECIDABLE), keys))
    rows, keys = rows[order], keys[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return rows[first]


class _Scan:
    """Takes piece after piece."""

    def __init__(self, plan: PlanView, found: Looked) -> None:
        self._plan, self._found = plan, found
        self._rows: list[Rows] = []
        self._candidates: list[tuple[Incarnation, Piece]] = []  # SHED and LOST, until it is known what filters
        self._in_time: list[Codes] = []
        self._delivered: list[Codes] = []
        self._arrivals: dict[int, list[tuple[Ints, ...]]] = {}
        self._nothing: dict[tuple[int, int], list[Codes]] = {}  # by unit and exit: instances that gave nothing there
        self._told: list[Codes] = []  # those that had given something before they were switched away from
        self._owed: dict[int, list[tuple[Codes, Ints]]] = {}
        self._left: dict[int, list[tuple[Codes, Codes]]] = {}
        self._came: list[Codes] = []
        self._without: list[tuple[Codes, Ints]] = []  # windows without a result, and why

    def take(self, incarnation: Incarnation, piece: Piece, crashed: bool) -> None:
        self._outputs(incarnation, piece.of(rec.OUTPUT))
        ends = piece.of(rec.SHED, rec.LOST)
        if len(ends):
            self._candidates.append((incarnation, ends))
        self._windows(piece.of(rec.WINDOW))
        self._admitted(piece.of(rec.ADMITTED))
        self._filters(piece.of(rec.RAN))
        self._links(incarnation, piece)
        if crashed:
            self._owed.setdefault(incarnation.number, []).append(_balance(self._plan, incarnation, piece))

    def settle(self, whole: frozenset[int]) -> None:
        """All records were seen."""
        found = self._found
        told = np.sort(_joined(self._told))
        found.filtering = frozenset(
            each for each, keys in self._nothing.items() if not _among(_joined(keys), told).all()
        )
        found.delivered = np.sort(_joined(self._delivered))
        reach = Reach(self._plan, found.filtering)
        for incarnation, ends in self._candidates:
            self._rows += _ends(self._plan, reach, incarnation, ends)
        rows = np.concatenate([np.zeros(0, DTYPE), *self._rows])
        self._explain(rows)
        in_time = np.sort(_joined(self._in_time))
        rows = reduced(rows, found.delivered)
        found.missed = rows[~_among(key_of(rows), in_time)] if len(rows) else rows
        for source, parts in self._arrivals.items():
            columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
            found.arrivals[source] = Arrivals(columns[0], columns[1], columns[2], columns[3].astype(np.uint64))
        for number, owed in self._owed.items():
            found.open[number] = _open(owed)
        self._settle_links(whole)

    def _explain(self, rows: Rows) -> None:
        """Why windows gave no result, in `detail` of theirs."""
        mine = np.flatnonzero((rows["outcome"] == SHED) & (rows["why"] == rec.POLICY_WINDOW))
        if not len(mine) or not self._without:
            return
        codes, causes = (np.concatenate(each) for each in zip(*self._without, strict=True))
        order = np.argsort(codes, kind="stable")
        codes, causes = codes[order], causes[order]
        asked = mixed(*(rows[name][mine] for name in LINEAGE))
        at = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        rows["detail"][mine] = np.where(codes[at] == asked, causes[at], 0)

    def _settle_links(self, whole: frozenset[int]) -> None:
        came = np.sort(_joined(self._came))
        missing = [
            lineage[~_among(key, came)] for peer, parts in self._left.items() if peer in whole for key, lineage in parts
        ]
        self._found.unreceived = np.unique(_joined(missing))

    def _outputs(self, incarnation: Incarnation, outputs: Piece) -> None:
        if not len(outputs):
            return
        ids = outputs.ref
        for own, known_as in self._plan.same.items():
            ids = np.where(ids == own, known_as, ids)
        views = self._plan.outputs
        here = np.isin(ids, [each.id for each in views.values() if each.node == incarnation.node])
        outputs, ids = outputs.where(here), ids[here]
        if not len(outputs):
            return
        deadlines = _mapped(ids, {id_: view.deadline_ns for id_, view in views.items()})
        at_ns = outputs.instant(rec.Output.at_ns)
        most_ns = at_ns - outputs.instant(rec.Output.origin_lo_ns)
        least_ns = at_ns - outputs.instant(rec.Output.origin_hi_ns)
        rows = _blank(len(outputs), incarnation, outputs)
        rows["output"], rows["ordinal"], rows["at_ns"] = ids, outputs[rec.Output.ordinal], at_ns
        rows["latency_ns"], rows["most_ns"] = least_ns, most_ns
        rows["outcome"] = np.where(least_ns > deadlines, LATE, UNDECIDABLE)
        keys, met = key_of(rows), most_ns <= deadlines
        self._delivered.append(keys)
        self._in_time.append(keys[met])
        self._rows.append(rows[~met])

    def _windows(self, windows: Piece) -> None:
        """Why windows gave no result."""
        without = windows.where(np.isin(windows[rec.Window.state], (rec.WINDOW_ABANDONED, rec.WINDOW_SKIPPED)))
        if len(without):
            self._without.append((without.lineage, without[rec.Window.cause]))

    def _admitted(self, admitted: Piece) -> None:
        if not len(admitted):
            return
        source = admitted.id(rec.Admitted.source_id)
        columns = (
            admitted.instant(rec.Admitted.at_ns), admitted.instant(rec.Admitted.sent_ns),
            admitted.instant(rec.Admitted.origin_lo_ns), admitted.lineage.astype(np.int64),
        )  # fmt: skip
        for each in np.unique(source).tolist():
            if each not in self._plan.windows:
                mine = source == each
                self._arrivals.setdefault(each, []).append(tuple(column[mine] for column in columns))

    def _filters(self, ran: Piece) -> None:
        """Exits that gave nothing of a tuple, none of whose results were policed. An instance that was switched away
        from has said before what it gave, so it is told by its key; so many of an exit are looked at."""
        units, outputs = ran.id(rec.Ran.unit), ran[rec.Ran.outputs]
        keys = mixed(ran.lineage, units, ran[rec.Ran.ordinal])
        told = ran.flagged & ((outputs > 0) | (ran[rec.Ran.policed_results] > 0))
        if told.any():
            self._told.append(keys[told])
        whole = ~ran.flagged & (ran[rec.Ran.policed_results] == 0)
        for unit in np.unique(units[whole]).tolist():
            view = self._plan.units.get(unit)
            mine = whole & (units == unit)
            for exit_ in range(0 if view is None else len(view.exits)):
                nothing = keys[mine][(outputs[mine] >> (8 * exit_) & 0xFF) == 0]
                seen = self._nothing.setdefault((unit, exit_), [])
                if len(nothing) and sum(map(len, seen)) < MOST_FILTERED:
                    seen.append(nothing[:MOST_FILTERED])

    def _links(self, incarnation: Incarnation, piece: Piece) -> None:
        came = piece.of(rec.RECEIVED)
        if len(came):
            peer, stream = _peer(self._plan, came, rec.Received.peer), came.id(rec.Received.stream)
            self._came.append(mixed(came.lineage, peer, incarnation.node, stream, came[rec.Received.ordinal]))
            self._heard(incarnation.number, peer, came.instant(rec.Received.sent_ns))
        left = piece.of(rec.SENT)
        if len(left):
            peer, stream = _peer(self._plan, left, rec.Sent.peer), left.id(rec.Sent.stream)
            key, lineage = mixed(left.lineage, incarnation.node, peer, stream, left[rec.Sent.ordinal]), left.lineage
            for each in np.unique(peer).tolist():
                mine = peer == each
                self._left.setdefault(each, []).append((key[mine], lineage[mine]))

    def _heard(self, incarnation: int, peer: Ints, sent_ns: Ints) -> None:
        for each in np.unique(peer).tolist():
            mine, heard = sent_ns[peer == each], self._found.heard
            first, last = heard.get((incarnation, each), (BEYOND_NS, -BEYOND_NS))
            heard[incarnation, each] = min(first, int(mine.min())), max(last, int(mine.max()))


def _peer(plan: PlanView, piece: Piece, field_: Field) -> Ints:
    found = piece[field_]
    own, number = found.copy(), piece.number
    for (earlier, old), known_as in plan.peers.items():
        found = np.where((number == earlier) & (own == old), known_as, found)
    return found


def _blank(n: int, incarnation: Incarnation, piece: Piece) -> Rows:
    rows = np.zeros(n, DTYPE)
    for name in ("unit", "stream", "operator", "peer"):
        rows[name] = -1
    rows["incarnation"] = incarnation.number
    rows["source"], rows["epoch"], rows["seq"] = piece.source, piece.raw["epoch"], piece.raw["seq"]
    return rows


def _ends(plan: PlanView, reach: Reach, incarnation: Incarnation, ends: Piece) -> Iterator[Rows]:
    """One row for each result that SHED and LOST records keep away; alike ones at once."""
    shed = ends.raw["kind"] == rec.SHED
    nowhere = ends.raw["ref"] == rec.NO_REF
    to_peer = ~shed & ends.flagged
    in_unit = ~nowhere & ~to_peer
    why = np.where(shed, ends[rec.Shed.policy], ends[rec.Lost.cause])
    ordinal = np.where(shed, ends[rec.Shed.ordinal], ends[rec.Lost.ordinal])
    stream = np.where(in_unit, -1, ends.id(rec.Shed.stream))  # the same word in both
    operator = np.where(shed & in_unit & (ends[rec.Shed.operator] != 0), ends.id(rec.Shed.operator), -1)
    peer = np.where(to_peer, _peer(plan, ends, rec.Lost.peer), -1)
    given = np.where(~shed & in_unit, ends[rec.Lost.outputs], 0)
    about = np.stack([shed, np.where(in_unit, ends.ref, -1), stream, operator, peer, given, np.where(shed, why, 0)])
    alike, which = np.unique(about, axis=1, return_inverse=True)
    which = which.reshape(-1)
    for number, each in enumerate(alike.T.tolist()):
        mine = which == number
        outputs = _missing(plan, reach, incarnation.node, *each)
        part = ends.where(mine)
        for output, sure in outputs.items():
            if sure:
                rows = _blank(len(part), incarnation, part)
                rows["output"], rows["ordinal"], rows["why"] = output, ordinal[mine], why[mine]
                rows["outcome"], rows["at_ns"] = SHED if each[0] else LOST, part.instant(rec.Shed.at_ns)
                rows["unit"], rows["stream"], rows["operator"], rows["peer"] = each[1:5]
                yield rows


def _missing(
    plan: PlanView, reach: Reach, node: int, shed: int, unit: int, stream: int, operator: int, peer: int, given: int,
    policy: int,
) -> dict[int, bool]:  # fmt: skip
    """The outputs that are kept from their result, and whether that is sure."""
    if unit >= 0:
        kept = sum(1 << exit_ for exit_ in range(4) if given >> (8 * exit_) & 0xFF)
        if shed and (policy in rec.OWN_RESULT or operator >= 0):
            table = plan.before if policy in rec.OWN_RESULT else plan.through
            kept = table.get((unit, operator), 0)
        return reach.after(unit, kept)
    return reach.stream(peer if peer >= 0 else node, stream)


def _balance(plan: PlanView, incarnation: Incarnation, piece: Piece) -> tuple[Codes, Ints]:
    """What each record adds to what its lineage owes in an incarnation: an end for each consumer of what came, less
    those that it tells of."""
    consumers = {stream: len(found) for (node, stream), found in plan.consumers.items() if node == incarnation.node}
    kind, ref = piece.raw["kind"], piece.ref
    nowhere, flagged = piece.raw["ref"] == rec.NO_REF, piece.flagged
    owed = np.zeros(len(piece), np.int64)
    streams = {source: stream for source, (_, stream) in plan.sources.items()}
    owed += np.where(kind == rec.ADMITTED, _mapped(_mapped(ref, streams, -1), consumers), 0)
    owed += np.where(kind == rec.RECEIVED, _mapped(piece.id(rec.Received.stream), consumers), 0)
    in_unit = (kind == rec.LOST) & ~flagged & ~nowhere
    outputs = piece[rec.Ran.outputs]
    for exit_ in range(4):
        exits = {unit.id: unit.exits[exit_] for unit in plan.units.values() if len(unit.exits) > exit_}
        made = (outputs >> (8 * exit_) & 0xFF) * _mapped(_mapped(ref, exits, -1), consumers)
        owed += np.where((kind == rec.RAN) | in_unit, made, 0)
    owed += np.where(kind == rec.RAN, piece[rec.Ran.policed_results], 0)
    owed += np.where(in_unit, piece[rec.Lost.policed_results], 0)
    arrival = np.isin(kind, (rec.SHED, rec.LOST)) & nowhere & ~flagged
    everywhere = _mapped(piece.id(rec.Shed.stream), consumers)
    ended = ~np.isin(kind, (rec.ADMITTED, rec.RECEIVED)) & ~((kind == rec.RAN) & flagged)
    owed -= np.where(arrival, everywhere, ended)
    return piece.lineage, owed


def _open(owed: Iterable[tuple[Codes, Ints]]) -> Codes:
    codes, parts = (np.concatenate(each) for each in zip(*owed, strict=True))
    known, which = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(known), np.int64)
    np.add.at(sums, which.reshape(-1), parts)
    found: Codes = known[sums > 0]
    return found


def _mapped(ids: Ints, table: Mapping[int, int], otherwise: int = 0) -> Ints:
    if not table:
        return np.full(len(ids), otherwise, np.int64)
    keys = np.array(sorted(table), np.int64)
    told = np.array([table[key] for key in keys.tolist()], np.int64)
    at = np.minimum(np.searchsorted(keys, ids), len(keys) - 1)
    found: Ints = np.where(keys[at] == ids, told[at], otherwise)
    return found


def _among(codes: Codes, known: Codes) -> Bools:
    """Which of them are known; those are sorted."""
    if not len(known):
        return np.zeros(len(codes), np.bool_)
    found: Bools = known[np.minimum(np.searchsorted(known, codes), len(known) - 1)] == codes
    return found


def _joined(parts: list[Codes]) -> Codes:
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _clocks(plan: PlanView, incarnation: Incarnation, found: Looked) -> None:
    raw = found.notes[incarnation.number].clocks
    columns = [
        np.clip(value(raw, each).astype(np.int64), -BEYOND_NS, BEYOND_NS).tolist()
        for each in (rec.Clock.at_ns, rec.Clock.offset_lo_ns, rec.Clock.offset_hi_ns)
    ]
    numbers = _numbers(raw, found.epochs[incarnation.number])
    for flagged, peer, number, at_ns, lo_ns, hi_ns in zip(
        (raw["flags"] >= rec.FLAG).tolist(), raw["ref"].tolist(), numbers, *columns, strict=True
    ):
        if flagged:
            found.stood.setdefault(incarnation.number, []).append(Stood(lo_ns, at_ns, hi_ns))
        elif hi_ns - lo_ns < BEYOND_NS:
            known = plan.peers.get((number, peer), peer)
            found.clocks.setdefault(incarnation.number, []).append(ClockNews(known, at_ns, lo_ns, hi_ns))


def _numbers(raw: Raw, epochs: Mapping[int, int]) -> list[int]:
    return [epochs.get(flags & rec.PLAN_EPOCH_MASK, 0) for flags in raw["flags"].tolist()]


def is_policed(policy: int) -> bool:
    """Whether a tuple was shed beyond what was declared."""
    return policy in POLICED


__all__ = [
    "LATE", "LINK", "LOST", "OUTCOMES", "RESTART", "SHED", "UNDECIDABLE", "UNIT", "Arrivals", "ClockNews", "Looked",
    "Rows", "Stood", "consumer_id", "key_of", "look", "reduced",
]  # fmt: skip
