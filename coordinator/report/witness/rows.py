"""The records of a run's plans as columns, with the ids of the joined view (`merged_plans.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from coordinator.report.facts.completeness import LEDGER_KINDS, Trace
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.landing.record_array import Raw, usable_records, value
from coordinator.report.witness.keys import Bools, Ints, codes
from protos import records as rec
from protos.record_layout import CLASSES, COLUMNS, Field

WORDS, LAST = COLUMNS[-6:], COLUMNS[-1]
BEYOND_NS = 1 << 61  # words are clamped to it, so that sums of two of them fit
_READ = [CLASSES[kind] for kind in LEDGER_KINDS]


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length. place: among all records of the incarnation that are there; lineage: the same for one
    source, epoch and seq; number: of the plan in the run; stream: 0 where the record names none; words: the columns
    that mean something else in each kind. In each incarnation the rows are in the order in which they were written."""

    inc: Ints
    place: Ints
    node: Ints
    kind: Ints
    flagged: Ints
    number: Ints
    ref: Ints
    source: Ints
    epoch: Ints
    seq: Ints
    lineage: Ints
    ordinal: Ints
    stream: Ints
    words: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(self.inc)

    def __getitem__(self, field: Field) -> Ints:
        """What a kind has there, of all rows; with the ids of the record's own plan."""
        return value(self.words, field)

    @property
    def at_ns(self) -> Ints:
        """Of a RAN, its release."""
        return self[rec.Record.at_ns]

    def where(self, chosen: Bools | Ints) -> Rows:
        """Some of the rows, in the same order."""
        same = {each.name: getattr(self, each.name)[chosen] for each in fields(self) if each.name != "words"}
        return Rows(words={name: word[chosen] for name, word in self.words.items()}, **same)

    def of(self, *kinds: int) -> Rows:
        """The rows of these kinds."""
        chosen = self.kind == kinds[0]
        for kind in kinds[1:]:
            chosen |= self.kind == kind
        return self.where(chosen)


def ledger_rows(plan: PlanView, trace: Trace, raw: Raw, place: Ints) -> Rows:
    """Those of some records that are of the ledger and of the run's plans; with a lineage of 0, since others may be
    of the same: `joined` numbers them. place: of each record, among all of the incarnation."""
    numbers = np.full(rec.PLAN_EPOCH_MASK + 1, -1, np.int64)
    for epoch, number in trace.scan.epochs.items():
        numbers[epoch] = number
    number = numbers[raw["flags"] & rec.PLAN_EPOCH_MASK]
    chosen = usable_records(raw) & np.isin(raw["kind"], LEDGER_KINDS) & (number >= 0)
    raw, number, place = raw[chosen], number[chosen], place[chosen]
    kind, flagged = raw["kind"].astype(np.int64), (raw["flags"] >= rec.FLAG).astype(np.int64)
    shift = number << ID_BITS
    words = {name: _clipped(raw, kind, name) for name in WORDS}
    ref = raw["ref"].astype(np.int64)
    everywhere = np.isin(kind, (rec.SHED, rec.LOST)) & (ref == rec.NO_REF)
    to_peer = (kind == rec.LOST) & (flagged > 0)
    is_peer = np.isin(kind, (rec.SENT, rec.RECEIVED)) | everywhere | to_peer
    for (earlier, own), known_as in plan.peers.items():  # `raw` keeps the plan's own number, so each is changed once
        ref = np.where(is_peer & (number == earlier) & (raw["ref"] == own), known_as, ref)
    names_stream = np.isin(kind, (rec.SENT, rec.RECEIVED, rec.ABSORBED)) | everywhere | to_peer
    return Rows(
        inc=np.full(len(raw), trace.incarnation.number, np.int64),
        place=place,
        node=np.full(len(raw), trace.incarnation.node, np.int64),
        kind=kind,
        flagged=flagged,
        number=number,
        ref=_same(plan.same, kind, np.where(is_peer, ref, ref | shift)),
        source=raw["source"].astype(np.int64) | shift,
        epoch=raw["epoch"].astype(np.int64),
        seq=raw["seq"].astype(np.int64),
        lineage=np.zeros(len(raw), np.int64),
        ordinal=_picked(kind, words, "ordinal"),
        stream=np.where(names_stream, _picked(kind, words, "stream") ^ shift, 0),
        words=words,
    )


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several incarnations, one after the other, with one number for each lineage."""
    columns = {
        each.name: np.concatenate([np.zeros(0, np.int64), *(getattr(part, each.name) for part in parts)])
        for each in fields(Rows)
        if each.name != "words"
    }
    columns["lineage"] = codes(columns["source"], columns["epoch"], columns["seq"])
    words = {name: np.concatenate([np.zeros(0, np.int64), *(part.words[name] for part in parts)]) for name in WORDS}
    return Rows(words=words, **columns)


def _clipped(raw: Raw, kind: Ints, name: str) -> Ints:
    """A word, clamped where it holds one value of a kind; the last word as it is."""
    if name == LAST:
        return raw[name].astype(np.int64)
    parted = [each.number for each in _READ if {f.whole for f in each.fields.values() if f.column == name} == {False}]
    found: Ints = np.where(np.isin(kind, parted), raw[name], np.clip(raw[name], -BEYOND_NS, BEYOND_NS))
    return found


def _picked(kind: Ints, words: Mapping[str, Ints], name: str) -> Ints:
    """The field of that name, of each row; 0 of kinds without it."""
    found = np.zeros(len(kind), np.int64)
    for each in _READ:
        if field := each.fields.get(name):
            found = np.where(kind == each.number, value(words, field), found)
    return found


def _same(same: Mapping[int, int], kind: Ints, ref: Ints) -> Ints:
    """Outputs of earlier plans by the id that they are known by."""
    for own, known_as in same.items():
        ref = np.where((kind == rec.OUTPUT) & (ref == own), known_as, ref)
    return ref


def mapped(values: Ints, table: Mapping[int, int], otherwise: int) -> Ints:
    """What a table has for each value."""
    if not table:
        return np.full(len(values), otherwise, np.int64)
    keys = np.array(sorted(table), np.int64)
    told = np.array([table[key] for key in sorted(table)], np.int64)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[at] == values, told[at], otherwise)


__all__ = ["BEYOND_NS", "Rows", "joined", "ledger_rows", "mapped"]
