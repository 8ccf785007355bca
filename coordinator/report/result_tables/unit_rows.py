"""Rows of the tables of units and links, from the landed or raw records, a piece at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.report.blame.record_pieces import Ints, Notes, Piece, pieces
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.result_tables import table_columns as columns
from coordinator.report.result_tables.report_rows import Row
from coordinator.report.result_tables.table_columns import ResultTable
from protos import records as rec

FIRST, LAST = 1 << 60, -(1 << 60)  # of no instant yet


@dataclass(slots=True)
class _Unit:
    tuples: int = 0
    ran_ns: int = 0
    longest_ns: int = 0
    queued_ns: int = 0
    longest_queued_ns: int = 0


@dataclass(slots=True)
class _Link:
    sent: int = 0
    lost: int = 0
    first_ns: int = FIRST
    last_ns: int = LAST


def rows_of(run: Run) -> dict[ResultTable, list[Row]]:
    """Both tables of a run."""
    made: dict[ResultTable, list[Row]] = {columns.UNITS: [], columns.LINKS: []}
    for incarnation in run.incarnations:
        found = _Incarnation(run, incarnation)
        made[columns.UNITS] += found.units()
        made[columns.LINKS] += found.links()
    return made


class _Incarnation:
    def __init__(self, run: Run, incarnation: Incarnation) -> None:
        self._plan, self._incarnation = run.plan, incarnation
        self._units, self._links = defaultdict[int, _Unit](_Unit), defaultdict[int, _Link](_Link)
        self._first_ns, self._last_ns = FIRST, LAST
        epochs = Notes.of(incarnation).epochs(run.plan.numbers)
        for piece in pieces(incarnation, epochs, (rec.RAN, rec.SENT, rec.LOST)):
            self._ran(piece.of(rec.RAN))
            self._sent(piece.of(rec.SENT))
            lost = piece.of(rec.LOST)
            self._lost(lost.where(lost.flagged))

    def units(self) -> Iterator[Row]:
        """In the order of their numbers."""
        span_ns = self._last_ns - self._first_ns
        for number, unit in sorted(self._units.items()):
            if view := self._plan.units.get(number):
                yield self._place() | {
                    "unit": number, "operators": "+".join(view.operators), "tuples": unit.tuples,
                    "ran_ns": unit.ran_ns, "longest_ns": unit.longest_ns, "queued_ns": unit.queued_ns,
                    "longest_queued_ns": unit.longest_queued_ns,
                    "utilisation": unit.ran_ns / span_ns if span_ns > 0 else None,
                }  # fmt: skip

    def links(self) -> Iterator[Row]:
        """In the order of the peers' numbers."""
        for number, link in sorted(self._links.items()):
            if name := self._plan.nodes.get(number):
                sent = link.sent > 0
                yield self._place() | {
                    "peer": name, "sent": link.sent, "lost": link.lost,
                    "first_ns": link.first_ns if sent else None, "last_ns": link.last_ns if sent else None,
                }  # fmt: skip

    def _place(self) -> Row:
        return {"node": self._plan.nodes[self._incarnation.node], "boot": self._incarnation.boot_hex}

    def _ran(self, ran: Piece) -> None:
        if not len(ran):
            return
        release, start, end = (ran.instant(each) for each in (rec.Ran.release_ns, rec.Ran.start_ns, rec.Ran.end_ns))
        self._first_ns, self._last_ns = min(self._first_ns, int(start.min())), max(self._last_ns, int(end.max()))
        one = np.ones(len(ran), bool)  # the records of tuples that ran together share start and end
        one[1:] = (ran.ref[1:] != ran.ref[:-1]) | (start[1:] != start[:-1]) | (end[1:] != end[:-1])
        long, queued = np.maximum(end - start, 0), np.maximum(start - release, 0)
        for number in np.unique(ran.ref).tolist():
            mine, unit = ran.ref == number, self._units[number]
            unit.tuples += int((mine & ~ran.flagged).sum())
            unit.ran_ns += int(long[mine & one].sum())
            unit.longest_ns = max(unit.longest_ns, int(long[mine].max()))
            unit.queued_ns += int(queued[mine].sum())
            unit.longest_queued_ns = max(unit.longest_queued_ns, int(queued[mine].max()))

    def _sent(self, sent: Piece) -> None:
        at_ns, peers = sent.instant(rec.Record.at_ns), self._peers(sent)
        for number in np.unique(peers).tolist():
            mine, link = peers == number, self._links[number]
            link.sent += int(mine.sum())
            link.first_ns = min(link.first_ns, int(at_ns[mine].min()))
            link.last_ns = max(link.last_ns, int(at_ns[mine].max()))

    def _lost(self, lost: Piece) -> None:
        for number, n in zip(*np.unique(self._peers(lost), return_counts=True), strict=True):
            self._links[int(number)].lost += int(n)

    def _peers(self, piece: Piece) -> Ints:
        """Nodes, as the last plan numbers them."""
        found = piece.raw["ref"].astype(np.int64)
        for (earlier, own), known_as in self._plan.peers.items():
            found = np.where((piece.number == earlier) & (piece.raw["ref"] == own), known_as, found)
        return found


__all__ = ["rows_of"]
