"""Executors for experiments: operators by another function, and the barrier of [P] 4.1."""

from collections.abc import Callable
from typing import Any

from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import Exit, Job, Step
from node_agent.host.trace_ring import RingFacts
from node_agent.runtime.executor import Executor, Item, Operate, apply


class HookedExecutor(Executor):
    """Runs operators by `operate`; with a barrier, an operator's outputs are held back until it has run on the whole
    burst, and between two tuples the node chooses anew."""

    __slots__ = ("_barrier", "_held")

    def __init__(self, engine: Engine, now: Callable[[], int], operate: Operate | None, barrier: bool) -> None:
        super().__init__(engine, now)
        self.operate = operate or apply
        self._barrier = barrier
        # Outputs that wait for the rest of their batch, by stream, source and origin.
        self._held: dict[tuple[int, int, int], list[tuple[Lineage, Any]]] = {}

    def run(self, job: Job, facts: RingFacts | None = None) -> Job | None:
        """One instance, operator by operator."""
        return self._run_items(job.unit, self._items(job), job.unit.chain, self.now())

    def _emit(self, step: Step, items: list[Item]) -> None:
        exit_ = step.exit
        if not self._barrier or exit_ is None:
            super()._emit(step, items)
            return
        for _, lineage, payload in items:
            self._hold(exit_, lineage, payload)
        self._release_batch(exit_.route.stream)

    def _hold(self, exit_: Exit, lineage: Lineage, payload: Any) -> None:
        self.engine.count_output(exit_)
        self._held.setdefault((exit_.route.stream, lineage[0], lineage[4]), []).append((lineage, payload))

    def _release_batch(self, stream: int) -> None:
        """Hand on what was held back, once no tuple of the same burst is left in the unit's queue."""
        job = self.engine.job
        assert job is not None
        source, origin_ns = job.lineage[0], job.lineage[4]
        if any(other.lineage[0] == source and other.lineage[4] == origin_ns for other in job.unit.queue):
            return
        at_ns = self.now()
        for lineage, payload in self._held.pop((stream, source, origin_ns), ()):
            self.engine.receive(at_ns, job.unit.loaded, stream, lineage, payload)
