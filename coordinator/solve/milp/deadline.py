"""The deadline allocator: the `paper` model solved for NLR first and traffic second, its result in integers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction

from coordinator.errors import InfeasibleError, Mistake, OutOfTimeError, no_placement_in_time
from coordinator.model import routes
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS, Solution


def allocate(problem: Problem, limits: Limits, fixed: Mapping[int, int] | None = None) -> Allocation:
    """The optimum of [P] 5.2, NLR before traffic; `fixed` holds items to nodes. Raises InfeasibleError and
    OutOfTimeError.

    Equal d' first: where all demand rows hold at (1), NLR is 0, which nothing undercuts, and only traffic is left to
    minimise.
    """
    until = time.monotonic() + limits.seconds
    easy = milp.base(problem, fixed)
    milp.proportional_rows(easy)
    answer = milp.solve(easy, easy.traffic(), limits, until - limits.seconds / 2)
    if answer.solution:
        wanted = {index: Fraction(due) for index, due in milp.proportional(problem).items()}
        return _allocation(problem, answer.solution, wanted, 0.0, 0.0, answer.solution.proven)
    full = milp.base(problem, fixed)
    milp.deadline_rows(full)
    laxity = full.total(full.nlr)
    answer = milp.solve(full, laxity, limits, until)
    if answer.infeasible:
        raise InfeasibleError([Mistake("infeasible", "no placement and sub-deadlines hold every deadline")])
    if answer.solution is None:
        raise no_placement_in_time(limits.seconds)
    best = answer.solution
    full.programme.add_linear_constraint(laxity <= best.objective * (1 + 1e-7) + 1e-7)
    second = milp.solve(full, full.traffic(), limits, until)
    chosen = second.solution or best
    proven = best.proven and second.solution is not None and second.solution.proven
    wanted, nlr = _polished(problem, chosen, limits)
    return _allocation(problem, chosen, wanted, nlr, best.bound, proven)


def _polished(problem: Problem, chosen: Solution, limits: Limits) -> tuple[dict[int, Fraction], float]:
    """Sub-deadlines and NLR of a settled placement, from the linear programme alone: free of the tolerance on NLR."""
    model = milp.base(problem, chosen.place)
    milp.deadline_rows(model)
    answer = milp.solve(model, model.total(model.nlr), limits, time.monotonic() + max(5.0, limits.seconds))
    if answer.solution is None:
        raise OutOfTimeError(
            Mistake(
                "out_of_time",
                "the sub-deadlines of the placement found were not settled in time",
                "give more with --time-limit",
            )
        )
    return {index: Fraction(value) * MS for index, value in answer.solution.d_ms.items()}, answer.solution.objective


def _allocation(
    problem: Problem, chosen: Solution, wanted: Mapping[int, Fraction], nlr: float, bound: float, proven: bool
) -> Allocation:
    d_ns = sub_deadline_allocation.settle(problem, chosen.place, wanted)
    if d_ns is None:
        raise InfeasibleError(
            [
                Mistake(
                    "within_tolerance",
                    "the solver's placement misses a deadline by less than its tolerance",
                    "relax a deadline by 1 us",
                )
            ]
        )
    hops = routes.direct(problem, chosen.place) if problem.meshed else routes.pruned(problem, chosen.place, chosen.hops)
    nlr = max(0.0, round(nlr, 6))
    return Allocation(problem, chosen.place, d_ns, hops, nlr, min(nlr, round(max(0.0, bound), 6)), proven, "model")
