"""Placements of large problems for the `sound` model: the `paper` model's search gives the first one, since it spreads
demand and keeps streams short; `relief` has the steps from there.

Nothing is proven here but the traffic that any plan needs within the nodes' utilisation, so a plan is seldom called
optimal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.model.progress import Watch
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions
from coordinator.solve.heuristics import bound, greedy, scale
from coordinator.solve.heuristics.search_state import SearchState
from coordinator.solve.milp import milp
from coordinator.spec.cluster import Node
from coordinator.spec.runtime_charges import RuntimeOverhead

START_SHARE = 4  # part of the time for the first placement
BOUND_SHARE = 6  # part of the time for the traffic bound
FOREVER_NS = 10**15


def worst(conditions: NecessaryConditions, charges: RuntimeOverhead) -> Problem:
    """The problem with utilisations nearer to those of the analysis: worst-case rates, and beside each job a decision
    and a drain. Which units there will be, and what comes by socket, is not known yet."""
    return _loaded(conditions, lambda node: charges.on(node.charges).decision_ns + charges.on(node.charges).drain_ns)


def _loaded(conditions: NecessaryConditions, beside_ns: Callable[[Node], int]) -> Problem:
    """With worst-case rates. `beside_ns`: what a job of an operator costs on a node beside its own work."""
    problem, items = conditions.problem, []
    for item in problem.items:
        load = {}
        for node in conditions.cost_ns[item.members[0]]:
            more_ns = beside_ns(problem.nodes[node])
            each = (conditions.rates[name] * (conditions.cost_ns[name][node] + more_ns) for name in item.members)
            load[node] = sum(each, Fraction(0))
        items.append(replace(item, load={**item.load, **load}))
    return replace(problem, items=tuple(items))


def traffic_bound(conditions: NecessaryConditions, limits: Limits, until: float) -> float:
    """Tuples per burst that cross in any guaranteed plan, at least: mean utilisations within the caps, worst-case ones
    within 1, at any deadlines."""
    ever = dict.fromkeys(range(len(conditions.problem.items)), FOREVER_NS)
    full = tuple(replace(node, cap=Fraction(1)) for node in conditions.problem.nodes)
    relaxed = [conditions.problem, replace(_loaded(conditions, lambda node: 0), nodes=full)]
    models = [bound.TrafficModel(each, ever) for each in relaxed]
    found = 0.0
    for whole in (False, True):  # the linear relaxation at once, whole items in the time that is left
        for model in models:
            share = time.monotonic() + (until - time.monotonic()) / 2
            found = max(found, model.bound(limits, share, whole).value)
    return found


def start(problem: Problem, limits: Limits, watch: Watch | None) -> dict[int, int]:
    """A first placement: the `paper` model's best in its share of the time, else the greedy one."""
    seconds = limits.seconds / START_SHARE
    try:
        return dict(scale.allocate(problem, replace(limits, seconds=seconds), watch).place)
    except (InfeasibleError, OutOfTimeError):
        state = SearchState(problem, milp.proportional(problem))
        until = time.monotonic() + seconds
        greedy.start(state, lambda: time.monotonic() >= until)
        return dict(enumerate(state.place))
