"""The placement programme of the `sound` model: least traffic, under rows that hold for every guaranteed plan.

Rows of `necessary_conditions` are proven, and so is the reason when nothing holds them. Cuts come from tried plans:
a placement that did not work out under the sub-deadlines tried, or a failing test (sum w z + blocker <= u*). These
only steer; they can be dropped, and nothing is claimed through them. Times in the solver are in ms.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.errors import Mistake
from coordinator.model import routes
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.model.routes import Hops
from coordinator.solve.guaranteed.impossible import distances
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions, Row
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS
from coordinator.solve.milp.programme import Model
from coordinator.units import counted, show_ns

LARGEST_PAIRS = 150  # pairs of nodes up to which a way's latency is by pair, not the least of all
MOST_REASONS = 4
TOLERANCE = 1e-6  # ms and relative: what a solver may leave open is not taken for a proof


@dataclass(frozen=True)
class Offer:
    """A placement to look at. `traffic_bound`: what the traffic is at least under the rows and cuts as they stood;
    `unit_cuts`: operators that begin a unit wherever they are."""

    place: Mapping[int, int]
    hops: Hops
    traffic_bound: float
    unit_cuts: frozenset[str] = frozenset()


@dataclass
class Master:
    """`infeasible` after `offer` gave None: nothing is left; else the time was up."""

    conditions: NecessaryConditions
    limits: Limits
    elastic: bool = False
    infeasible: bool = False
    steering: list[Any] = field(default_factory=list)  # cuts that prove nothing, oldest first
    slacks: list[tuple[Any, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.problem: Problem = self.conditions.problem
        self.model: Model = milp.base(self.problem)
        self.rows = self.conditions.rows()
        for row in self.rows:
            self._demand(row)
        self._utilisation()
        self._paths()

    def offer(self, until: float) -> Offer | None:
        """The placement of least traffic that the rows and cuts leave."""
        answer = milp.solve(self.model, self._objective(), self.limits, until)
        if answer.solution is None:
            self.infeasible = answer.infeasible
            return None
        place, chosen = answer.solution.place, answer.solution.hops
        meshed = self.problem.meshed
        hops = routes.direct(self.problem, place) if meshed else routes.pruned(self.problem, place, chosen)
        return Offer(place, hops, answer.solution.bound)

    def exclude(self, place: Mapping[int, int], proven: bool) -> None:
        """Not this placement again."""
        cut = self.model.exclude(place)
        if not proven:
            self.steering.append(cut)

    def cut(self, node: int, work_ns: Mapping[int, int], room_ns: int) -> None:
        """A failing test: these items together have more to do on a node than fits."""
        terms = [work / MS * self.model.z[i, node] for i, work in work_ns.items() if (i, node) in self.model.z]
        self.steering.append(self.model.programme.add_linear_constraint(self.model.total(terms) <= room_ns / MS))

    def drop_oldest(self) -> bool:
        """Forgets the oldest cut; whether there was one."""
        if not self.steering:
            return False
        self.model.programme.delete_linear_constraint(self.steering.pop(0))
        return True

    def _objective(self) -> Any:
        if self.elastic:
            return self.model.total([slack for slack, _ in self.slacks])
        return self.model.traffic()

    def _at_most(self, terms: list[Any], limit_ns: int, said: str) -> None:
        """A proven row in ns; with `elastic` it may give way, relative to its limit."""
        roof: Any = limit_ns / MS * (1 + TOLERANCE) + TOLERANCE
        if self.elastic:
            slack = self.model.programme.add_variable(lb=0)
            self.slacks.append((slack, said))
            roof = roof + slack * max(1.0, limit_ns / MS)
        self.model.programme.add_linear_constraint(self.model.total(terms) <= roof)

    def _demand(self, row: Row) -> None:
        z, item = self.model.z, self.conditions.item
        terms = [work / MS * z[item[name], row.node] for name, _, work in row.terms]
        self._at_most(terms, row.by_ns - row.after_ns, sentence(self.conditions, row))

    def _utilisation(self) -> None:
        for node in self.problem.nodes:
            terms = [
                float(self.conditions.rates[name] * costs[node.index])
                * MS
                * self.model.z[self.conditions.item[name], node.index]
                for name, costs in self.conditions.cost_ns.items()
                if node.index in costs
            ]
            if terms:
                self._at_most(terms, MS * MS, f"node {node.name}: its work takes all of it in the worst case (U >= 1)")

    def _paths(self) -> None:
        """E_o >= E_p + cost + latency, per source, from the age on admission to the deadline."""
        self.latency = distances(self.problem, self.conditions)
        transit: dict[tuple[int, int], Any] = {}
        nodes = {node.name: node.index for node in self.problem.nodes}
        ends: dict[tuple[str, str], Any] = {}
        for operator in self.conditions.order:
            item = self.conditions.item[operator.name]
            cost = self.model.total(
                [c / MS * self.model.z[item, n] for n, c in self.conditions.cost_ns[operator.name].items()]
            )
            for source in self.conditions.reach[operator.name]:
                end = ends[source, operator.name] = self.model.programme.add_variable(lb=0)
                for name in operator.inputs:
                    if source not in self.conditions.reach[name]:
                        continue
                    if name not in self.conditions.by_name:
                        given = next(one for one in self.conditions.query.sources if one.name == name)
                        from_node = nodes[given.at]
                        far = [
                            self.latency[from_node][n] / MS * self.model.z[item, n]
                            for n in self.problem.items[item].nodes
                        ]
                        start: Any = given.max_age_ns / MS + self.model.total(far)
                    else:
                        start = ends[source, name] + self._transit(self.conditions.item[name], item, transit)
                    self.model.programme.add_linear_constraint(end >= start + cost)
        for output in self.conditions.query.outputs:
            item = self.conditions.item[output.origin]
            to = nodes[output.at]
            far = [self.latency[n][to] / MS * self.model.z[item, n] for n in self.problem.items[item].nodes]
            said = f"output {output.name}: age, costs and links of one tuple alone exceed its deadline"
            for source in sorted(self.conditions.reach[output.origin]):
                self._at_most([ends[source, output.origin], *far], output.deadline_ns, said)

    def _transit(self, one: int, other: int, known: dict[tuple[int, int], Any]) -> Any:
        """The latency between two items: a variable, 0 where they are one or no link takes time."""
        if one == other:
            return 0.0
        if (one, other) in known:
            return known[one, other]
        model, items = self.model, self.problem.items
        pairs = [(m, n) for m in items[one].nodes for n in items[other].nodes if m != n]
        least = min((self.latency[m][n] for m, n in pairs), default=0)
        takes = known[one, other] = model.programme.add_variable(lb=0)
        if len(pairs) <= LARGEST_PAIRS:
            for m, n in pairs:
                if self.latency[m][n]:
                    both = model.z[one, m] + model.z[other, n] - 1
                    model.programme.add_linear_constraint(takes >= self.latency[m][n] / MS * both)
        elif least:
            for m in items[one].nodes:
                away = model.z[one, m] - model.z.get((other, m), 0.0)
                model.programme.add_linear_constraint(takes >= least / MS * away)
        return takes


def sentence(conditions: NecessaryConditions, row: Row) -> str:
    """A demand row for people."""
    parts = [f"{name} {counted(jobs, 'job')} {show_ns(work)}" for name, jobs, work in row.terms]
    told = ", ".join(parts[:6]) + (f" and {len(parts) - 6} more" if len(parts) > 6 else "")
    total = sum(work for _, _, work in row.terms)
    since = f"between {show_ns(row.after_ns)} and" if row.after_ns else "within"
    return (
        f"node {conditions.problem.nodes[row.node].name}: {since} {show_ns(row.by_ns)} of admission it has to do "
        f"{show_ns(total)} where all of this is there ({told})"
    )


def nearest(conditions: NecessaryConditions, limits: Limits) -> tuple[Offer | None, list[Mistake]]:
    """The placement that breaks the proven rows least, and these rows in sentences."""
    master = Master(conditions, limits, elastic=True)
    until = time.monotonic() + min(10.0, limits.seconds)
    result = milp.bound(master.model, master._objective(), limits, until)
    if result.values is None:
        return None, []
    broken = sorted(((result.values[slack], text) for slack, text in master.slacks), reverse=True)
    said: dict[str, Mistake] = {}  # by node or output: what is broken most
    for value, text in broken:
        if value > 10 * TOLERANCE:
            where = text.partition(":")[0]
            said.setdefault(where, Mistake.of("condition_broken", text, where.partition(" ")[2]))
    place = {i: n for (i, n), one in master.model.z.items() if result.values[one] > 0.5}
    chosen: dict[str, set[tuple[int, int]]] = {}
    for (name, start, end), one in master.model.hop.items():
        if result.values[one] > 0.5:
            chosen.setdefault(name, set()).add((start, end))
    problem = conditions.problem
    hops = routes.direct(problem, place) if problem.meshed else routes.pruned(problem, place, chosen)
    return Offer(place, hops, 0.0), list(said.values())[:MOST_REASONS]
