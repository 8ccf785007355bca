"""What ran on a node, as columns: who kept a tuple waiting, what was above plan, and when nothing ran.

Instances do not overlap, so those that touch a span lie together. Of an instance of several tuples, what one of them
takes by the plan comes first, then what the others take (the batch), then what is above plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coordinator.report.blame.record_pieces import BEYOND_NS, Bools, Ints, Notes, Piece, pieces
from coordinator.report.facts.mixing import Codes
from coordinator.report.facts.reader import Incarnation
from coordinator.report.landing.record_array import Raw, value
from protos import records as rec

Ids = npt.NDArray[np.int32]  # of 24 bits, or numbers of tuples

ABOVE_NS = 100_000  # beyond a tenth more than its plan counts, and this, an instance is above it
LOAD_NS = 1_000_000_000  # a runtime writes LOAD this long after the last one, idle or busy
STILL_NS = 5_000_000  # a gap of it between two instances, with work waiting, is no overhead
LULL_NS = 2_000_000  # a gap of it ends a busy spell
SELDOM = 50  # of a unit's instances, one that is above plan is a chance
FEW = 20


@dataclass(frozen=True, slots=True)
class Span:
    """What ran within a span, an entry per instance: when it began, and ns of it in the span, by what they were.
    choices: how many instances were chosen, in deciding_ns. gaps: [from, to) in which nothing ran nor was chosen."""

    unit: Ints
    start: Ints
    code: Codes
    plain: Ints
    batch: Ints
    above: Ints
    deciding_ns: int
    choices: int
    gaps: tuple[tuple[int, int], ...]

    @property
    def busy_ns(self) -> int:
        """In which something ran."""
        return int(self.plain.sum() + self.batch.sum() + self.above.sum())

    def left_of(self, work: Ints) -> int:
        """How much of this work, a part of each instance's, is still to be made up for at the end of the span: while
        nothing ran nothing waited, so a gap takes off what it is long."""
        gaps = np.array(self.gaps, np.int64).reshape(-1, 2)
        steps = np.concatenate([work, gaps[:, 0] - gaps[:, 1]])
        order = np.argsort(np.concatenate([self.start, gaps[:, 0]]), kind="stable")
        level = np.cumsum(steps[order])
        return int(level[-1] - min(0, int(level.min()))) if len(level) else 0


class Timeline:
    """Of one incarnation. A live process may stand still, in the middle of an instance or of a choice: an instance that
    alone is above plan, while the others of its unit keep it, is such a pause and no cost. channels: when a live one
    heard of each of its sources and peers, by kind of record and number."""

    def __init__(
        self, incarnation: Incarnation, epochs: Mapping[int, int], notes: Notes, planned: Mapping[int, int]
    ) -> None:
        live = not incarnation.virtual
        self.channels: dict[tuple[int, int], Ints] = {}
        ran = _Ran(live)
        for piece in pieces(incarnation, epochs, _READ if live else _RAN):
            ran.take(piece)
        self.start, self.end, self.unit, self.code, self.tuples, self.deciding = ran.instances()
        self._planned = planned
        self.outlier = self._outliers() if live else np.zeros(len(self.start), np.bool_)
        starts_spell = np.ones(len(self.start), np.bool_)
        if len(self.start):
            gaps = self.start[1:] - self.deciding[1:] - self.end[:-1]
            starts_spell[1:] = gaps > LULL_NS
        self._spells = np.flatnonzero(starts_spell)
        self._longest_decision_ns = STILL_NS if live else BEYOND_NS
        if live:
            self.channels = ran.channels(notes)
            self._loads = np.sort(_instants(notes.loads))
            self._activity = np.sort(np.concatenate([self.start, self.end, *ran.others, self._loads]))

    def above_of(self, unit: int) -> Ints:
        """Of each instance of a unit, ns above plan."""
        return self._beyond(np.flatnonzero(self.unit == unit))[0]

    def _beyond(self, at: Ints) -> tuple[Ints, Ints]:
        """Of these instances, ns above plan and ns for further tuples than one: of all they would take much memory."""
        one, tuples, ns = _mapped(self.unit[at], self._planned), self.tuples[at], self.end[at] - self.start[at]
        above = np.where(
            (one > 0) & (ns * 10 > one * tuples * 11) & (ns > one * tuples + ABOVE_NS), ns - one * tuples, 0
        )
        batch = np.where((tuples > 1) & (one > 0), np.minimum(ns, one * tuples) - one, 0).clip(0)
        spread = (tuples > 1) & (one == 0)
        return above, np.where(spread, ns - ns // np.maximum(tuples, 1), batch)

    def _outliers(self) -> Bools:
        """Instances above plan of units that otherwise keep it."""
        found = np.zeros(len(self.unit), np.bool_)
        for unit in np.unique(self.unit).tolist():
            mine = np.flatnonzero(self.unit == unit)
            above = self._beyond(mine)[0]
            if len(mine) >= FEW and int((above > 0).sum()) * SELDOM <= len(mine):
                found[mine[above > STILL_NS]] = True
        return found

    def span(self, from_ns: int, until_ns: int, not_of: tuple[int, int] | None = None) -> Span:
        """What ran between two instants. not_of: (unit, start) of the instance that is asked about."""
        first = int(np.searchsorted(self.end, from_ns, "right"))
        last = int(np.searchsorted(self.start, until_ns, "left"))
        at = np.arange(first, max(first, last))
        gaps = self._gaps(first, last, from_ns, until_ns)
        chosen = self.deciding[first : last + 1][self.start[first : last + 1] <= until_ns]
        if not_of is not None:
            at = at[~((self.unit[at] == not_of[0]) & (self.start[at] == not_of[1]))]
        start, end = np.maximum(self.start[at], from_ns), np.minimum(self.end[at], until_ns)
        all_ns = np.maximum(end - start, 0)
        most_above, most_batch = self._beyond(at)
        above_from = self.end[at] - most_above
        batch_from = above_from - most_batch
        above = np.clip(end - np.maximum(start, above_from), 0, None)
        batch = np.clip(np.minimum(end, above_from) - np.maximum(start, batch_from), 0, None)
        return Span(
            self.unit[at].astype(np.int64), start, self.code[at], all_ns - above - batch, batch, above,
            int(chosen.sum()), len(chosen), gaps,
        )  # fmt: skip

    def is_outlier(self, unit: int, around: tuple[int, int]) -> bool:
        """Whether an instance of the unit that alone is above plan touches the span."""
        first = int(np.searchsorted(self.end, around[0], "right"))
        last = int(np.searchsorted(self.start, around[1], "left"))
        return bool((self.outlier[first:last] & (self.unit[first:last] == unit)).any())

    def _gaps(self, first: int, last: int, from_ns: int, until_ns: int) -> tuple[tuple[int, int], ...]:
        """From the end of an instance to where the choice of the next one began, long enough to matter."""
        begins = self.start[first : last + 1] - self._choosing(first, last + 1)
        ends = np.concatenate([[from_ns], self.end[first:last]])
        lo, hi = np.maximum(ends, from_ns), np.minimum(np.append(begins, until_ns)[: len(ends)], until_ns)
        found = np.flatnonzero(hi > lo)
        return tuple(zip(lo[found].tolist(), hi[found].tolist(), strict=True))

    def _choosing(self, first: int, last: int) -> Ints:
        """The time of a choice, where it is not long enough to be a pause itself."""
        deciding = self.deciding[first:last]
        found: Ints = np.where(deciding < self._longest_decision_ns, deciding, 0)
        return found

    def spell(self, at_ns: int) -> tuple[int, int]:
        """The busy spell that holds an instant: without a lull, from the start of an instance to the end of another."""
        if not len(self.start):
            return at_ns, at_ns
        place = max(0, int(np.searchsorted(self.start, at_ns, "right")) - 1)
        number = int(np.searchsorted(self._spells, place, "right")) - 1
        end = self._spells[number + 1] - 1 if number + 1 < len(self._spells) else len(self.start) - 1
        return int(self.start[self._spells[number]]), int(self.end[end])

    def silence(self, from_ns: int, until_ns: int) -> tuple[int, int]:
        """The longest stretch that touches a span in which the incarnation wrote nothing at all."""
        instants = self._activity
        first = max(0, int(np.searchsorted(instants, from_ns, "right")) - 1)
        edges = instants[first : int(np.searchsorted(instants, until_ns, "left")) + 1]
        if len(edges) < 2:
            return from_ns, from_ns
        longest = int(np.argmax(np.diff(edges)))
        return int(edges[longest]), int(edges[longest + 1])

    def overslept(self, from_ns: int, until_ns: int, by_ns: int) -> bool:
        """Whether a LOAD was due in a span in which nothing ran, so long before its end, and came after it."""
        place = int(np.searchsorted(self._loads, from_ns, "right"))
        if not 0 < place < len(self._loads) or self._loads[place] < until_ns:
            return False
        due_ns = int(self._loads[place - 1]) + LOAD_NS
        ran = np.searchsorted(self.start, until_ns, "left") > np.searchsorted(self.end, from_ns, "right")
        return from_ns < due_ns <= until_ns - by_ns and not bool(ran)


_RAN = (rec.RAN, rec.LOST)
_HEARD = (rec.ADMITTED, rec.RECEIVED)
_READ = (*_RAN, *_HEARD, rec.SENT, rec.OUTPUT, rec.CLOCK, rec.SHED, rec.ACKED, rec.REFUSED)


class _Ran:
    """Collects it. live: all that the incarnation wrote as well, since it may have stood still."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._parts: list[tuple[Any, ...]] = []
        self._heard: dict[tuple[int, int], list[Ints]] = {}
        self.others: list[Ints] = []

    def take(self, piece: Piece) -> None:
        kind = piece.raw["kind"]
        began = (kind == rec.LOST) & ~piece.flagged & (piece.raw["ref"] != rec.NO_REF) & (piece[rec.Lost.start_ns] > 0)
        mine = piece.where((kind == rec.RAN) | began)
        ran = mine.raw["kind"] == rec.RAN
        start = np.where(ran, mine.instant(rec.Ran.start_ns), mine.instant(rec.Lost.start_ns))
        end = np.where(ran, mine.instant(rec.Ran.end_ns), mine.instant(rec.Lost.at_ns))
        deciding = np.where(ran, mine[rec.Ran.decision_ns], 0)
        self._parts.append((start, np.maximum(end, start), mine.ref.astype(np.int32), mine.lineage, deciding))
        if self._live:
            self.others.append(piece.where(kind != rec.RAN).instant(rec.Record.at_ns))
            self._hear(piece.of(*_HEARD))

    def _hear(self, piece: Piece) -> None:
        who, at_ns, kinds = piece.raw["ref"].astype(np.int64), piece.instant(rec.Record.at_ns), piece.raw["kind"]
        for kind in _HEARD:
            for each in np.unique(who[kinds == kind]).tolist():
                self._heard.setdefault((kind, each), []).append(at_ns[(kinds == kind) & (who == each)])

    def channels(self, notes: Notes) -> dict[tuple[int, int], Ints]:
        clocks = notes.clocks
        for each in np.unique(clocks["ref"]).tolist():
            self._heard.setdefault((rec.CLOCK, each), []).append(_instants(clocks[clocks["ref"] == each]))
        return {channel: np.sort(np.concatenate(parts)) for channel, parts in self._heard.items()}

    def instances(self) -> tuple[Ints, Ints, Ids, Codes, Ids, Ints]:
        """start, end, unit, lineage of the first tuple, tuples, decision of all that ran, by start."""
        none = np.zeros(0, np.int64)
        nothing = (none, none, none.astype(np.int32), none.astype(np.uint64), none)
        columns = [np.concatenate(each) for each in zip(nothing, *self._parts, strict=True)]
        self._parts.clear()
        if len(columns[0]) and (np.diff(columns[0]) < 0).any():
            order = np.argsort(columns[0], kind="stable")
            columns = [each[order] for each in columns]
        start, end, unit, code, deciding = columns
        first = np.ones(len(start), np.bool_)
        first[1:] = (np.diff(start) != 0) | (np.diff(end) != 0) | (np.diff(unit) != 0)
        at = np.flatnonzero(first)
        tuples = np.diff(np.append(at, len(start))).astype(np.int32)
        end = np.maximum.accumulate(end[at]) if len(at) else end  # of damaged instants: both columns stay sorted
        return start[at], end, unit[at], code[at], tuples, deciding[at]


def _instants(raw: Raw) -> Ints:
    return np.clip(value(raw, rec.Record.at_ns).astype(np.int64), -BEYOND_NS, BEYOND_NS)


def _mapped(unit: Ids, planned: Mapping[int, int]) -> Ints:
    """What the plan counts for one tuple of each."""
    known, which = np.unique(unit, return_inverse=True)
    told = np.array([planned.get(each, 0) for each in known.tolist()], np.int64)
    found: Ints = told[which.reshape(-1)] if len(known) else np.zeros(0, np.int64)
    return found
