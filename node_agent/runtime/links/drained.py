"""Arrivals of one drain of the sockets, on their way into the engines.

Everything in one drain has the same instant. A side input of that instant is applied before any release of it, so what
feeds a side input goes first; otherwise the order of arrival stays.
"""

from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.punctuation import PUNCTUATION
from node_agent.runtime.links.credit import Backpressure

Arrival = tuple[CompiledPlan, int, int, Lineage, object, int, int]
"""plan, source or 0, stream, lineage, payload or punctuation, bytes, the client's stamp"""
_PUNCTUATION = frozenset(PUNCTUATION)


class Arrivals:
    """Collects and applies."""

    def __init__(self, backpressure: Backpressure) -> None:
        self._backpressure = backpressure
        self._first: list[Arrival] = []
        self._then: list[Arrival] = []

    def add(
        self,
        loaded: CompiledPlan,
        source: int,
        stream: int,
        lineage: Lineage,
        payload: object,
        size: int,
        sent_ns: int = 0,
    ) -> None:
        """source: where it is to be admitted; 0: it comes from a peer."""
        self._backpressure.pending += 1
        if payload.__class__ not in _PUNCTUATION:
            self._backpressure.arrived(size, payload)
        arrival = (loaded, source, stream, lineage, payload, size, sent_ns)
        (self._first if loaded.routes[stream].sides else self._then).append(arrival)

    def apply(self, at_ns: int) -> None:
        """Hand everything to the engines."""
        for arrivals in (self._first, self._then):
            if arrivals:
                for loaded, source, stream, lineage, payload, size, sent_ns in arrivals:
                    engine = self._engine(loaded)
                    self._backpressure.pending -= 1
                    if source:
                        engine.admit(at_ns, loaded, source, lineage, payload, size, sent_ns)
                    else:
                        engine.receive(at_ns, loaded, stream, lineage, payload)
                arrivals.clear()

    def _engine(self, loaded: CompiledPlan) -> Engine:
        return self._backpressure.plans.by_loaded[loaded].engine_slot.engine
