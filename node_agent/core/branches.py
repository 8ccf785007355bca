"""What becomes of a tuple beside running: joins by lineage, absence marks, losses, and what policing sheds.

They live in the engine, not in operators: a join decides when an instance is released, and every contributor's end is a
fact.
"""

from collections.abc import Container, Sequence
from typing import Any, Protocol

from node_agent.core import plan as plans
from node_agent.core.closings import Closings
from node_agent.core.facts import Facts
from node_agent.core.parts import (
    ABSENT,
    Absent,
    Job,
    Join,
    Lineage,
    Loaded,
    Mark,
    Quiet,
    Removed,
    Route,
    Step,
    Unit,
    Waiting,
    merged,
)
from protos.records import (
    CAUSE_JOIN_EXPIRED,
    DEGRADED,
    LOST,
    MERGED,
    NO_REF,
    POLICY_ARRIVALS,
    POLICY_LATE,
    POLICY_SELECTIVITY,
    SHED,
    SURPLUS_MOST,
    SURPLUS_SHIFT,
)  # fmt: skip


class Commands(Protocol):
    """What the engine asks of its driver."""

    def send(self, at_ns: int, loaded: Loaded, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Ship a tuple, or a mark (of MARKS), to a peer."""

    def deliver(self, at_ns: int, loaded: Loaded, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result is there."""


class Branches(Closings):
    """The part of the engine that keeps track of tuples whose other branches are elsewhere."""

    __slots__ = ("commands", "degraded", "slow", "surplus")

    def __init__(self, facts: Facts, commands: Commands) -> None:
        super().__init__(facts)
        self.commands = commands
        self.surplus: dict[int, int] = {}  # results of the running instance that were shed, by slot
        self.degraded: dict[str, int] = {}  # tuples for which something else ran than that operator, by its name
        self.slow = False  # the running instance does not end by the usual path

    def release(self, at_ns: int, unit: Unit, lineage: Lineage, payload: Any) -> None:
        """Create a task instance."""
        raise NotImplementedError

    def _remove(self, unit: Unit, lineages: Container[Lineage]) -> list[Job]:
        """Take all jobs of these tuples out of a unit's queue."""
        raise NotImplementedError

    # -- joins by lineage

    def _join(self, at_ns: int, join: Join, port: int, lineage: Lineage, payload: Any) -> None:
        key = lineage[:4]
        waiting = join.waiting.get(key)
        if waiting is None:
            if len(join.waiting) >= Join.LIMIT:
                self._expired(at_ns, join, join.waiting.pop(next(iter(join.waiting))))
            waiting = join.waiting[key] = Waiting(join.ports, at_ns + join.wait_ns)
        row = 0
        while waiting.taken >> port & 1:  # one lineage twice, by way of a union: it waits for partners of its own
            row += 1
            if row == Join.IN_A_ROW:
                if payload is not ABSENT and payload is not _GONE:
                    self._lost(at_ns, join.unit, lineage, CAUSE_JOIN_EXPIRED)
                return
            if waiting.after is None:
                waiting.after = Waiting(join.ports, at_ns + join.wait_ns)
            waiting = waiting.after
        waiting.taken |= 1 << port
        if payload is ABSENT or payload is _GONE:
            waiting.absent |= Waiting.FILTERED if payload is ABSENT else Waiting.REMOVED
            waiting.mark = lineage
        else:
            waiting.lineages[port], waiting.values[port] = lineage, payload
        if waiting.taken == (1 << join.ports) - 1:  # the first in its row: ports fill in the order of arrival
            del join.waiting[key]
            if waiting.after is not None:
                join.waiting[key] = waiting.after
            self._joined(at_ns, join.unit, waiting)

    def _joined(self, at_ns: int, unit: Unit, waiting: Waiting) -> None:
        present = [lineage for lineage in waiting.lineages if lineage is not None]
        if not present:  # nothing is left to account for
            self._without(at_ns, unit, waiting)
            return
        parent = present[0]
        for lineage in present if waiting.absent else present[1:]:
            self.facts.write(
                MERGED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2],
                at_ns, parent[0], parent[1], lineage[3], int(waiting.absent > 0), parent[2],
            )  # fmt: skip
        if waiting.absent:
            self._without(at_ns, unit, waiting)
        elif unit.guard is None or unit.guard.lets_in(self, at_ns, merged(present)):
            self.release(at_ns, unit, merged(present), tuple(waiting.values))

    def _without(self, at_ns: int, unit: Unit, waiting: Waiting) -> None:
        """A join gives no result. One branch that was filtered is enough for there to be none, whatever else was shed;
        if not, a result is missing."""
        if unit.marks and waiting.mark is not None:
            filtered = waiting.absent & Waiting.FILTERED
            self._mark(at_ns, unit, waiting.mark, 0, ABSENT if filtered else removed(waiting.mark))

    def expire(self, at_ns: int) -> None:
        """Give up join results whose contributors have not come in time; of windows, what is past its deadline and
        numbers that have been missing for too long."""
        for loaded in self.loaded:
            for join in loaded.joins:
                while join.waiting:
                    key = next(iter(join.waiting))
                    if join.waiting[key].expires_ns > at_ns:
                        break
                    self._expired(at_ns, join, join.waiting.pop(key))
        if self.windows:
            self._expire_windows(at_ns)

    def _expired(self, at_ns: int, join: Join, waiting: Waiting) -> None:
        if waiting.absent & Waiting.FILTERED:
            self._without(at_ns, join.unit, waiting)
        for lineage in waiting.lineages:
            if lineage is not None:
                self._lost(at_ns, join.unit, lineage, CAUSE_JOIN_EXPIRED)
        if waiting.after is not None:
            self._expired(at_ns, join, waiting.after)

    # -- absence marks and losses

    def _absent(self, at_ns: int, route: Route, lineage: Lineage, mark: Mark = ABSENT) -> None:
        """Carry a mark along a stream to the joins and windows that wait for it."""
        if not route.marked:
            return
        if not route.counted and not isinstance(mark, Absent):  # to joins only
            for each in _each(lineage, mark):
                self._absent(at_ns, route, each)
            return
        if isinstance(mark, Quiet):
            for door in route.doors:
                door.beat(self, at_ns, lineage[0])
        for unit in route.units:
            if unit.collects is not None:
                self._tell(at_ns, unit.collects, lineage, mark)
            elif unit.inputs == 1 or self._all_absent(unit, lineage):
                self._mark(at_ns, unit, lineage, 0, mark)
        for join, port in route.joins:
            self._mark_join(at_ns, join, port, lineage, mark)
        for peer in route.sends:
            self.commands.send(at_ns, route.loaded, peer, route.stream, lineage, mark)

    def _mark_join(self, at_ns: int, join: Join, port: int, lineage: Lineage, mark: Mark) -> None:
        if isinstance(mark, Quiet):
            self._mark(at_ns, join.unit, lineage, 0, mark)
        elif isinstance(mark, Removed):
            for each in _each(lineage, mark):
                self._join(at_ns, join, port, each, _GONE)
        else:
            self._join(at_ns, join, port, lineage, ABSENT)

    def _gone(self, at_ns: int, unit: Unit, lineage: Lineage, mark: Removed | None = None, counts: int = 0) -> None:
        """A tuple was shed or lost in this unit, or at its door, or a range of them (mark)."""
        if unit.collects is not None:
            self._tell(at_ns, unit.collects, lineage, mark or removed(lineage))
        elif unit.marks:
            self._mark(at_ns, unit, lineage, counts, mark or removed(lineage))

    def _all_absent(self, unit: Unit, lineage: Lineage) -> bool:
        """Count a mark at a union: it gives nothing only when none of its inputs has anything to give."""
        key, absences = lineage[:4], unit.absences
        count = absences.pop(key, 0) + 1
        if count == unit.inputs:
            return True
        if len(absences) >= Unit.LIMIT:
            del absences[next(iter(absences))]
        absences[key] = count
        return False

    def _mark(self, at_ns: int, unit: Unit, lineage: Lineage, counts: int, mark: Mark = ABSENT) -> None:
        for exit_ in unit.marks:
            if not counts >> (8 * exit_.index) & 0xFF:
                self._absent(at_ns, exit_.route, lineage, mark)

    def _lost(
        self, at_ns: int, unit: Unit, lineage: Lineage, cause: int, start_ns: int = 0, counts: int = 0, shed: int = 0
    ) -> None:
        self.facts.write(
            LOST, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, cause, lineage[3], shed, start_ns,
            counts,
        )  # fmt: skip
        self._count_lost(cause)
        unit.lost += 1
        self._gone(at_ns, unit, lineage, counts=counts)

    # -- policing

    def _shed_arrival(self, at_ns: int, route: Route, lineage: Lineage, policy: int = POLICY_ARRIVALS) -> None:
        """A source sent more than it declared, or more than there is room for: its tuple is admitted and goes nowhere.

        No branch gets it, so no join waits for it: only windows are told, of whole runs.
        """
        self.facts.write(
            SHED, route.loaded.flags, NO_REF, lineage[0], lineage[1], lineage[2], at_ns, policy, lineage[3],
            route.stream,
        )  # fmt: skip
        self._count_shed(policy)
        route.shed += 1
        self._withhold(at_ns, route, lineage)

    def police(self, at_ns: int, unit: Unit, step: Step, lineages: Sequence[Lineage], slot: int = 0) -> int:
        """An operator of the running instance has made these results of one input: how many of them pass.

        The others, the last ones, are shed. If it gave none, or raised, it has to be told as well.
        """
        assert step.police is not None
        passed = step.police.passes(len(lineages))
        for lineage in lineages[passed:]:
            self.facts.write(
                SHED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, POLICY_SELECTIVITY, lineage[3],
                0, step.operator_id,
            )  # fmt: skip
            self._count_shed(POLICY_SELECTIVITY)
            unit.shed += 1
            self.surplus[slot] = self.surplus.get(slot, 0) + 1
            self.slow = True  # its record is not the usual one
        return passed

    def judge(self, at_ns: int, unit: Unit, step: Step, lineage: Lineage, slot: int = 0) -> Step | None:
        """An operator of the running instance that is asked about lateness would start now on that tuple: what runs,
        itself or in its place; None: the tuple is shed, as a result of the operator before it."""
        late = step.late
        if late is None or not late.concerns(at_ns, lineage):
            return step
        source, epoch, seq, ordinal, _, _ = lineage
        if late.variant is not None:
            self.facts.write(DEGRADED, unit.flags, unit.id, source, epoch, seq, at_ns, step.operator_id, ordinal)
            name = unit.loaded.plan.operator_by_id[step.operator_id].name
            self.degraded[name] = self.degraded.get(name, 0) + 1
            return late.variant
        self._shed_result(at_ns, unit, lineage, POLICY_LATE, late.before, slot)
        return None

    def _shed_result(self, at_ns: int, unit: Unit, lineage: Lineage, policy: int, operator_id: int, slot: int) -> None:
        """What that operator of the running instance gave is late."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(SHED, unit.flags, unit.id, source, epoch, seq, at_ns, policy, ordinal, 0, operator_id)
        self._count_shed(policy)
        unit.shed += 1
        self.surplus[slot] = self.surplus.get(slot, 0) + 1
        self.slow = True

    def _take_surplus(self, slot: int = 0) -> int:
        return min(self.surplus.pop(slot, 0), SURPLUS_MOST) << SURPLUS_SHIFT


_GONE = Removed(0)  # to a join: that branch was shed or lost


def removed(lineage: Lineage) -> Removed:
    """The mark of a tuple that was shed or lost."""
    return Removed(lineage[2], lineage[4] == lineage[5])


def _each(lineage: Lineage, mark: Mark) -> list[Lineage]:
    """Of a removed range: each of its numbers, the latest ones if it is longer than a join remembers."""
    if not isinstance(mark, Removed):
        return []
    source, epoch, last, ordinal, lo_ns, hi_ns = lineage
    first = max(mark.first, last + 1 - Join.LIMIT)
    return [(source, epoch, number, ordinal, lo_ns, hi_ns) for number in range(first, last + 1)]
