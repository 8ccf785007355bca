"""Allocation by a solver: a placement with its sub-deadlines, its routes and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from coordinator.model import routes
from coordinator.model.problem import Problem
from coordinator.model.routes import Hops
from protos.plan.search import SubDeadlines


@dataclass(frozen=True)
class Allocation:
    """A placement with its sub-deadlines (per item, ns), routes and figures. `sub_deadlines`: where these come from;
    `bound`: what NLR is at least; `traffic_bound`: what the traffic is at least, None where nothing is known beyond
    `proven`."""

    problem: Problem
    place: Mapping[int, int]
    d_ns: Mapping[int, int]
    hops: Hops
    nlr: float
    bound: float
    proven: bool
    sub_deadlines: SubDeadlines
    traffic_bound: float | None = None

    @property
    def traffic(self) -> Fraction:
        """Tuples per burst that cross between nodes."""
        return routes.traffic(self.problem, self.hops)
