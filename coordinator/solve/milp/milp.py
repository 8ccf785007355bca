"""The `paper` model: [P] equations (3) to (11), corrected, as a mixed integer programme for MathOpt.

What departs from the printed form, and why, stands beside each equation; docs/explanation/papers.md lists it with
figures. Times inside the solver are in ms: HiGHS works with absolute tolerances near 1e-7, which is then a tenth of a
nanosecond. MathOpt's CP_SAT is not offered: it silently mishandles continuous variables. HiGHS rejects `threads`.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from coordinator import signals
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Stream
from coordinator.solve.milp import capacity_rows
from coordinator.solve.milp.programme import Model

MS = 10**6
GAP = 1e-9  # relative, between a solution and its bound, at which a solver ends


@dataclass(frozen=True)
class Solution:
    """A solver's answer: node per item, d per item in ms, hops (from, to) per stream; `bound` of the objective solved
    for."""

    place: dict[int, int]
    d_ms: dict[int, float]
    hops: dict[str, set[tuple[int, int]]]
    objective: float
    bound: float
    proven: bool


@dataclass
class Answer:
    """`solution` None with `infeasible` True is a proof; with False the time was up."""

    solution: Solution | None
    infeasible: bool


@dataclass(frozen=True)
class Bound:
    """What a solver proved: the objective is at least `value`; `closed`: that is its optimum; `infeasible`: nothing
    holds the rows. `values`: of the best solution found, by variable; `reduced`: reduced costs of a linear one."""

    value: float
    closed: bool
    infeasible: bool
    values: Mapping[Any, float] | None = field(default=None, repr=False)
    reduced: Mapping[Any, float] | None = field(default=None, repr=False)


def base(
    problem: Problem, fixed: Mapping[int, int] | None = None, routed: bool | None = None, elastic: bool = False
) -> Model:
    """Placement, routes and room, which every objective shares. `fixed` holds items to a node; `elastic`: what there is
    room for may be exceeded, by `lack` of it.

    (10) forbids nodes by leaving their variables out. Corrected: every item is placed exactly once; as printed the
    optimum is 0 with operators unplaced.
    """
    model = Model(problem, not problem.meshed if routed is None else routed)
    hold = {**problem.held, **(fixed or {})}
    for index, item in enumerate(problem.items):
        for node in item.nodes:
            low = 1.0 if hold.get(index) == node else 0.0
            model.z[index, node] = model.programme.add_integer_variable(lb=low, ub=1, name=f"z_{index}_{node}")
        model.programme.add_linear_constraint(model.total([model.z[index, node] for node in item.nodes]) == 1)
    for stream in problem.streams:
        (_routes if model.routed else _copies)(model, stream)
    capacity_rows.rows(model, elastic)
    return model


def _copies(model: Model, stream: Stream) -> None:
    """Direct routes: t[n,s] >= z[n,consumer] - z[n,producer] replaces x, y and l of (7) to (9) and (11)."""
    for node in range(len(model.problem.nodes)):
        here = _produced(model, stream, node)
        wants = [model.z[reader, node] for reader in stream.readers if (reader, node) in model.z]
        wants += [1.0] if node in stream.sinks else []
        if not wants or (isinstance(here, float) and here == 1.0):
            continue
        copy = model.programme.add_variable(lb=0, ub=1, name=f"t_{node}_{stream.name}")
        model.copy[stream.name, node] = copy
        for want in wants:
            model.programme.add_linear_constraint(copy >= want - here)


def _routes(model: Model, stream: Stream) -> None:
    """(7) to (9) and (11): streams may be relayed. Corrected: (7) reads y[n',s] on its left and s in Out(o); sinks
    need s."""
    programme, nodes = model.programme, range(len(model.problem.nodes))
    held = {node: programme.add_variable(lb=0, ub=1, name=f"y_{node}_{stream.name}") for node in nodes}
    level = {node: programme.add_variable(lb=0, ub=len(nodes), name=f"l_{node}_{stream.name}") for node in nodes}
    into: dict[int, list[Any]] = {node: [] for node in nodes}
    kept = model.problem.incumbent_hops.get(stream.name, ())
    for start, end in sorted(model.problem.links - stream.forbidden):
        low = 1.0 if (start, end) in kept else 0.0
        hop = programme.add_integer_variable(lb=low, ub=1, name=f"x_{start}_{end}_{stream.name}")
        model.hop[stream.name, start, end] = hop
        into[end].append(hop)
        programme.add_linear_constraint(hop <= held[start])  # (9)
        programme.add_linear_constraint(level[start] >= level[end] + 1 - (len(nodes) + 1) * (1 - hop))  # (11)
    for node in nodes:
        programme.add_linear_constraint(held[node] <= model.total([*into[node], _produced(model, stream, node)]))  # (7)
        for reader in stream.readers:
            if (reader, node) in model.z:
                programme.add_linear_constraint(model.z[reader, node] <= held[node])  # (8)
        if node in stream.sinks:
            programme.add_linear_constraint(held[node] >= 1)


def _produced(model: Model, stream: Stream, node: int) -> Any:
    """Whether a stream originates on a node: a variable, or 0.0 or 1.0 where that is known."""
    if stream.item is None:
        return 1.0 if stream.node == node else 0.0
    return model.z.get((stream.item, node), 0.0)


def proportional_rows(model: Model) -> None:
    """Every sub-deadline at d' of (1), so that NLR is 0: only the demand rows (6) are left, without a big M.

    With d fixed the order is exact: for every deadline t, the items due by t on a node cost at most t. At a t where
    nothing on that node is due, the row repeats the one before.
    """
    due = proportional(model.problem)
    for node in model.problem.nodes:
        demand: list[Any] = []
        ordered = sorted(
            (due[index], index) for index, item in enumerate(model.problem.items) if node.index in item.nodes
        )
        for position, (deadline_ns, index) in enumerate(ordered):
            demand.append(model.problem.items[index].cost_ns[node.index] / MS * model.z[index, node.index])
            if position + 1 == len(ordered) or ordered[position + 1][0] > deadline_ns:
                model.programme.add_linear_constraint(model.total(demand) <= deadline_ns / MS)


def proportional(problem: Problem) -> dict[int, int]:
    """(1) and 5.2.6: the least d'[s,o] over the outputs that an item serves, in ns, rounded down."""
    due: dict[int, int] = {}
    for terminal in problem.terminals:
        for index in terminal.items:
            share_ns = int(terminal.share(problem.items[index]))
            due[index] = min(due.get(index, share_ns), share_ns)
    return due


def deadline_rows(model: Model, elastic: bool = False) -> None:
    """(3) to (6): sub-deadlines, their paths and the demand of each node. `elastic`: a path may exceed its deadline."""
    problem, programme = model.problem, model.programme
    longest = max(terminal.deadline_ns for terminal in problem.terminals) / MS
    roof = longest if not elastic else longest + sum(max(item.cost_ns.values()) for item in problem.items) / MS
    for index in range(len(problem.items)):
        model.d[index] = programme.add_variable(lb=0, ub=roof, name=f"D_{index}")
    for number, terminal in enumerate(problem.terminals):
        end: dict[int, Any] = {}
        over = programme.add_variable(lb=0, name=f"excess_{number}") if elastic else 0.0
        model.excess.append(over)
        ratio = terminal.deadline_ns / terminal.weight_ns
        for index in terminal.items:
            item = problem.items[index]
            share = model.share[number, index] = programme.add_variable(lb=0, ub=roof, name=f"d_{number}_{index}")
            # 5.2.6: an operator that serves several outputs has the smallest of its d[s,o]; (6) counts it once, so.
            programme.add_linear_constraint(model.d[index] <= share)
            above, below = programme.add_variable(lb=0), programme.add_variable(lb=0)
            model.nlr += [above, below]
            # (4), corrected: h+ MINUS h-. Both sides lost their -1: (d_s - c'_s)/c'_s - (d - c)/c = d_s/c'_s - d/c.
            programme.add_linear_constraint(ratio - share / (item.weight_ns / MS) == above - below)
            # (5) with potentials: never lists paths, which can be exponentially many.
            end[index] = programme.add_variable(lb=0, name=f"E_{number}_{index}")
            programme.add_linear_constraint(end[index] >= share)
        for index in terminal.items:
            for before in problem.items[index].before:
                programme.add_linear_constraint(end[index] >= end[before] + model.share[number, index])
        programme.add_linear_constraint(end[terminal.end] <= terminal.deadline_ns / MS + over)
    for node in problem.nodes:
        _demand(model, node.index)


def _demand(model: Model, node: int) -> None:
    """(6) for one node: in the order of d', the cost so far is within the deadline of each item that runs here.

    Corrected: gated, since an item elsewhere bounds nothing here; c per burst. No row says that d does not decrease
    along that order: it may stand at the cost so far, which does not, and less of it hinders nothing else.
    """
    problem, programme = model.problem, model.programme
    demand: Any = 0.0
    most = 0.0
    for index in problem.order:
        item = problem.items[index]
        if node not in item.nodes:
            continue
        cost = item.cost_ns[node] / MS
        most += cost
        placed = model.z[index, node]
        demand_here = programme.add_variable(lb=0, name=f"w_{node}_{index}")
        programme.add_linear_constraint(demand_here == demand + cost * placed)
        demand = demand_here
        programme.add_linear_constraint(demand <= model.d[index] + most * (1 - placed))


def bound(model: Model, objective: Any, limits: Limits, until: float, gap: float = GAP) -> Bound:
    """A proven lower bound of a model's objective; 0 where none was found in time. `gap`: relative, at which it may
    end."""
    result = _run(model, objective, limits, until, gap)
    why = model.mathopt.TerminationReason
    value = result.termination.objective_bounds.dual_bound
    infeasible = result.termination.reason in (why.INFEASIBLE, why.INFEASIBLE_OR_UNBOUNDED)
    values = result.variable_values() if result.has_primal_feasible_solution() else None
    closed = result.termination.reason == why.OPTIMAL
    reduced = result.reduced_costs() if result.has_dual_feasible_solution() else None
    return Bound(value if isfinite(value) else 0.0, closed, infeasible, values, reduced)


def _run(model: Model, objective: Any, limits: Limits, until: float, gap: float = GAP) -> Any:
    """MathOpt's result."""
    mathopt = model.mathopt
    model.programme.minimize(objective)
    left = max(0.1, until - time.monotonic())
    parameters = mathopt.SolveParameters(
        time_limit=datetime.timedelta(seconds=left),
        random_seed=limits.seed,
        relative_gap_tolerance=gap,
        absolute_gap_tolerance=1e-7,
    )
    kind = {"highs": mathopt.SolverType.HIGHS, "gscip": mathopt.SolverType.GSCIP}[limits.solver]
    with signals.held():
        return mathopt.solve(model.programme, kind, params=parameters)


def solve(model: Model, objective: Any, limits: Limits, until: float) -> Answer:
    """Minimise. `until`: the instant of time.monotonic() at which to stop."""
    mathopt = model.mathopt
    result = _run(model, objective, limits, until)
    reason, why = result.termination.reason, mathopt.TerminationReason
    if not result.has_primal_feasible_solution():
        return Answer(None, reason in (why.INFEASIBLE, why.INFEASIBLE_OR_UNBOUNDED))
    values = result.variable_values()
    place = {index: node for (index, node), variable in model.z.items() if values[variable] > 0.5}
    hops: dict[str, set[tuple[int, int]]] = {}
    for (name, start, end), variable in model.hop.items():
        if values[variable] > 0.5:
            hops.setdefault(name, set()).add((start, end))
    d_ms: dict[int, float] = {}
    for (_, index), variable in model.share.items():  # 5.2.6: the smallest of an operator's d[s,o]
        d_ms[index] = min(d_ms.get(index, values[variable]), values[variable])
    bound = result.termination.objective_bounds.dual_bound
    return Answer(Solution(place, d_ms, hops, result.objective_value(), bound, reason == why.OPTIMAL), False)
