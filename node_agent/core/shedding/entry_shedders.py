"""Entry shedders: decide which tuples enter a unit, and forward the numbers of the others behind it.

A tuple that is refused is recorded as SHED at that unit. Its number is forwarded behind the unit at once, or in a range
with its neighbours: before the next tuple of its source that is let in, with the source's next heartbeat, or when the
most ranges wait. So a window that lacks a tuple is never taken for complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from node_agent.core.lineage import Lineage
from node_agent.core.model import Effect, ForwardedRemoval, Route, Shed, Unit, Withdrawal
from node_agent.core.punctuation import Removal
from node_agent.core.queues import by_age
from node_agent.core.shedding.backlog import Backlog
from node_agent.core.windows.shedding_control import RemovedRanges
from node_agent.core.windows.window_aware import Load

Free = Callable[[int, int], bool]  # whether no window that is worth keeping meets origins least..greatest


class UnitEntry:
    """Entry shedder of one unit. single: a join by lineage is behind it, so each number is forwarded at once."""

    __slots__ = ("_runs", "lateness_ns", "pending", "shedder", "single", "unit")

    def __init__(self, unit: Unit, shedder: Shedder, lateness_ns: int, single: bool) -> None:
        self.unit, self.shedder, self.lateness_ns, self.single = unit, shedder, lateness_ns, single
        self.pending: set[int] = set()  # sources of which ranges wait here
        self._runs: dict[int, tuple[int, RemovedRanges]] = {}  # by source: its incarnation, ranges

    def shed(self, lineage: Lineage, free: Free | None) -> Iterator[Effect]:
        """Shed a tuple that was refused, or taken from the queue. Returns the effects."""
        source, epoch, seq, _, origin_ns, _ = lineage
        yield Shed(self.unit, lineage, self.shedder.policy)
        if self.single:
            yield ForwardedRemoval(self.unit, lineage, Removal(seq))
            return
        run = self._runs.get(source)
        if run is None or run[0] != epoch:
            yield from self.forward(source)
            run = self._runs[source] = (epoch, RemovedRanges(self.lateness_ns))
        self.pending.add(source)
        if run[1].shed(seq, origin_ns, free):
            yield from self.forward(source)

    def forward(self, source: int) -> Iterator[Effect]:
        """Forward the pending ranges of that source behind the unit. On this node a tuple's event time is the lower
        bound of its origin, so one tuple of a range lies at the greatest."""
        if source in self.pending:
            self.pending.discard(source)
            epoch, ranges = self._runs[source]
            for each in ranges.take():
                lineage = (source, epoch, each.last, 0, each.least_ns, each.greatest_ns)
                yield ForwardedRemoval(self.unit, lineage, Removal(each.first, exact=True))

    def inherit(self, other: UnitEntry, sources: dict[int, int]) -> None:
        """Inherit the pending ranges of the same unit of an older plan. sources: their numbers here by those there."""
        for source in sorted(other.pending & set(sources)):
            self.pending.add(sources[source])
            self._runs[sources[source]] = other._runs.pop(source)
            other.pending.discard(source)


class SharedEntry:
    """The entries of one shedder that a stream comes to: a tuple is let in at all of them, or at none."""

    __slots__ = ("entries", "place", "shedder", "units")

    def __init__(self, shedder: Shedder, place: int, entries: Sequence[UnitEntry]) -> None:
        self.shedder, self.place, self.entries = shedder, place, tuple(entries)
        self.units = tuple(entry.unit for entry in entries)

    def decide(self, at_ns: int, lineage: Lineage) -> tuple[bool, list[Effect]]:
        """Decide on a tuple, when the shedder is not due. Returns whether it is let in, and the effects before it."""
        shedder, source = self.shedder, lineage[0]
        shedder.offered += 1
        if shedder.rule.keeps(at_ns, lineage, shedder.backlog.arrived(at_ns, self.place)):
            return True, [effect for entry in self.entries for effect in entry.forward(source)]
        shedder.shed += 1
        free = shedder.rule.free(source)
        effects = [effect for entry in self.entries for effect in entry.shed(lineage, free)]
        return False, effects + shedder.withdraw_unneeded()

    def others(self, route: Route, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Those of the units that have none of these entries."""
        return () if self.units == route.units else tuple(unit for unit in units if unit not in self.units)


class Rule(Protocol):
    """The shedding policy of a shedder. policy: its number in SHED facts."""

    policy: int

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """Whether an arriving tuple is let in."""

    def free(self, source: int) -> Free | None:
        """For `RemovedRanges`: spans that no window of that source needs. None: all."""

    def period(self, load: Load) -> int:
        """End a period. Returns how many of the oldest tuples are shed."""

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        """Which tuples wait for nothing any more, since they were let in. None: each still waits for something."""

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        """Inherit from the same policy for the same windows in an older plan. sources: numbers here by those there."""

    @property
    def decided(self) -> tuple[int, int]:
        """Windows decided on when they opened, and those of them that were denied."""


class Shedder:
    """One shedder of a plan. windows: names of the operators. offered, shed: tuples."""

    def __init__(self, rule: Rule, windows: Sequence[str], backlog: Backlog, period_ns: int) -> None:
        self.rule, self.policy, self.windows, self.backlog = rule, rule.policy, tuple(windows), backlog
        self.period_ns = period_ns
        self.due_ns = 0
        self.offered = self.shed = 0
        self.entries: tuple[UnitEntry, ...] = ()
        self.sources: dict[str, int] = {}  # of the windows, by name

    def tick(self, at_ns: int) -> list[Effect]:
        """End a period, at the first event at `due_ns` or later. Returns the effects, in order."""
        self.due_ns = (self.due_ns if self.due_ns else at_ns) + self.period_ns
        if self.due_ns <= at_ns:
            self.due_ns += ((at_ns - self.due_ns) // self.period_ns + 1) * self.period_ns
        self.backlog.period()
        most = self.rule.period(self.backlog.load)
        return list(self._withdraw(self._oldest(most))) if most else self.withdraw_unneeded()

    def withdraw_unneeded(self) -> list[Effect]:
        """Shed what waits for no window any more, once windows were given up. Returns the effects."""
        unneeded = self.rule.unneeded()
        if unneeded is None:
            return []
        waiting = {job.lineage: None for entry in self.entries for job in by_age(entry.unit.queue)}
        return list(self._withdraw({lineage: None for lineage in waiting if unneeded(lineage)}))

    def _oldest(self, most: int) -> dict[Lineage, None]:
        """The oldest tuples of all units on the way, the deepest unit first."""
        gone: dict[Lineage, None] = {}
        for entry in reversed(self.entries):
            if len(gone) < most:
                waiting = [job.lineage for job in by_age(entry.unit.queue) if job.lineage not in gone]
                gone.update(dict.fromkeys(waiting[: most - len(gone)]))
        return gone

    def _withdraw(self, gone: dict[Lineage, None]) -> Iterator[Effect]:
        """A tuple that waits in several units leaves all of them. Their ranges are forwarded at once: punctuation
        overtakes tuples, so it needs no survivor that carries it."""
        self.shed += len(gone)
        for entry in self.entries if gone else ():
            taken = [job.lineage for job in by_age(entry.unit.queue) if job.lineage in gone]
            if taken:
                yield Withdrawal(entry.unit, gone)
            for lineage in taken:
                yield from entry.shed(lineage, self.rule.free(lineage[0]))
            for source in sorted({lineage[0] for lineage in taken}):
                yield from entry.forward(source)

    def inherit(self, other: Shedder, sources: dict[int, int]) -> None:
        """Inherit from the same policy for the same windows in an older plan. sources: numbers here by those there."""
        self.due_ns, self.offered, self.shed = other.due_ns, other.offered, other.shed
        self.rule.inherit(other.rule, sources)

    def release_resources(self) -> None:
        """Release all references to units."""
        for entry in self.entries:
            entry.unit.join_shedder = None
        self.entries = ()
        self.backlog.release_resources()

    def counts(self) -> dict[str, int]:
        """By window: `windows.W.load_ppm` (rho, as measured), tuples offered and those shed of them, windows decided on
        and those denied of them."""
        decided, denied = self.rule.decided
        made = {"load_ppm": self.backlog.load_ppm, "offered": self.offered, "shed": self.shed}
        if decided:
            made |= {"decided": decided, "denied": denied}
        return {f"windows.{window}.{name}": n for window in self.windows for name, n in made.items()}


__all__ = ["Free", "Rule", "SharedEntry", "Shedder", "UnitEntry"]
