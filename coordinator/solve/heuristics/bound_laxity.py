"""A lower bound of the normalised laxity ratio of **any** placement, without a big M.

The rows (6) bound a sub-deadline only where an item is placed; a linear relaxation of that "only where" is worth
nothing. Here an item chooses in which interval of time its demand bound lies, and that interval's lower end, not an
average, is what its share must exceed. All nodes of a kind serve their demand together and items pinned to a
node also fit on it, so every placement is a solution, of no more NLR. Streams do not matter here.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Terminal
from coordinator.solve.heuristics.bound import SAFETY, Label, kinds, latest_ns
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS
from coordinator.solve.milp.programme import Model

RATIO = 1.12  # of the ends of neighbouring intervals: a finer grid is a better bound and a larger model


class LaxityModel:
    """The model; `choice[i]`: (place, lower end, upper end in ns, variable) of item i's intervals."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = Model(problem, False)
        self.kind = kinds(problem)
        self.due, self.latest = milp.proportional(problem), latest_ns(problem)
        self.grid = self._grid()
        self.choice: list[list[tuple[Label, int, int, Any]]] = [self._item(i) for i in range(len(problem.items))]
        self.terms = [term for terminal in problem.terminals for term in self._shares(terminal)]
        for kind in set(self.kind):
            nodes = {node for node, one in enumerate(self.kind) if one == kind}
            self._demand({("kind", kind)} | {("node", node) for node in nodes}, len(nodes))
        for node in range(len(problem.nodes)):
            self._demand({("node", node)}, 1)

    def bound(self, limits: Limits, until: float, whole: bool) -> milp.Bound:
        """NLR at least. `whole`: each item in one interval, by branch and bound; else the linear relaxation."""
        for choices in self.choice:
            for *_, variable in choices:
                variable.integer = whole
        found = milp.bound(self.model, self.model.total(self.terms), limits, until)
        return replace(found, value=max(0.0, found.value - SAFETY * abs(found.value)))

    def _grid(self) -> list[int]:
        ends = [min(self.due.values())]
        while ends[-1] < max(self.latest.values()):
            ends.append(int(ends[-1] * RATIO) + 1)
        return ends

    def _item(self, index: int) -> list[tuple[Label, int, int, Any]]:
        item, programme = self.problem.items[index], self.model.programme
        held = self.problem.held.get(index)
        nodes = item.nodes if held is None else (held,)
        costs: dict[Label, int] = {}
        for node in nodes:
            costs[("node", node) if len(nodes) == 1 else ("kind", self.kind[node])] = item.cost_ns[node]
        ends = [self.due[index], *self.grid[bisect_left(self.grid, self.due[index] + 1) :]]
        choices = []
        for label, cost in costs.items():
            lower = cost
            for upper in ends:
                if upper >= cost and lower <= self.latest[index]:
                    choices.append((label, lower, upper, programme.add_integer_variable(lb=0, ub=1)))
                    lower = upper
        programme.add_linear_constraint(self.model.total([one for *_, one in choices]) == 1)
        return choices

    def _shares(self, terminal: Terminal) -> list[Any]:
        """(3) to (5) of an output: what its shares exceed and fall short of d', weighed by 1 / c."""
        problem, programme, total = self.problem, self.model.programme, self.model.total
        end: dict[int, Any] = {}
        shares: dict[int, Any] = {}
        terms = []
        for index in terminal.items:
            item = problem.items[index]
            even = float(terminal.share(item)) / MS
            above, below = programme.add_variable(lb=0), programme.add_variable(lb=0, ub=even)
            terms.append((above + below) * (MS / item.weight_ns))
            choices = self.choice[index]
            late = [max(0.0, lower / MS - even) * one for _, lower, _, one in choices if lower / MS > even]
            programme.add_linear_constraint(above >= total(late))
            programme.add_linear_constraint(
                even + above - below >= total([lower / MS * one for _, lower, _, one in choices])
            )
            shares[index] = even + above - below
            end[index] = programme.add_variable(lb=0, ub=terminal.deadline_ns / MS)
            programme.add_linear_constraint(end[index] >= shares[index])
        for index in terminal.items:
            for before in problem.items[index].before:
                programme.add_linear_constraint(end[index] >= end[before] + shares[index])
        return terms

    def _demand(self, labels: set[Label], count: int) -> None:
        """(6), summed over nodes: what is due in an interval that ends by t costs at most t on each."""
        programme = self.model.programme
        by_end: dict[int, list[Any]] = {}
        for index, choices in enumerate(self.choice):
            for label, _, upper, one in choices:
                if label in labels:
                    cost = next(c for n, c in self.problem.items[index].cost_ns.items() if self._at(label, n))
                    by_end.setdefault(upper, []).append(cost / MS * one)
        before: Any = 0.0
        for upper in sorted(by_end):
            demand = programme.add_variable(lb=0, ub=count * upper / MS)
            programme.add_linear_constraint(demand == before + self.model.total(by_end[upper]))
            before = demand

    def _at(self, label: Label, node: int) -> bool:
        return label == ("node", node) or label == ("kind", self.kind[node])
