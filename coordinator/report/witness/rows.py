"""The records of a run's plans as columns, with the ids of the joined view (`joined.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from coordinator.report.completeness import LEDGER_KINDS, Trace
from coordinator.report.joined import ID_BITS
from coordinator.report.plan_view import PlanView
from coordinator.report.raw import raw_records, usable_records
from coordinator.report.witness.keys import Bools, Ints, codes
from protos import records as rec

BEYOND_NS = 1 << 61  # words are clamped to it, so that sums of two of them fit
_STREAM_AT = {rec.SENT: "w2", rec.RECEIVED: "w3", rec.ABSORBED: "w1", rec.SHED: "w3", rec.LOST: "w3"}
_ORDINAL_AT = {
    rec.SHED: "w2", rec.LOST: "w2", rec.ABSORBED: "w2", rec.MERGED: "w3", rec.SENT: "w3", rec.OUTPUT: "w4",
    rec.RECEIVED: "w4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length. place: among all records of the incarnation that are there; lineage: the same for one
    source, epoch and seq; number: of the plan in the run; stream: 0 where the record names none. In each incarnation
    the rows are in the order in which they were written."""

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
    w0: Ints
    w1: Ints
    w2: Ints
    w3: Ints
    w4: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.inc)

    def where(self, chosen: Bools | Ints) -> Rows:
        """Some of the rows, in the same order."""
        return Rows(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def of(self, *kinds: int) -> Rows:
        """The rows of these kinds."""
        chosen = self.kind == kinds[0]
        for kind in kinds[1:]:
            chosen |= self.kind == kind
        return self.where(chosen)


def rows(plan: PlanView, traces: Sequence[Trace]) -> Rows:
    """The ledger's records of the run's plans."""
    parts = [_of(plan, trace) for trace in traces]
    columns = {
        each.name: np.concatenate([np.zeros(0, np.int64), *(part[each.name] for part in parts)])
        for each in fields(Rows)
        if each.name != "lineage"
    }
    return Rows(lineage=codes(columns["source"], columns["epoch"], columns["seq"]), **columns)


def _of(plan: PlanView, trace: Trace) -> dict[str, Ints]:
    raw = raw_records(trace.incarnation)
    numbers = np.full(rec.PLAN_EPOCH_MASK + 1, -1, np.int64)
    for epoch, number in trace.scan.epochs.items():
        numbers[epoch] = number
    number = numbers[raw["flags"] & rec.PLAN_EPOCH_MASK]
    place = np.arange(len(raw), dtype=np.int64)
    chosen = usable_records(raw) & np.isin(raw["kind"], LEDGER_KINDS) & (number >= 0)
    raw, number, place = raw[chosen], number[chosen], place[chosen]
    kind, flagged = raw["kind"].astype(np.int64), (raw["flags"] >= rec.FLAG).astype(np.int64)
    shift = number << ID_BITS
    words = {name: np.clip(raw[name], -BEYOND_NS, BEYOND_NS) for name in ("w0", "w1", "w2", "w3", "w4")}
    words["w4"] = np.where(kind == rec.RAN, raw["w4"], words["w4"])  # two numbers in one word
    last = raw["last"].astype(np.int64)
    ref = raw["ref"].astype(np.int64)
    everywhere = np.isin(kind, (rec.SHED, rec.LOST)) & (ref == rec.NO_REF)
    to_peer = (kind == rec.LOST) & (flagged > 0)
    is_peer = np.isin(kind, (rec.SENT, rec.RECEIVED)) | everywhere | to_peer
    for (earlier, own), known_as in plan.peers.items():  # `raw` keeps the plan's own number, so each is changed once
        ref = np.where(is_peer & (number == earlier) & (raw["ref"] == own), known_as, ref)
    names_stream = np.isin(kind, (rec.SENT, rec.RECEIVED, rec.ABSORBED)) | everywhere | to_peer
    ordinal = np.where(kind == rec.RAN, last >> 32 & 0xFFFFFFFF, _picked(kind, words, _ORDINAL_AT))
    return {
        "inc": np.full(len(raw), trace.incarnation.number, np.int64),
        "place": place,
        "node": np.full(len(raw), trace.incarnation.node, np.int64),
        "kind": kind,
        "flagged": flagged,
        "number": number,
        "ref": _same(plan.same, kind, np.where(is_peer, ref, ref | shift)),
        "source": raw["source"].astype(np.int64) | shift,
        "epoch": raw["epoch"].astype(np.int64),
        "seq": raw["seq"].astype(np.int64),
        "ordinal": ordinal,
        "stream": np.where(names_stream, _picked(kind, words, _STREAM_AT) ^ shift, 0),
        **words,
        "last": last,
    }


def _picked(kind: Ints, words: Mapping[str, Ints], places: Mapping[int, str]) -> Ints:
    """Of each row the word that its kind has it in; 0 for other kinds."""
    found = np.zeros(len(kind), np.int64)
    for each, name in places.items():
        found = np.where(kind == each, words[name], found)
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


__all__ = ["BEYOND_NS", "Rows", "mapped", "rows"]
