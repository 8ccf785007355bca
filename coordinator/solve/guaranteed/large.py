"""Placements of large problems for the `sound` model: the `paper` model's search gives the first one, since it spreads
demand and keeps streams short; then operators move away from where the analysis says that outputs wait.

Nothing is proven here but the traffic that any plan needs within the nodes' utilisation, so a plan is seldom called
optimal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.guarantee.propagate import Part
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.model.progress import Watch
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions
from coordinator.solve.guaranteed.objective_rank import ObjectiveRank
from coordinator.solve.heuristics import bound, greedy, scale
from coordinator.solve.heuristics.search_state import SearchState
from coordinator.solve.milp import milp
from coordinator.spec.cluster import Node
from coordinator.spec.runtime_charges import RuntimeOverhead

START_SHARE = 4  # part of the time for the first placement
BOUND_SHARE = 6  # part of the time for the traffic bound
FOREVER_NS = 10**15
MOST_MOVES = 200
MOST_OUTPUTS = 8  # late outputs that are looked at for one step
MOST_AWAY = 4  # nodes tried for an item


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


@dataclass
class Steps:
    """Placements to try after one that does not hold. `problem`: with worst-case utilisations."""

    problem: Problem
    used: set[tuple[int, int]] = field(default_factory=set)  # item and node it was moved to: not again

    def after(self, place: Mapping[int, int], objective: ObjectiveRank) -> dict[int, int] | None:
        """The next one: for some late outputs at once, an item of the place where they wait longest goes elsewhere.
        None: everything was tried."""
        load = self._loads(place)
        moved = dict(place)
        touched: set[int] = set()
        names = sorted(objective.excess, key=lambda name: (-objective.excess[name], name))
        for name in names[:MOST_OUTPUTS]:
            step = next((one for one in self._moves(name, place, objective, load) if one not in self.used), None)
            if step is None or {place[step[0]], step[1]} & touched:
                continue
            self.used.add(step)
            touched |= {place[step[0]], step[1]}
            moved[step[0]] = step[1]
        return moved if touched else None

    def _moves(
        self, name: str, place: Mapping[int, int], objective: ObjectiveRank, load: Mapping[int, float]
    ) -> Iterator[tuple[int, int]]:
        """(item, node): items of nodes on the way, the longest wait first, to the least loaded nodes."""
        problem, nodes = self.problem, {node.name: node.index for node in self.problem.nodes}
        for part in sorted(_waiting_parts(objective, name), key=lambda one: -one.ns):
            here = nodes[part.node]
            items = [i for i, at in place.items() if at == here and i not in problem.held]
            for item in sorted(items, key=lambda i: (-problem.items[i].cost_ns[here], i)):
                away = sorted((n for n in problem.items[item].nodes if n != here), key=lambda n: (load[n], n))
                for node in away[:MOST_AWAY]:
                    cost = float(problem.items[item].load[node])
                    if load[node] + cost <= float(problem.nodes[node].cap):
                        yield item, node

    def _loads(self, place: Mapping[int, int]) -> dict[int, float]:
        load = {node.index: 0.0 for node in self.problem.nodes}
        for item, node in place.items():
            load[node] += float(self.problem.items[item].load[node])
        return load


def _waiting_parts(objective: ObjectiveRank, name: str) -> list[Part]:
    """Where the longest way to an output waits; of an output without a bound, on every node that has none."""
    analysis = objective.analysis
    output = analysis.system.outputs[name]
    flow = analysis.streams.flows.get((output.stream, output.node))
    if flow is None or not flow.late:
        return [Part("unit", why, 1, node) for node, why in analysis.delays.broken.items()]
    late = max(flow.late.values(), key=lambda each: each.most_ns)
    return [part for part in late.parts if part.kind == "unit"]
