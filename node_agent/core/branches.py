"""What becomes of a tuple beside running: joins by lineage, absence marks, losses, and what policing sheds.

They live in the engine, not in operators: a join decides when an instance is released, and every contributor's end is a
fact.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from node_agent.core import plan as plans
from node_agent.core.facts import Facts
from node_agent.core.parts import ABSENT, Join, Lineage, Loaded, Route, Step, Unit, Waiting, merged
from protos.records import (
    CAUSE_JOIN_EXPIRED,
    LOST,
    MERGED,
    NO_REF,
    POLICY_ARRIVALS,
    POLICY_SELECTIVITY,
    SHED,
    SURPLUS_MOST,
    SURPLUS_SHIFT,
)  # fmt: skip


class Commands(Protocol):
    """What the engine asks of its driver."""

    def send(self, at_ns: int, loaded: Loaded, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Ship a tuple, or the absence mark ABSENT, to a peer."""

    def deliver(self, at_ns: int, loaded: Loaded, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result is there."""


class Branches:
    """The part of the engine that keeps track of tuples whose other branches are elsewhere."""

    __slots__ = ("commands", "facts", "loaded", "shed_by", "slow", "surplus")

    def __init__(self, facts: Facts, commands: Commands) -> None:
        self.facts, self.commands = facts, commands
        self.loaded: list[Loaded] = []
        self.surplus: dict[int, int] = {}  # results of the running instance that were shed, by slot
        self.shed_by: dict[int, int] = {}  # tuples, windows and results that were shed, by the number of the policy
        self.slow = False  # the running instance does not end by the usual path

    def release(self, at_ns: int, unit: Unit, lineage: Lineage, payload: Any) -> None:
        """Create a task instance."""
        raise NotImplementedError

    # -- joins by lineage

    def _join(self, at_ns: int, join: Join, port: int, lineage: Lineage, payload: Any) -> None:
        key = lineage[:4]
        waiting = join.waiting.get(key)
        if waiting is None:
            if len(join.waiting) >= Join.LIMIT:
                self._expired(at_ns, join, join.waiting.pop(next(iter(join.waiting))))
            waiting = join.waiting[key] = Waiting(join.ports, at_ns + join.wait_ns)
        while waiting.taken >> port & 1:  # one lineage twice, by way of a union: it waits for partners of its own
            if waiting.after is None:
                waiting.after = Waiting(join.ports, at_ns + join.wait_ns)
            waiting = waiting.after
        waiting.taken |= 1 << port
        if payload is ABSENT:
            waiting.absent = True
        else:
            waiting.lineages[port], waiting.values[port] = lineage, payload
        if waiting.taken == (1 << join.ports) - 1:  # the first in its row: ports fill in the order of arrival
            del join.waiting[key]
            if waiting.after is not None:
                join.waiting[key] = waiting.after
            self._joined(at_ns, join.unit, waiting)

    def _joined(self, at_ns: int, unit: Unit, waiting: Waiting) -> None:
        present = [lineage for lineage in waiting.lineages if lineage is not None]
        if not present:
            return  # every branch was filtered; nothing is left to account for
        parent = present[0]
        for lineage in present if waiting.absent else present[1:]:
            self.facts.write(
                MERGED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2],
                at_ns, parent[0], parent[1], lineage[3], int(waiting.absent), parent[2],
            )  # fmt: skip
        if waiting.absent:
            self._mark(at_ns, unit, parent, 0)
        else:
            self.release(at_ns, unit, merged(present), tuple(waiting.values))

    def expire(self, at_ns: int) -> None:
        """Give up join results whose contributors have not come in time."""
        for loaded in self.loaded:
            for join in loaded.joins:
                while join.waiting:
                    key = next(iter(join.waiting))
                    if join.waiting[key].expires_ns > at_ns:
                        break
                    self._expired(at_ns, join, join.waiting.pop(key))

    def _expired(self, at_ns: int, join: Join, waiting: Waiting) -> None:
        for lineage in waiting.lineages:
            if lineage is not None:
                self._lost(at_ns, join.unit, lineage, CAUSE_JOIN_EXPIRED)
        if waiting.after is not None:
            self._expired(at_ns, join, waiting.after)

    # -- absence marks and losses

    def _absent(self, at_ns: int, route: Route, lineage: Lineage) -> None:
        """Carry an absence mark along a stream to the joins that wait for it."""
        if not route.marked:
            return
        for unit in route.units:
            if unit.inputs == 1 or self._all_absent(unit, lineage):
                self._mark(at_ns, unit, lineage, 0)
        for join, port in route.joins:
            self._join(at_ns, join, port, lineage, ABSENT)
        for peer in route.sends:
            self.commands.send(at_ns, route.loaded, peer, route.stream, lineage, ABSENT)

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

    def _mark(self, at_ns: int, unit: Unit, lineage: Lineage, counts: int) -> None:
        for exit_ in unit.marks:
            if not counts >> (8 * exit_.index) & 0xFF:
                self._absent(at_ns, exit_.route, lineage)

    def _lost(
        self, at_ns: int, unit: Unit, lineage: Lineage, cause: int, start_ns: int = 0, counts: int = 0, shed: int = 0
    ) -> None:
        self.facts.write(
            LOST, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, cause, lineage[3], shed, start_ns,
            counts,
        )  # fmt: skip
        if unit.marks:
            self._mark(at_ns, unit, lineage, counts)

    # -- policing

    def _count_shed(self, policy: int, tuples: int = 1) -> None:
        """Whoever writes SHED facts says so here."""
        self.shed_by[policy] = self.shed_by.get(policy, 0) + tuples

    def _shed_arrival(self, at_ns: int, route: Route, lineage: Lineage, policy: int = POLICY_ARRIVALS) -> None:
        """A source sent more than it declared, or more than there is room for: its tuple is admitted and goes nowhere.

        No branch gets it, so no join waits for it: marks are not needed, and would be as many as the excess.
        """
        self.facts.write(
            SHED, route.loaded.flags, NO_REF, lineage[0], lineage[1], lineage[2], at_ns, policy, lineage[3],
            route.stream,
        )  # fmt: skip
        self._count_shed(policy)

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
            self.surplus[slot] = self.surplus.get(slot, 0) + 1
            self.slow = True  # its record is not the usual one
        return passed

    def _take_surplus(self, slot: int = 0) -> int:
        return min(self.surplus.pop(slot, 0), SURPLUS_MOST) << SURPLUS_SHIFT
