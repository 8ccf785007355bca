"""NLR of a settled placement, by a linear programme per output that has no binaries: the least of each is by itself.

What a placement says of the sub-deadlines are lower bounds alone: the cost of what stands before an item on its node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ortools.linear_solver import pywraplp

from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation

MS = 10**6
TIE = 1e-6


class Laxity:
    """Of any placement of a problem."""

    def __init__(self, built: Problem) -> None:
        self.built = built
        self.programmes = [self._programme(number) for number in range(len(built.terminals))]
        self.known: dict[tuple[int, ...], float] = {}

    def _programme(self, number: int) -> tuple[Any, dict[int, Any]]:
        terminal = self.built.terminals[number]
        solver = pywraplp.Solver.CreateSolver("GLOP")
        within = terminal.deadline_ns / MS
        due = {index: solver.NumVar(0, within, "") for index in terminal.items}
        end = {index: solver.NumVar(0, within, "") for index in terminal.items}
        off = {index: solver.NumVar(0, solver.infinity(), "") for index in terminal.items}
        for index in terminal.items:
            ratio, each = terminal.deadline_ns / terminal.weight_ns, MS / self.built.items[index].weight_ns
            solver.Add(off[index] >= ratio - due[index] * each)
            solver.Add(off[index] >= due[index] * each - ratio)
            solver.Add(end[index] >= due[index])
            for before in self.built.items[index].before:
                solver.Add(end[index] >= end[before] + due[index])
        solver.Minimize(solver.Sum(list(off.values())))
        return solver, due

    def of(self, place: Mapping[int, int]) -> float:
        """NLR, of a placement that holds every deadline."""
        least = sub_deadline_allocation.least_ns(self.built, place)
        total = 0.0
        for number, terminal in enumerate(self.built.terminals):
            key = (number, *(least[index] for index in terminal.items))
            if key not in self.known:
                solver, due = self.programmes[number]
                for index in terminal.items:
                    due[index].SetLb(least[index] / MS)
                assert solver.Solve() == pywraplp.Solver.OPTIMAL
                self.known[key] = solver.Objective().Value()
            total += self.known[key]
        return total
