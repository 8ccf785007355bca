"""Traffic bounded part by part: the parts of the graph share nothing but the rows (6) of the nodes.

With a price for each row (multipliers), every part is placed by itself, with whole items, and the sum less what the
rows hold at these prices is a bound (Dantzig and Wolfe, 1960; Geoffrion, 1974). It closes what the linear relaxation
leaves open within a part. A master of placements, one variable each, finds the prices. Any prices from 0 on give a
bound, so it does not rest on the master's tolerances.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from coordinator.model.limits import Limits
from coordinator.solve.heuristics.bound import Label, Row, TrafficModel, Use, components
from coordinator.solve.milp.programme import Model

PART_SECONDS = 5.0  # for a part's branch and bound, whose bound then serves as well
PART_GAP = 1e-4
MISSING = 1e5  # tuples per burst of a part that is not placed
CLOSED = 1e-3  # between the bound and the master's optimum, relative
VIOLATED = 1e-7  # of a row, relative
SOON = 3  # rounds after which there is a placement to follow
BLEND, LESS = 0.5, 0.25  # of the best prices so far, and how much less each time they do not get better

Prices = dict[Row, float]


@dataclass(frozen=True)
class Part:
    """A placement of a part: a place per item, its traffic, and what it uses of a group of nodes: (due in ns, cost in
    ms, utilisation) of each item there."""

    number: int
    labels: tuple[tuple[int, Label], ...]
    traffic: float
    uses: tuple[tuple[int, Use], ...]

    def of(self, row: Row) -> float:
        """What it takes of a row."""
        if row.due_ns is None:
            return sum(use.load for _, use in self.uses if use.group == row.group)
        return sum(use.cost_ms for due, use in self.uses if use.group == row.group and due <= row.due_ns)


@dataclass(frozen=True)
class Valued:
    """`value`: no placement of the part has less at these prices; the best that was found, if any; `infeasible`: it has
    none."""

    value: float
    part: Part | None
    infeasible: bool


class PartModel:
    """One part's model."""

    def __init__(self, whole: TrafficModel, number: int, items: list[int]) -> None:
        self.number = number
        self.model = TrafficModel(whole.problem, whole.due, items)

    def valued(self, prices: Prices, limits: Limits, until: float) -> Valued:
        """The best placement at these prices."""
        model = self.model
        terms = [price * model.z[key] for key, price in priced(model, prices).items()]
        found = model.bound(limits, min(until, time.monotonic() + PART_SECONDS), True, terms, PART_GAP)
        if found.infeasible or not found.values:
            return Valued(found.value, None, found.infeasible)
        values = found.values
        labels = tuple(key for key, variable in model.z.items() if values[variable] > 0.5)
        uses = tuple((model.due[key[0]], use) for key in labels for use in model.uses[key])
        evaluate = model.model.mathopt.evaluate_expression
        traffic = float(evaluate(model.model.total(model.shipped), values))
        return Valued(found.value, Part(self.number, labels, traffic, uses), False)


def priced(model: TrafficModel, prices: Prices) -> dict[tuple[int, Label], float]:
    """The price of each item at each place, where it has any."""
    by_group: dict[Label, list[tuple[int | None, float]]] = {}
    for row, price in prices.items():
        by_group.setdefault(row.group, []).append((row.due_ns, price))
    found: dict[tuple[int, Label], float] = {}
    for key, uses in model.uses.items():
        due_ns, total = model.due[key[0]], 0.0
        for use in uses:
            for until_ns, price in by_group.get(use.group, ()):
                if until_ns is None:
                    total += price * use.load
                elif until_ns >= due_ns:
                    total += price * use.cost_ms
        if total > 0:
            found[key] = total
    return found


class Master:
    """The linear programme over placements of parts: one of each, within the rows that were ever violated."""

    def __init__(self, whole: TrafficModel, parts: int) -> None:
        self.whole = whole
        model = Model(whole.problem, False)
        self.mathopt, self.programme = model.mathopt, model.programme
        self.chosen: dict[Part, Any] = {}
        self.rows: dict[Row, Any] = {}
        self.each = [self.programme.add_linear_constraint(lb=1.0) for _ in range(parts)]
        for row in self.each:
            missing = self.programme.add_variable(lb=0.0)
            row.set_coefficient(missing, 1.0)
            self.programme.objective.set_linear_coefficient(missing, MISSING)

    def add(self, parts: Iterable[Part]) -> bool:
        """Whether any is new."""
        fresh = [part for part in parts if part not in self.chosen]
        for part in fresh:
            variable = self.chosen[part] = self.programme.add_variable(lb=0.0)
            self.each[part.number].set_coefficient(variable, 1.0)
            self.programme.objective.set_linear_coefficient(variable, part.traffic)
            for row, constraint in self.rows.items():
                constraint.set_coefficient(variable, part.of(row))
        return bool(fresh)

    def solve(self) -> tuple[float, Prices, dict[Part, float]] | None:
        """Traffic, prices, and the part that is taken of each placement. None where the solver failed."""
        while True:
            result = self.mathopt.solve(self.programme, self.mathopt.SolverType.HIGHS)
            if result.termination.reason != self.mathopt.TerminationReason.OPTIMAL:
                return None
            values, duals = result.variable_values(), result.dual_values()
            taken = {part: values[one] for part, one in self.chosen.items() if values[one] > VIOLATED}
            if not self._tighten(taken):
                prices = {row: -duals[one] for row, one in self.rows.items() if duals[one] < 0}
                return result.objective_value(), prices, taken

    def _tighten(self, taken: dict[Part, float]) -> bool:
        used: dict[Label, list[tuple[int, float]]] = {}
        loads: dict[Label, float] = {}
        for part, weight in taken.items():
            for due_ns, use in part.uses:
                used.setdefault(use.group, []).append((due_ns, weight * use.cost_ms))
                loads[use.group] = loads.get(use.group, 0.0) + weight * use.load
        found = [Row(group, None) for group, load in loads.items() if self._over(Row(group, None), load)]
        for group, costs in used.items():
            total = 0.0
            for due_ns, cost_ms in sorted(costs):
                total += cost_ms
                if self._over(Row(group, due_ns), total):
                    found.append(Row(group, due_ns))
        fresh = [row for row in dict.fromkeys(found) if row not in self.rows]
        for row in fresh:
            self.rows[row] = self.programme.add_linear_constraint(ub=self.whole.room[row].upper_bound)
            for part, variable in self.chosen.items():
                self.rows[row].set_coefficient(variable, part.of(row))
        return bool(fresh)

    def _over(self, row: Row, used: float) -> bool:
        return used > float(self.whole.room[row].upper_bound) * (1 + VIOLATED)


class Decomposition:
    """Bounds of one model. `bound`: tuples per burst at least; `values`: what each part costs at `prices`, at least.
    `raised` is called with each better bound, `guided` twice with the placement of each part that the master takes
    most: soon, and at the end."""

    def __init__(
        self,
        whole: TrafficModel,
        limits: Limits,
        raised: Callable[[float], None] = lambda bound: None,
        guided: Callable[[dict[int, Label]], None] = lambda guide: None,
    ) -> None:
        self.whole, self.limits, self.raised, self.guided = whole, limits, raised, guided
        groups: dict[int, list[int]] = {}
        for index, part in enumerate(components(whole.problem)):
            groups.setdefault(part, []).append(index)
        self.parts = [PartModel(whole, number, items) for number, items in enumerate(groups.values())]
        self.master = Master(whole, len(self.parts))
        self.bound, self.infeasible = 0.0, False
        self.prices: Prices = {}
        self.values: list[float] = []
        self.guide: dict[int, Label] = {}

    def run(self, prices: Prices, until: float, stop: Callable[[], bool]) -> None:
        """From some prices on, until the bound is the master's, or the time is up."""
        self._rounds(prices, until, stop)
        if self.guide:
            self.guided(self.guide)

    def _rounds(self, prices: Prices, until: float, stop: Callable[[], bool]) -> None:
        at, blend = prices, BLEND
        for number in count(1):
            found = self._valued(at, until, stop)
            if found is None or self.infeasible:
                return
            total = sum(each.value for each in found) - self._held(at)
            if total > self.bound or not self.values:
                self.bound, self.prices, self.values = max(total, self.bound), at, [each.value for each in found]
                self.raised(self.bound)
                blend = BLEND
            else:
                blend = max(0.0, blend - LESS)
            fresh = self.master.add(each.part for each in found if each.part)
            solved = self.master.solve()
            if solved is None:
                return
            traffic, own, taken = solved
            self._guide(taken)
            if number == SOON:
                self.guided(self.guide)
            if self.bound >= traffic * (1 - CLOSED) or (not fresh and not blend):
                return
            blend = blend if fresh else 0.0
            rows = {*own, *self.prices}
            at = {row: blend * self.prices.get(row, 0.0) + (1 - blend) * own.get(row, 0.0) for row in rows}

    def cut(self, model: TrafficModel) -> None:
        """Says in the whole model what was proven of each part, if anything: its linear relaxation then has this
        bound."""
        if not self.values:
            return
        prices = priced(model, self.prices)
        names = [{stream.name for stream in part.model.streams()} for part in self.parts]
        for part, own, value in zip(self.parts, names, self.values, strict=True):
            terms = [term for name in own for term in model.ships[name]]
            terms += [prices[key] * model.z[key] for key in part.model.z if key in prices]
            model.model.programme.add_linear_constraint(model.model.total(terms) >= value)

    def _valued(self, prices: Prices, until: float, stop: Callable[[], bool]) -> list[Valued] | None:
        found = []
        for part in self.parts:
            if stop() or time.monotonic() >= until:
                return None
            found.append(part.valued(prices, self.limits, until))
            self.infeasible = self.infeasible or found[-1].infeasible
        return found

    def _held(self, prices: Prices) -> float:
        return sum(price * float(self.whole.room[row].upper_bound) for row, price in prices.items())

    def _guide(self, taken: dict[Part, float]) -> None:
        """Of each part the placement that is taken most."""
        best: dict[int, tuple[float, Part]] = {}
        for part, weight in taken.items():
            if part.number not in best or weight > best[part.number][0]:
                best[part.number] = weight, part
        self.guide = {index: label for _, part in best.values() for index, label in part.labels}
