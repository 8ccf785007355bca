"""At the door of a unit: a shedder decides who is let in, and what becomes of the others.

Whoever is not let in is SHED at that unit, and its number goes on behind the unit at once, or in a range with its
neighbours: before the next tuple of its source that is let in, with the source's next heartbeat, or when as many ranges
wait as may. So a window that lacks a tuple is never taken for complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from node_agent.core.backlog import Backlog
from node_agent.core.parts import Lineage, Removed, Route, Unit
from node_agent.core.windows.admission import Load
from node_agent.core.windows.shedding import Marks
from protos.records import SHED

if TYPE_CHECKING:
    from node_agent.core.branches import Branches

Free = Callable[[int, int], bool]  # whether no window that is worth keeping meets origins least..greatest


class Door:
    """Of one unit. single: behind it a join by lineage waits for each number, so none is kept back for a range."""

    __slots__ = ("_runs", "lateness_ns", "pending", "shedder", "single", "unit")

    def __init__(self, unit: Unit, shedder: Shedder, lateness_ns: int, single: bool) -> None:
        self.unit, self.shedder, self.lateness_ns, self.single = unit, shedder, lateness_ns, single
        self.pending: set[int] = set()  # sources of which ranges wait here
        self._runs: dict[int, tuple[int, Marks]] = {}  # by source: its incarnation, ranges

    def shed(self, engine: Branches, at_ns: int, lineage: Lineage, free: Free | None) -> None:
        """A tuple that was not let in, or was taken from the queue."""
        source, epoch, seq, ordinal, origin_ns, _ = lineage
        unit, policy = self.unit, self.shedder.policy
        engine.facts.write(SHED, unit.flags, unit.id, source, epoch, seq, at_ns, policy, ordinal)
        engine._count_shed(policy)
        unit.shed += 1
        if self.single:
            engine._gone(at_ns, unit, lineage, Removed(seq))
            return
        run = self._runs.get(source)
        if run is None or run[0] != epoch:
            self.hand_on(engine, at_ns, source)
            run = self._runs[source] = (epoch, Marks(self.lateness_ns))
        self.pending.add(source)
        if run[1].shed(seq, origin_ns, free):
            self.hand_on(engine, at_ns, source)

    def hand_on(self, engine: Branches, at_ns: int, source: int) -> None:
        """What waits of that source goes on behind the unit. Where a tuple lies in event time is the lower bound of its
        origin, on this node, so one of a range does lie at the greatest."""
        if source in self.pending:
            self.pending.discard(source)
            epoch, marks = self._runs[source]
            for each in marks.take():
                lineage = (source, epoch, each.last, 0, each.least_ns, each.greatest_ns)
                engine._gone(at_ns, self.unit, lineage, Removed(each.first, exact=True))

    def beat(self, engine: Branches, at_ns: int, source: int) -> None:
        """A heartbeat of a source comes by."""
        if at_ns >= self.shedder.due_ns:
            self.shedder.tick(engine, at_ns)
        self.hand_on(engine, at_ns, source)

    def go_on(self, other: Door, sources: dict[int, int]) -> None:
        """A new plan has the same unit. What waits at the old door is told by the new one. sources: by old number."""
        for source in sorted(other.pending & set(sources)):
            self.pending.add(sources[source])
            self._runs[sources[source]] = other._runs.pop(source)
            other.pending.discard(source)


class Guard:
    """Where a stream stands before doors of one shedder: the same tuple is let in at all of them, or at none."""

    __slots__ = ("doors", "place", "shedder", "units")

    def __init__(self, shedder: Shedder, place: int, doors: Sequence[Door]) -> None:
        self.shedder, self.place, self.doors = shedder, place, tuple(doors)
        self.units = tuple(door.unit for door in doors)

    def lets_in(self, engine: Branches, at_ns: int, lineage: Lineage) -> bool:
        """Whether a tuple goes on; else it is shed here."""
        shedder, source = self.shedder, lineage[0]
        if at_ns >= shedder.due_ns:
            shedder.tick(engine, at_ns)
        shedder.offered += 1
        if shedder.keeps(at_ns, lineage, shedder.backlog.arrived(at_ns, self.place)):
            for door in self.doors:
                if source in door.pending:
                    door.hand_on(engine, at_ns, source)
            return True
        shedder.shed += 1
        for door in self.doors:
            door.shed(engine, at_ns, lineage, shedder.free(source))
        return False

    def others(self, route: Route, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Of those units the ones that are not behind these doors."""
        return () if self.units == route.units else tuple(unit for unit in units if unit not in self.units)


class Shedder:
    """One entry of a plan's sheddings. policy: number in SHED facts. windows: names of the operators. offered, shed:
    tuples."""

    def __init__(self, policy: int, windows: Sequence[str], backlog: Backlog, period_ns: int) -> None:
        self.policy, self.windows, self.backlog = policy, tuple(windows), backlog
        self.period_ns = period_ns
        self.due_ns = 0
        self.offered = self.shed = 0
        self.doors: tuple[Door, ...] = ()
        self.sources: dict[str, int] = {}  # of the windows, by name

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """Whether an arriving tuple is let in."""
        raise NotImplementedError

    def free(self, source: int) -> Free | None:
        """For `Marks`: spans that no window of that source needs. None: all."""
        del source
        return None

    def tick(self, engine: Branches, at_ns: int) -> None:
        """The first event at `due_ns` or later."""
        self.due_ns = (self.due_ns if self.due_ns else at_ns) + self.period_ns
        if self.due_ns <= at_ns:
            self.due_ns += ((at_ns - self.due_ns) // self.period_ns + 1) * self.period_ns
        self.backlog.period()
        self.period(engine, at_ns)

    def period(self, engine: Branches, at_ns: int) -> None:
        """A period has passed."""

    def go_on(self, other: Shedder, sources: dict[int, int]) -> None:
        """A new plan sheds by the same policy for the same windows; sources: their numbers here, by those there."""
        self.due_ns, self.offered, self.shed = other.due_ns, other.offered, other.shed

    def dissolve(self) -> None:
        """Nothing refers to itself any more."""
        for door in self.doors:
            door.unit.door = door.unit.guard = None
        self.doors = ()
        self.backlog.dissolve()

    @property
    def decided(self) -> tuple[int, int]:
        """Windows decided on when they opened, and of them not admitted."""
        return 0, 0

    def counts(self) -> dict[str, int]:
        """By window: `windows.W.load_ppm` (rho, as measured), tuples at the door and of them shed, windows decided on
        and of them denied."""
        decided, denied = self.decided
        made = {"load_ppm": self.backlog.load_ppm, "offered": self.offered, "shed": self.shed}
        if decided:
            made |= {"decided": decided, "denied": denied}
        return {f"windows.{window}.{name}": n for window in self.windows for name, n in made.items()}


__all__ = ["Door", "Free", "Guard", "Shedder"]
