"""The deadline allocator: the `paper` model solved for NLR first and traffic second, its result in integers.

A solver holds rows within a tolerance. So a placement that it takes for the best may be none that holds, and a row with
no more room than that tolerance may cut off the one that is. NLR follows from the placement alone: each placement found
is judged by a linear programme of its own and in integers, and is excluded where it is not what the solver took it for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from coordinator.errors import InfeasibleError, Mistake, OutOfTimeError, no_placement_in_time
from coordinator.model import routes
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS, Answer, Solution
from coordinator.solve.milp.programme import Model

TIE = 1e-6  # two NLR are the same up to this part of 1 + NLR
ROOM = 10 * TIE  # of the row that bounds NLR for the second stage: what it lets through beyond a tie is excluded


def allocate(problem: Problem, limits: Limits, fixed: Mapping[int, int] | None = None) -> Allocation:
    """The optimum of [P] 5.2, NLR before traffic; `fixed` holds items to nodes. Raises InfeasibleError and
    OutOfTimeError.

    Equal d' first: where all demand rows hold at (1), NLR is 0, which nothing undercuts, and only traffic is left to
    minimise.
    """
    until = time.monotonic() + limits.seconds
    easy = milp.base(problem, fixed)
    milp.proportional_rows(easy)
    due_ns = milp.proportional(problem)
    wanted = {index: Fraction(due) for index, due in due_ns.items()}

    def even(solution: Solution) -> bool:
        return sub_deadline_allocation.settle(problem, solution.place, wanted) == due_ns

    answer = _first(easy, easy.traffic(), even, limits, until - limits.seconds / 2)
    if answer.solution:
        return _allocation(problem, _Judged(answer.solution, due_ns, 0.0), 0.0, answer.solution.proven)
    judge = _Judge(problem, limits)
    least = _evenest(judge, fixed, until)
    tie = least.best.nlr + TIE * (1 + least.best.nlr)

    def tied(solution: Solution) -> bool:
        found = judge(solution)
        return found is not None and found.nlr <= tie

    second = _full(problem, fixed)
    second.programme.add_linear_constraint(second.total(second.nlr) <= tie + ROOM * (1 + least.best.nlr))
    answer = _first(second, second.traffic(), tied, limits, until)
    found = None if answer.solution is None else judge(answer.solution)
    if answer.solution is None or found is None:
        return _allocation(problem, least.best, least.bound, proven=False)
    chosen = replace(found, solution=answer.solution)  # with the routes of least traffic
    return _allocation(problem, chosen, least.bound, least.proven and answer.solution.proven)


def _first(model: Model, objective: object, fits: Callable[[Solution], bool], limits: Limits, until: float) -> Answer:
    """The least of the objective among placements that fit; others are excluded as they are found."""
    while True:
        answer = milp.solve(model, objective, limits, until)
        if answer.solution is None or fits(answer.solution):
            return answer
        model.exclude(answer.solution.place)


@dataclass(frozen=True)
class _Judged:
    """A placement with its own sub-deadlines and their NLR."""

    solution: Solution
    d_ns: Mapping[int, int]
    nlr: float


@dataclass
class _Judge:
    """Sub-deadlines and NLR of settled placements, each from the linear programme alone, and in integers: free of the
    tolerances of the mixed one."""

    problem: Problem
    limits: Limits
    known: dict[tuple[int, ...], _Judged | None] = field(default_factory=dict)

    def __call__(self, solution: Solution) -> _Judged | None:
        """None: no sub-deadlines hold there. Raises OutOfTimeError."""
        key = tuple(solution.place[index] for index in range(len(self.problem.items)))
        if key not in self.known:
            self.known[key] = self._judged(solution)
        return self.known[key]

    def _judged(self, solution: Solution) -> _Judged | None:
        model = _full(self.problem, solution.place)
        seconds = max(5.0, self.limits.seconds)
        answer = milp.solve(model, model.total(model.nlr), self.limits, time.monotonic() + seconds)
        if answer.infeasible:
            return None
        if answer.solution is None:
            raise OutOfTimeError(
                Mistake(
                    "out_of_time",
                    "the sub-deadlines of the placement found were not settled in time",
                    "give more with --time-limit",
                )
            )
        wanted = {index: Fraction(value) * MS for index, value in answer.solution.d_ms.items()}
        d_ns = sub_deadline_allocation.settle(self.problem, solution.place, wanted)
        return None if d_ns is None else _Judged(solution, d_ns, max(0.0, answer.solution.objective))


@dataclass(frozen=True)
class _Least:
    """The placement of least NLR that was found; `bound`: what any has at least; `proven`: none has less."""

    best: _Judged
    bound: float
    proven: bool


def _evenest(judge: _Judge, fixed: Mapping[int, int] | None, until: float) -> _Least:
    """Excludes placements until the others are proven to be no better than the best of them. Raises InfeasibleError and
    OutOfTimeError."""
    model = _full(judge.problem, fixed)
    laxity = model.total(model.nlr)
    best: _Judged | None = None
    bound = 0.0
    while True:
        answer = milp.solve(model, laxity, judge.limits, until)
        if answer.solution is None:
            break
        found = judge(answer.solution)
        if found is not None and (best is None or found.nlr < best.nlr):
            best = found
        bound = answer.solution.bound
        if best is not None and (not answer.solution.proven or bound >= best.nlr - TIE * (1 + best.nlr)):
            return _Least(best, bound, answer.solution.proven)
        model.exclude(answer.solution.place)
    if best is not None:
        return _Least(best, best.nlr if answer.infeasible else bound, answer.infeasible)
    if answer.infeasible:
        raise InfeasibleError([Mistake("infeasible", "no placement and sub-deadlines hold every deadline")])
    raise no_placement_in_time(judge.limits.seconds)


def _full(problem: Problem, fixed: Mapping[int, int] | None) -> Model:
    """Placement, sub-deadlines and NLR."""
    model = milp.base(problem, fixed)
    milp.deadline_rows(model)
    return model


def _allocation(problem: Problem, chosen: _Judged, bound: float, proven: bool) -> Allocation:
    place, taken = chosen.solution.place, chosen.solution.hops
    hops = routes.direct(problem, place) if problem.meshed else routes.pruned(problem, place, taken)
    nlr = round(chosen.nlr, 6)
    return Allocation(problem, place, chosen.d_ns, hops, nlr, min(nlr, round(max(0.0, bound), 6)), proven, "model")
