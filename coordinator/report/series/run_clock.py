"""The first pass over a run: when each runtime was there, by which plans its records go, all on one clock.

Instants here are ns from the run's first record on, on one clock (`facts/one_clock.py`): to look at, never to judge by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coordinator.report.facts.one_clock import OneClock
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing.record_array import Raw, value
from coordinator.report.series.own_records import MOST_NS, Ints, pieces
from coordinator.report.verdict import scan_trace
from protos import records as rec
from protos.records import RECORD_BYTES, Clock, Plan, Record, unpack_records

MOST_PROBES = 2_000  # CLOCK records of an incarnation that are kept, evenly distributed
PROBES_OF_PIECE = 250
WITHOUT_INSTANT = (rec.GAP, rec.RAN)  # a RAN's is its release, which may be long before


@dataclass(frozen=True, slots=True)
class Presence:
    """One runtime. from_ns, until_ns: its first and its last record; epochs: as `own` wants them; crashed: it did not
    end in order; committed: (instant, number of the plan) of each that it began; asleep: (from, until) of suspensions,
    at most so long."""

    incarnation: Incarnation
    from_ns: int
    until_ns: int
    crashed: bool
    epochs: Mapping[int, int]
    committed: tuple[tuple[int, int], ...]
    asleep: tuple[tuple[int, int], ...]


class RunClock:
    """All of a run's runtimes on one clock. length_ns: from its first record to its last."""

    def __init__(self, run: Run) -> None:
        found = [_look(incarnation) for incarnation in run.incarnations]
        begins: dict[str, int] = {}
        for one in found:
            if one.seen:
                clock = one.incarnation.clock
                begins[clock] = min(one.first_ns, begins.get(clock, one.first_ns))
        clocks = [(one.incarnation, each) for one in found for each in one.probes() if not each.suspended]
        self._clock = OneClock(run, clocks, begins)
        starts = (self._clock.at(one.incarnation.clock, one.first_ns) for one in found if one.seen)
        self._zero_ns = min(starts, default=0)
        self.presences = tuple(self._presence(run, one) for one in found if one.seen)
        self.length_ns = max(1, max((one.until_ns for one in self.presences), default=1))

    def at(self, incarnation: Incarnation, at_ns: int) -> int:
        """An instant of that runtime's clock."""
        return self._clock.at(incarnation.clock, at_ns) - self._zero_ns

    def many(self, incarnation: Incarnation, at_ns: Ints) -> Ints:
        """Many of them."""
        return self._clock.many(incarnation.clock, at_ns) - self._zero_ns

    def own(self, incarnation: Incarnation, at_ns: int) -> int:
        """The way back, as exact as the clocks' relation is steady."""
        guess = at_ns + self._zero_ns
        return guess - (self.at(incarnation, guess) - at_ns)

    def _presence(self, run: Run, one: _Seen) -> Presence:
        scan = scan_trace(one.incarnation, list(enumerate(one.plans)), run.plan)
        committed = []
        for each in one.plans:
            number = run.plan.numbers.get(each.stamp)
            if each.state == rec.STATE_COMMITTED and number is not None:
                committed.append((self.at(one.incarnation, each.at_ns), number))
        asleep = [
            (self.at(one.incarnation, each.since_ns), self.at(one.incarnation, each.at_ns) + each.slept_ns)
            for each in one.clocks
            if each.suspended
        ]
        return Presence(
            incarnation=one.incarnation,
            from_ns=self.at(one.incarnation, one.first_ns),
            until_ns=self.at(one.incarnation, one.last_ns),
            crashed=one.incarnation.declared.crashed or scan.crashed,
            epochs=dict(scan.epochs),
            committed=tuple(committed),
            asleep=tuple(asleep),
        )


@dataclass
class _Seen:
    incarnation: Incarnation
    first_ns: int = MOST_NS
    last_ns: int = -MOST_NS
    plans: list[Plan] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)

    @property
    def seen(self) -> bool:
        return self.first_ns <= self.last_ns

    def probes(self) -> Sequence[Clock]:
        """Evenly many of them."""
        step = -(-len(self.clocks) // MOST_PROBES) or 1
        return self.clocks[::step]


def _look(incarnation: Incarnation) -> _Seen:
    found = _Seen(incarnation)
    for raw in pieces(incarnation):
        dated = raw[~np.isin(raw["kind"], WITHOUT_INSTANT)]
        at_ns = dated[rec.Record.at_ns.column]
        ended_ns = value(raw[raw["kind"] == rec.RAN], rec.Ran.end_ns)
        for instants in (at_ns, ended_ns):
            sound = instants[(instants > -MOST_NS) & (instants < MOST_NS)]
            if len(sound):
                found.first_ns = min(found.first_ns, int(sound.min()))
                found.last_ns = max(found.last_ns, int(sound.max()))
        for record in _objects(_thinned(raw)):
            if isinstance(record, Plan):
                found.plans.append(record)
            elif isinstance(record, Clock):
                found.clocks.append(record)
    return found


def _thinned(raw: Raw) -> Raw:
    """PLAN records, those of suspensions, and evenly some of the probes."""
    clocks = raw["kind"] == rec.CLOCK
    probes = np.flatnonzero(clocks & (raw["flags"] < rec.FLAG))
    kept = (raw["kind"] == rec.PLAN) | (clocks & (raw["flags"] >= rec.FLAG))
    kept[probes[:: len(probes) // PROBES_OF_PIECE + 1]] = True
    found: Raw = raw[kept]
    return found


def _objects(raw: Raw) -> Iterator[Record]:
    data = np.ascontiguousarray(raw).tobytes()
    return unpack_records(data) if len(data) >= RECORD_BYTES else iter(())


__all__ = ["Presence", "RunClock"]
