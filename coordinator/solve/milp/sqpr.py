"""The baseline after SQPR ([P] reference [3]): CPU, network and load imbalance are minimised, deadlines are not
looked at.

Each term is made dimensionless: utilisation summed over nodes, traffic over the traffic of all streams, and the
largest utilisation over the sum. Any positive weights put O3 of the query of [P] on the sensing node, where fewer
tuples cross and the load is lower.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from coordinator.errors import InfeasibleError, no_placement_in_time
from coordinator.model import routes
from coordinator.model.allocation import Allocation
from coordinator.model.choices import SubDeadlines
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.milp import deadline, milp
from coordinator.solve.milp.unplaceable import unplaceable

CPU, NETWORK, IMBALANCE = 1.0, 1.0, 1.0


def allocate(
    problem: Problem,
    limits: Limits,
    sub_deadlines: SubDeadlines = "model",
    weights: tuple[float, float, float] = (CPU, NETWORK, IMBALANCE),
) -> Allocation:
    """A placement without regard to deadlines. Raises InfeasibleError (utilisation, routes) and OutOfTimeError.

    Sub-deadlines: `model`: of the deadline model under this placement, `proportional` where that has none;
    `deadline`: of the deadline allocator's own placement, as [P] 6.1 does for ExistingAlloc.EDF; `proportional`:
    equation (1).
    """
    model = milp.base(problem)
    cpu = model.total(
        [float(problem.items[index].load[node]) * variable for (index, node), variable in model.z.items()]
    )
    total_tuples = float(sum((stream.tuples for stream in problem.streams), Fraction(0))) or 1.0
    total_load = sum(float(min(item.load.values())) for item in problem.items) or 1.0
    busiest = model.programme.add_variable(lb=0, name="busiest")
    for node in range(len(problem.nodes)):
        terms = [
            float(item.load[node]) * model.z[i, node] for i, item in enumerate(problem.items) if node in item.nodes
        ]
        if terms:
            model.programme.add_linear_constraint(busiest >= model.total(terms))
    objective = (
        weights[0] / total_load * cpu + weights[1] / total_tuples * model.traffic() + weights[2] / total_load * busiest
    )
    answer = milp.solve(model, objective, limits, time.monotonic() + limits.seconds)
    if answer.infeasible:
        raise InfeasibleError(unplaceable(problem, limits))
    if answer.solution is None:
        raise no_placement_in_time(limits.seconds)
    chosen = answer.solution
    hops = routes.direct(problem, chosen.place) if problem.meshed else routes.pruned(problem, chosen.place, chosen.hops)
    placed = _sub_deadlines(problem, chosen.place, limits, sub_deadlines)
    return replace(placed, place=chosen.place, hops=hops, proven=chosen.proven)


def _sub_deadlines(problem: Problem, place: Mapping[int, int], limits: Limits, kind: SubDeadlines) -> Allocation:
    if kind == "deadline":
        return replace(deadline.allocate(problem, limits), sub_deadlines="deadline")
    if kind == "model":
        try:
            return deadline.allocate(problem, limits, fixed=place)
        except InfeasibleError:
            pass
    d_ns = milp.proportional(problem)
    return Allocation(problem, place, d_ns, {}, 0.0, 0.0, True, "proportional")
