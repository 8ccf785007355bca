"""Writes the engine's facts, and counts tuples that are shed, lost and degraded.

Each kind of fact has one method. The engine itself packs the fact of an instance's usual end.
"""

from node_agent.core.engine.window_ends import WindowEvent
from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import Route, SideSlot, Unit
from node_agent.core.plan import Output
from node_agent.core.windows.window_operator import WindowOperator
from protos.records import (
    ABSORBED,
    ADMITTED,
    DEGRADED,
    LOST,
    MERGED,
    NO_REF,
    OUTPUT,
    POLICY_WINDOW,
    RAN,
    RECORD,
    RECORD_BYTES,
    SHED,
    WINDOW,
)  # fmt: skip

COMPILED = not __file__.endswith(".py")

pack = RECORD.pack_into


class Ledger:
    """shed_by: tuples, windows and results that were shed, by the number of the policy. lost_by: tuples, by the number
    of the cause. degraded: tuples for which something else ran than that operator, by its name."""

    __slots__ = ("degraded", "facts", "lost_by", "shed_by")

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.shed_by: dict[int, int] = {}
        self.lost_by: dict[int, int] = {}
        self.degraded: dict[str, int] = {}

    def admitted(self, at_ns: int, route: Route, lineage: Lineage, size: int, sent_ns: int) -> None:
        """A tuple of the source of that route. size: payload bytes. sent_ns: on its client's clock."""
        source, epoch, seq, _, lo_ns, hi_ns = lineage
        self.facts.admitted += 1
        route.admitted += 1
        self.facts.write(
            ADMITTED, route.loaded.flags, source, source, epoch, seq, at_ns, lo_ns, hi_ns, sent_ns, 0, size
        )

    def ran(
        self, flags: int, unit: int, lineage: Lineage, release_ns: int, start_ns: int, end_ns: int, due_ns: int,
        decision: int, outputs: int,
    ) -> None:  # fmt: skip
        """An instance, or one tuple of a batch. decision: what choosing it took, and how many results were shed.
        outputs: the word of them."""
        facts = self.facts
        position = facts.position
        if position == facts.limit:
            position, facts.limit = facts.refill()
        source, epoch, seq, ordinal, _, _ = lineage
        if COMPILED:
            facts.put(
                position, RAN | flags << 8 | unit << 16, source, epoch, seq, release_ns, start_ns, end_ns, due_ns,
                decision, ordinal << 32 | outputs,
            )  # fmt: skip
        else:
            pack(
                facts.buffer, position, RAN, flags, unit, source, epoch, seq, release_ns, start_ns, end_ns, due_ns,
                decision, ordinal << 32 | outputs,
            )  # fmt: skip
        facts.position = position + RECORD_BYTES

    def delivered(self, at_ns: int, route: Route, output: Output, lineage: Lineage) -> None:
        """A result."""
        source, epoch, seq, ordinal, lo_ns, hi_ns = lineage
        facts = self.facts
        facts.write(
            OUTPUT, route.loaded.flags, output.id, source, epoch, seq, at_ns, lo_ns, hi_ns, output.deadline_ns, ordinal
        )
        facts.latencies_ns += 2 * at_ns - lo_ns - hi_ns

    def absorbed(self, at_ns: int, route: Route, side: SideSlot, lineage: Lineage) -> None:
        """A side input has a new value."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(
            ABSORBED, route.loaded.flags, side.operator_id, source, epoch, seq, at_ns, route.stream, ordinal
        )

    def merged(self, at_ns: int, unit: Unit, lineage: Lineage, parent: Lineage, absent: bool) -> None:
        """A tuple is part of a join's result, which is the parent's; absent: there is none."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(
            MERGED, unit.flags, unit.id, source, epoch, seq, at_ns, parent[0], parent[1], ordinal, int(absent),
            parent[2],
        )  # fmt: skip

    def shed(self, at_ns: int, unit: Unit, lineage: Lineage, policy: int, operator_id: int = 0) -> None:
        """A tuple is shed at a unit, or in it as a result of that operator."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(SHED, unit.flags, unit.id, source, epoch, seq, at_ns, policy, ordinal, 0, operator_id)
        unit.shed += 1
        self._count_shed(policy)

    def unfused(self, at_ns: int, unit: Unit, lineage: Lineage, policy: int) -> None:
        """A fusion leaves a tuple out, as its query asks."""
        self.shed(at_ns, unit, lineage, policy)
        unit.unfused += 1

    def shed_arrival(self, at_ns: int, route: Route, lineage: Lineage, policy: int) -> None:
        """An admitted tuple is shed at its source."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(SHED, route.loaded.flags, NO_REF, source, epoch, seq, at_ns, policy, ordinal, route.stream)
        route.shed += 1
        self._count_shed(policy)

    def shed_window(self, at_ns: int, route: Route, lineage: Lineage) -> None:
        """A window is admitted and gives no result."""
        source, epoch, seq, _, origin_ns, _ = lineage
        flags, facts = route.loaded.flags, self.facts
        facts.admitted += 1
        facts.write(ADMITTED, flags, source, source, epoch, seq, at_ns, origin_ns, origin_ns, 0, 0, 0)
        facts.write(SHED, flags, NO_REF, source, epoch, seq, at_ns, POLICY_WINDOW, 0, route.stream)
        self._count_shed(POLICY_WINDOW)

    def lost(
        self, at_ns: int, unit: Unit, lineage: Lineage, cause: int, start_ns: int = 0, counts: int = 0, shed: int = 0
    ) -> None:
        """A tuple is lost at a unit, or in it. counts: the outputs word of its instance; shed: results of it."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(LOST, unit.flags, unit.id, source, epoch, seq, at_ns, cause, ordinal, shed, start_ns, counts)
        unit.lost += 1
        self._count_lost(cause)

    def lost_arrival(self, at_ns: int, route: Route, lineage: Lineage, cause: int) -> None:
        """A tuple that none of the stream's consumers on this node gets."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(LOST, route.loaded.flags, NO_REF, source, epoch, seq, at_ns, cause, ordinal, route.stream)
        route.lost += 1
        self._count_lost(cause)

    def ran_instead(self, at_ns: int, unit: Unit, operator_id: int, lineage: Lineage) -> None:
        """Something else than that operator runs for a late tuple."""
        source, epoch, seq, ordinal, _, _ = lineage
        self.facts.write(DEGRADED, unit.flags, unit.id, source, epoch, seq, at_ns, operator_id, ordinal)
        name = unit.loaded.plan.operator_by_id[operator_id].name
        self.degraded[name] = self.degraded.get(name, 0) + 1

    def window(self, at_ns: int, windowed: WindowOperator, epoch: int, event: WindowEvent) -> None:
        """What has become of a window, of an incarnation's."""
        self.facts.write(
            WINDOW, windowed.loaded.flags, windowed.operator_id, windowed.window.source, epoch, event.number,
            at_ns, event.state, event.start, event.end, event.cause, event.tuples,
        )  # fmt: skip

    def _count_shed(self, policy: int) -> None:
        self.shed_by[policy] = self.shed_by.get(policy, 0) + 1

    def _count_lost(self, cause: int) -> None:
        self.lost_by[cause] = self.lost_by.get(cause, 0) + 1


__all__ = ["Ledger"]
