"""Arrivals of one drain of the sockets, on their way into the engines.

Everything in one drain has the same instant. A side input of that instant is applied before any release of it, so what
feeds a side input goes first; otherwise the order of arrival stays.
"""

from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Route
from node_agent.core.punctuation import PUNCTUATION
from node_agent.runtime.links.credit import Backpressure

Arrival = tuple[Route, bool, Lineage, object, int, int]
"""where it enters, whether it is to be admitted there, lineage, payload or punctuation, bytes, the client's stamp"""
_PUNCTUATION = frozenset(PUNCTUATION)


class Arrivals:
    """Collects and applies."""

    def __init__(self, backpressure: Backpressure) -> None:
        self._backpressure = backpressure
        self._first: list[Arrival] = []
        self._then: list[Arrival] = []

    def add(self, route: Route, admits: bool, lineage: Lineage, payload: object, size: int, sent_ns: int = 0) -> None:
        """admits: the route is of the tuple's source; else it comes from a peer."""
        self._backpressure.pending += 1
        if payload.__class__ not in _PUNCTUATION:
            self._backpressure.arrived(size, payload)
        (self._first if route.sides else self._then).append((route, admits, lineage, payload, size, sent_ns))

    def apply(self, at_ns: int) -> None:
        """Hand everything to the engines."""
        for arrivals in (self._first, self._then):
            if arrivals:
                self._apply(at_ns, arrivals)
                arrivals.clear()

    def _apply(self, at_ns: int, arrivals: list[Arrival]) -> None:
        loaded: CompiledPlan | None = None
        for route, admits, lineage, payload, size, sent_ns in arrivals:
            if route.loaded is not loaded:
                loaded = route.loaded
                engine = self._engine(loaded)
            self._backpressure.pending -= 1
            if admits:
                engine.admit(at_ns, route, lineage, payload, size, sent_ns)
            else:
                engine.receive(at_ns, route, lineage, payload)

    def _engine(self, loaded: CompiledPlan) -> Engine:
        return self._backpressure.plans.by_loaded[loaded].engine_slot.engine
