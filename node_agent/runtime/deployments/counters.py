"""Counters of what the engines have shed, lost, degraded, and closed in windows.

An engine counts for itself, in numbers that only grow; here what has come since the last look is added to the
counters of the runtime, which outlive engines and plans.
"""

from collections.abc import Hashable, Iterable, Mapping

from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import EngineSlot
from protos.records import CAUSES, SHED_POLICIES

PRESENT = "load_ppm"  # not a count: the latest one is told


class Counts:
    """`shed.POLICY`, `lost.CAUSE`, `degraded.OPERATOR`, `windows.W.WHAT` (with `_CAUSE`: part of it)."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._reported: dict[Hashable, Mapping[str, int]] = {}

    def update(self, engine_slots: Iterable[EngineSlot]) -> None:
        """Bring them up to date; before anything of an engine goes."""
        reported: dict[Hashable, Mapping[str, int]] = {}
        for engine_slot in engine_slots:
            engine, ledger = engine_slot.engine, engine_slot.engine.ledger
            shed = {f"shed.{SHED_POLICIES[policy]}": n for policy, n in ledger.shed_by.items()}
            lost = {f"lost.{CAUSES[cause]}": n for cause, n in ledger.lost_by.items()}
            reported[engine_slot] = shed | lost | {f"degraded.{name}": n for name, n in ledger.degraded.items()}
            for windowed in engine.windows.operators:
                closed = windowed.state.counts
                reported[windowed.state] = {f"windows.{windowed.name}.{what}": n for what, n in closed.items()}
            for loaded in engine.loaded:
                if loaded.shedders:
                    reported[loaded] = loaded.shedding_counts()
        for key, counts in reported.items():
            before = self._reported.get(key, {})
            for name, n in counts.items():
                self._count(name, n, before.get(name, 0))
        self._reported = reported

    def _count(self, name: str, n: int, before: int) -> None:
        if name.endswith(PRESENT):
            self._shared.counters[name] = n
        elif n != before:
            self._shared.counters[name] += n - before
