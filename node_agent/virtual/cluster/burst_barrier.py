"""The barrier of [P] 4.1: an operator's outputs are held back until it has run on the whole burst."""

from collections.abc import Callable

from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import Exit
from node_agent.runtime.executor import Item


class BurstBarrier:
    """Holds what an engine's operators give. Between two tuples of a burst the node chooses anew."""

    __slots__ = ("_engine", "_held", "_now")

    def __init__(self, engine: Engine, now: Callable[[], int]) -> None:
        self._engine, self._now = engine, now
        # Outputs that wait for the rest of their batch, by stream, source and origin.
        self._held: dict[tuple[int, int, int], list[tuple[Lineage, object]]] = {}

    def emit(self, exit_: Exit, items: list[Item]) -> None:
        """Hold them, and hand on what waits for no other tuple."""
        for _, lineage, payload in items:
            self._engine.count_output(exit_)
            self._held.setdefault((exit_.route.stream, lineage[0], lineage[4]), []).append((lineage, payload))
        self._release_batch(exit_.route.stream)

    def _release_batch(self, stream: int) -> None:
        """Hand on what was held back, once no tuple of the same burst is left in the unit's queue."""
        job = self._engine.job
        assert job is not None
        source, origin_ns = job.lineage[0], job.lineage[4]
        if any(other.lineage[0] == source and other.lineage[4] == origin_ns for other in job.unit.queue):
            return
        at_ns = self._now()
        for lineage, payload in self._held.pop((stream, source, origin_ns), ()):
            self._engine.receive(at_ns, job.unit.loaded.routes[stream], lineage, payload)
