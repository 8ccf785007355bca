"""The linear programme over schedules: which part of each schedule is taken, and by how much shares are below d'.

Rows: each item is covered and each node has one schedule; paths (5), and what a share can be below d', where they are
violated. It supplies multipliers and guides the search. No bound rests on its tolerances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.model.problem import Problem
from coordinator.solve.columns.lagrangian import Multipliers
from coordinator.solve.columns.laxity_shares import Path, longest_path, shares
from coordinator.solve.columns.pricing import Schedule
from coordinator.solve.milp.programme import Model

PENALTY = 60.0  # NLR of an item that no schedule covers
EXCESS = 1000.0  # NLR of a path that is too long by its deadline
VIOLATED = 1e-6  # of a row, relative to a deadline


@dataclass(frozen=True)
class Relaxed:
    """A solution: NLR, the part of each schedule that is taken, of items what is not covered, of deadlines what paths
    are too long by."""

    nlr: float
    parts: dict[Schedule, float]
    uncovered: float
    multipliers: Multipliers


class Master:
    """The programme, which grows by schedules and rows. Rows of time are relative to a share or a deadline: costs lie
    decades apart."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.shares = shares(problem)
        self.due = {(each.terminal, index): each for index, own in enumerate(self.shares) for each in own}
        model = Model(problem, False)
        self.mathopt, self.programme = model.mathopt, model.programme
        self.cover = [self.programme.add_linear_constraint(lb=1.0) for _ in problem.items]
        self.node = [self.programme.add_linear_constraint(ub=1.0) for _ in problem.nodes]
        self.missing = [self.programme.add_variable(lb=0.0) for _ in problem.items]
        for row, variable in zip(self.cover, self.missing, strict=True):
            row.set_coefficient(variable, 1.0)
            self._costs(variable, PENALTY)
        self.taken: dict[Schedule, Any] = {}
        self.below: dict[tuple[int, int], Any] = {}
        self.slack: dict[tuple[int, int], Any] = {}
        self.path: dict[Path, Any] = {}
        self.over: list[Any] = []
        self.solver = self.mathopt.IncrementalSolver(self.programme, self.mathopt.SolverType.GLOP)

    def add(self, schedules: Iterable[Schedule]) -> int:
        """Adds schedules; returns how many are new."""
        fresh = [each for each in dict.fromkeys(schedules) if each not in self.taken]
        for each in fresh:
            variable = self.taken[each] = self.programme.add_variable(lb=0.0)
            self.node[each.node].set_coefficient(variable, 1.0)
            nlr = 0.0
            for index, end_ns in zip(each.items, each.ends_ns, strict=True):
                self.cover[index].set_coefficient(variable, 1.0)
                nlr += sum(share.per_ns * share.late_ns(end_ns) for share in self.shares[index])
            self._costs(variable, nlr)
            for key, row in self.slack.items():
                self._slack(row, key, each)
            for path, row in self.path.items():
                self._lateness(row, path, each)
        return len(fresh)

    def solve(self) -> Relaxed | None:
        """The optimum; None where the solver gave none."""
        result = self._solved()
        if result is None:
            return None
        duals, values = result.dual_values(), result.variable_values()
        multipliers = Multipliers(
            tuple(max(0.0, duals[row]) for row in self.cover),
            {path: -duals[row] / self._deadline_ns(path) for path, row in self.path.items() if duals[row] < 0},
            {key: duals[row] / self.due[key].due_ns for key, row in self.slack.items() if duals[row] > 0},
        )
        parts = {each: values[variable] for each, variable in self.taken.items() if values[variable] > VIOLATED}
        self.values = values
        uncovered = sum(values[variable] for variable in (*self.missing, *self.over))
        return Relaxed(result.objective_value(), parts, uncovered, multipliers)

    def tighten(self, found: Relaxed) -> int:
        """Adds the paths and slacks that a solution violates; returns how many."""
        late, slack = dict.fromkeys(self.due, 0.0), dict.fromkeys(self.due, 0.0)
        for each, part in found.parts.items():
            for index, end_ns in zip(each.items, each.ends_ns, strict=True):
                for share in self.shares[index]:
                    late[share.terminal, index] += part * share.late_ns(end_ns)
                    slack[share.terminal, index] += part * share.slack_ns(end_ns)
        below = {key: self.values[variable] * self.due[key].due_ns for key, variable in self.below.items()}
        added = 0
        for key, given_ns in below.items():
            if key not in self.slack and given_ns > slack[key] + VIOLATED * self.due[key].due_ns:
                self._add_slack(key)
                added += 1
        for number, terminal in enumerate(self.problem.terminals):
            taken_ns = {
                index: self.due[number, index].due_ns + late[number, index] - below.get((number, index), 0.0)
                for index in terminal.items
            }
            length_ns, path = longest_path(self.problem, number, taken_ns)
            if length_ns > terminal.deadline_ns * (1 + VIOLATED) and path not in self.path:
                self._add_path(path)
                added += 1
        return added

    def hold(self, held: Mapping[int, int]) -> None:
        """Leaves out the schedules that do not have these items on these nodes: for a dive."""
        on_node: dict[int, set[int]] = {}
        for index, node in held.items():
            on_node.setdefault(node, set()).add(index)
        for each, variable in self.taken.items():
            fits = on_node.get(each.node, set()).issubset(each.items) and all(
                held.get(index, each.node) == each.node for index in each.items
            )
            bound = float("inf") if fits else 0.0
            if variable.upper_bound != bound:
                variable.upper_bound = bound

    def _add_slack(self, key: tuple[int, int]) -> None:
        row = self.slack[key] = self.programme.add_linear_constraint(lb=0.0)
        row.set_coefficient(self.below[key], -1.0)
        for each in self.taken:
            self._slack(row, key, each)

    def _add_path(self, path: Path) -> None:
        deadline_ns = self._deadline_ns(path)
        due_ns = sum(self.due[path.terminal, index].due_ns for index in path.items)
        row = self.path[path] = self.programme.add_linear_constraint(ub=1 - due_ns / deadline_ns)
        over = self.programme.add_variable(lb=0.0)
        row.set_coefficient(over, -1.0)
        self._costs(over, EXCESS)
        self.over.append(over)
        for index in path.items:
            key = path.terminal, index
            if key not in self.below:
                self.below[key] = self.programme.add_variable(lb=0.0, ub=1.0)
                self._costs(self.below[key], self.due[key].per_ns * self.due[key].due_ns)
            row.set_coefficient(self.below[key], -self.due[key].due_ns / deadline_ns)
        for each in self.taken:
            self._lateness(row, path, each)

    def _slack(self, row: Any, key: tuple[int, int], each: Schedule) -> None:
        if key[1] in each.items:
            slack_ns = self.due[key].slack_ns(each.ends_ns[each.items.index(key[1])])
            if slack_ns > 0:
                row.set_coefficient(self.taken[each], slack_ns / self.due[key].due_ns)

    def _lateness(self, row: Any, path: Path, each: Schedule) -> None:
        late_ns = sum(
            self.due[path.terminal, index].late_ns(end_ns)
            for index, end_ns in zip(each.items, each.ends_ns, strict=True)
            if index in path.items
        )
        if late_ns > 0:
            row.set_coefficient(self.taken[each], late_ns / self._deadline_ns(path))

    def _deadline_ns(self, path: Path) -> int:
        return self.problem.terminals[path.terminal].deadline_ns

    def _solved(self) -> Any:
        """An optimum: by GLOP from the basis before; where it loses its footing, by HiGHS afresh. None where both
        fail."""
        highs = self.mathopt.SolverType.HIGHS
        for solve in (self.solver.solve, lambda: self.mathopt.solve(self.programme, highs)):
            try:
                result = solve()
            except Exception:  # "ABNORMAL": MathOpt raises what its own wrapper cannot name
                result = None
            if result is not None and result.termination.reason == self.mathopt.TerminationReason.OPTIMAL:
                return result
            self.solver = self.mathopt.IncrementalSolver(self.programme, self.mathopt.SolverType.GLOP)
        return None

    def _costs(self, variable: Any, nlr: float) -> None:
        self.programme.objective.set_linear_coefficient(variable, nlr)
