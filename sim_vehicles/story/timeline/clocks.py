"""The offset between two nodes' clocks at an instant, from CLOCK records. Nodes of one clock domain: exactly 0."""

from __future__ import annotations

from collections.abc import Iterable

from protos.records import Clock, Record
from sim_vehicles.story.timeline.run_trace import Incarnation, PlanView

FAR_NS = 1 << 61  # an offset beyond it is how an agent writes that it knows none


class UnknownOffsetError(Exception):
    """No CLOCK record says what the offset was."""


class Offsets:
    """Offsets between nodes, by name. A CLOCK record holds the interval of local - peer at its instant."""

    def __init__(self, plan: PlanView, records: Iterable[tuple[Incarnation, Record]], clocks: dict[str, str]) -> None:
        """clocks: node -> clock domain."""
        self._clocks = clocks
        self._known: dict[tuple[str, str], list[Clock]] = {}
        for one, record in records:
            if isinstance(record, Clock) and record.peer in plan.nodes:
                self._known.setdefault((one.node, plan.nodes[record.peer]), []).append(record)

    def same(self, node: str, other: str) -> bool:
        """Whether both read one clock."""
        return node == other or (bool(self._clocks.get(node)) and self._clocks.get(node) == self._clocks.get(other))

    def of(self, local: str, peer: str, at_ns: int) -> int:
        """local - peer in ns: the middle of the interval that was known at `at_ns` (of `local`'s clock).

        What `local` knew last before then, else what it knew first, else what the peer knew of it. Raises
        UnknownOffsetError.
        """
        if self.same(local, peer):
            return 0
        found = self._middle(local, peer, at_ns)
        if found is None:
            back = self._middle(peer, local, None)
            if back is None:
                raise UnknownOffsetError(f"no CLOCK record of {local} about {peer}: their offset is not known")
            return -back
        return found

    def _middle(self, local: str, peer: str, at_ns: int | None) -> int | None:
        usable = [
            each
            for each in self._known.get((local, peer), ())
            if abs(each.offset_lo_ns) < FAR_NS and abs(each.offset_hi_ns) < FAR_NS
        ]
        if not usable:
            return None
        before = [each for each in usable if at_ns is None or each.at_ns <= at_ns]
        chosen = max(before, key=lambda each: each.at_ns) if before else min(usable, key=lambda each: each.at_ns)
        return (chosen.offset_lo_ns + chosen.offset_hi_ns) // 2
