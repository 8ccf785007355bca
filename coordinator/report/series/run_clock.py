"""The first pass over a run: when each runtime was there, by which plans its records go, all on one clock.

Instants here are ns from the run's first record on, on one clock (`facts/one_clock.py`): to look at, never to judge by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coordinator.report.facts.one_clock import OneClock
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.series.record_rows import MOST_NS, Ints, Rows, RunRecords
from protos import records as rec
from protos.records import KINDS, PLAN_EPOCH_MASK

MOST_PROBES = 2_000  # CLOCK records of an incarnation that are kept, evenly distributed
PROBES_OF_PIECE = 250
MOST_REFUSALS = 5_000  # REFUSED records of an incarnation that are kept
STAMP_MASK = (1 << 64) - 1
WANTED: Mapping[int, Sequence[str]] = {
    **{kind: ("at_ns",) for kind in range(1, len(KINDS)) if kind not in (rec.GAP, rec.RAN)},  # GAP has no instant
    rec.RAN: ("end_ns",),  # its release may be long before
    rec.PLAN: ("at_ns", "state", "stamp", "plan_epoch"),
    rec.CLOCK: ("at_ns", "peer", "offset_lo_ns", "offset_hi_ns", "suspended", "since_ns", "slept_ns"),
    rec.REFUSED: ("at_ns", "source_id", "reason", "tuples", "first_at_ns"),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What one record says: tuples that were refused by a source, for a reason."""

    source: int
    reason: int
    from_ns: int
    until_ns: int
    tuples: int


@dataclass(frozen=True, slots=True)
class Presence:
    """One runtime. from_ns, until_ns: its first and its last record; epochs: the number of the plan that each plan
    epoch stands for; crashed: it did not end in order; committed: (instant, number of the plan) of each that it began;
    asleep: (from, until) of suspensions, at most so long."""

    incarnation: Incarnation
    from_ns: int
    until_ns: int
    crashed: bool
    epochs: Mapping[int, int]
    committed: tuple[tuple[int, int], ...]
    asleep: tuple[tuple[int, int], ...]
    refused: tuple[Refusal, ...]


class RunClock:
    """All of a run's runtimes on one clock. length_ns: from its first record to its last."""

    def __init__(self, run: Run, records: RunRecords) -> None:
        found = [seen for each in run.incarnations if (seen := _look(run.plan, records, each)).is_dated]
        begins: dict[str, int] = {}
        for one in found:
            clock = one.incarnation.clock
            begins[clock] = min(one.first_ns, begins.get(clock, one.first_ns))
        probes = ((one.incarnation, each) for one in found for each in one.thinned())
        self._clock = OneClock(run, probes, begins)
        self._zero_ns = min((self._clock.at(one.incarnation.clock, one.first_ns) for one in found), default=0)
        self.presences = tuple(map(self._presence, found))
        self.length_ns = max(1, max((one.until_ns for one in self.presences), default=1))

    def at(self, incarnation: Incarnation, at_ns: int) -> int:
        """An instant of that runtime's clock."""
        return self._clock.at(incarnation.clock, at_ns) - self._zero_ns

    def many(self, incarnation: Incarnation, at_ns: Ints) -> Ints:
        """Many of them."""
        return self._clock.many(incarnation.clock, at_ns) - self._zero_ns

    def _presence(self, one: _Seen) -> Presence:
        def at(at_ns: int) -> int:
            return self.at(one.incarnation, at_ns)

        return Presence(
            incarnation=one.incarnation,
            from_ns=at(one.first_ns),
            until_ns=at(one.last_ns),
            crashed=one.incarnation.declared.crashed or one.crashed,
            epochs=one.epochs,
            committed=tuple((at(at_ns), number) for at_ns, number in one.committed),
            asleep=tuple((at(since_ns), at(at_ns) + slept_ns) for at_ns, since_ns, slept_ns in one.asleep),
            refused=tuple(
                Refusal(source, reason, max(0, min(at(first_ns), at(at_ns))), at(at_ns), tuples)
                for at_ns, source, reason, tuples, first_ns in one.refused
            ),
        )


@dataclass(frozen=True, slots=True)
class _Probe:
    """What a CLOCK record says of a peer's clock."""

    at_ns: int
    peer: int
    offset_lo_ns: int
    offset_hi_ns: int


@dataclass
class _Seen:
    """Of one incarnation, on its own clock."""

    incarnation: Incarnation
    first_ns: int = MOST_NS
    last_ns: int = -MOST_NS
    crashed: bool = False
    epochs: dict[int, int] = field(default_factory=dict)
    committed: list[tuple[int, int]] = field(default_factory=list)
    probes: list[_Probe] = field(default_factory=list)
    asleep: list[tuple[int, ...]] = field(default_factory=list)
    refused: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def is_dated(self) -> bool:
        """Whether anything is known to have happened at some time."""
        return self.first_ns <= self.last_ns

    def thinned(self) -> Sequence[_Probe]:
        """Evenly some of the probes."""
        return self.probes[:: len(self.probes) // MOST_PROBES + 1]

    def add(self, plan: PlanView, kind: int, rows: Rows) -> None:
        """Records of one kind."""
        instants = rows["end_ns" if kind == rec.RAN else "at_ns"]
        sound = instants[(instants > -MOST_NS) & (instants < MOST_NS)]
        if len(sound):
            self.first_ns = min(self.first_ns, int(sound.min()))
            self.last_ns = max(self.last_ns, int(sound.max()))
        if kind == rec.PLAN:
            self._plans(plan, rows)
        elif kind == rec.CLOCK:
            slept = rows["suspended"] != 0
            probes = rows.where(~slept)
            evenly = probes.where(_evenly(len(probes)))
            self.probes += [_Probe(*each) for each in _tuples(evenly, "at_ns", "peer", "offset_lo_ns", "offset_hi_ns")]
            self.asleep += _tuples(rows.where(slept), "at_ns", "since_ns", "slept_ns")
        elif kind == rec.REFUSED and len(self.refused) < MOST_REFUSALS:
            self.refused += _tuples(rows, "at_ns", "source_id", "reason", "tuples", "first_at_ns")
            del self.refused[MOST_REFUSALS:]

    def _plans(self, plan: PlanView, rows: Rows) -> None:
        for at_ns, state, stamp, epoch in _tuples(rows, "at_ns", "state", "stamp", "plan_epoch"):
            self.crashed |= state == rec.STATE_CRASHED
            number = plan.numbers.get(stamp & STAMP_MASK)
            if number is not None:
                low = epoch & PLAN_EPOCH_MASK
                self.epochs[low] = min(number, self.epochs.get(low, number))
                if state == rec.STATE_COMMITTED:
                    self.committed.append((at_ns, number))


def _look(plan: PlanView, records: RunRecords, incarnation: Incarnation) -> _Seen:
    found = _Seen(incarnation)
    for piece in records.pieces(incarnation, WANTED):
        for kind, rows in piece.items():
            if len(rows):
                found.add(plan, kind, rows)
    return found


def _evenly(probes: int) -> Ints:
    return np.arange(0, probes, probes // PROBES_OF_PIECE + 1, dtype=np.int64)


def _tuples(rows: Rows, *names: str) -> Iterator[tuple[int, ...]]:
    return zip(*(rows[name].tolist() for name in names), strict=True)


__all__ = ["Presence", "Refusal", "RunClock"]
