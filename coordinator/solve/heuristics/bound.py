"""A lower bound of the traffic of **any** placement: a smaller model of which every placement is a solution.

What is left out, never what is left aside: no node and no operator is pruned. For the operators of one part of the
graph (linked by streams), the nodes where nothing of that part is pinned, enters or is delivered are alike but for
their kind (speed, cap). They become one place per kind, within which streams are free, with the demand that all nodes
of the kind together can serve. Every placement maps to a solution of no more traffic and within all rows, so the
optimum of this model, or any bound that a solver proves of it, is a bound of the whole model. Symmetry between
equal nodes, which makes the whole model's own search slow, is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Stream
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS
from coordinator.solve.milp.programme import Model

SAFETY = 1e-6  # of the value: a solver's own tolerance
Label = tuple[str, int]


@dataclass(frozen=True)
class Row:
    """A row of (6): what is due by `due_ns` on a node or on the nodes of a kind; None: their utilisation."""

    group: Label
    due_ns: int | None


@dataclass(frozen=True)
class Use:
    """What an item takes of a group's rows: utilisation, and cost in ms."""

    group: Label
    load: float
    cost_ms: float


def kinds(problem: Problem) -> list[int]:
    """The kind of every node: nodes of one kind cost every operator the same and have the same cap."""
    known: dict[tuple[object, ...], int] = {}
    return [known.setdefault((node.speed, node.emulate_cost_ns, node.cap), len(known)) for node in problem.nodes]


def components(problem: Problem) -> list[int]:
    """The part of the graph that each item belongs to: items linked by streams, in either direction."""
    root = list(range(len(problem.items)))

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    for stream in problem.streams:
        linked = [*stream.readers, *([stream.item] if stream.item is not None else [])]
        for one in linked[1:]:
            root[find(one)] = find(linked[0])
    return [find(index) for index in range(len(root))]


class TrafficModel:
    """The model. `due_ns`: no item's demand is due later; at (1) the bound is of plans with NLR 0, at
    `laxity_shares.latest_ns` of all. `items`: of one part alone, else all."""

    def __init__(self, problem: Problem, due_ns: Mapping[int, int], items: Sequence[int] | None = None) -> None:
        self.problem, self.due = problem, due_ns
        self.items = tuple(range(len(problem.items)) if items is None else items)
        self.model = Model(problem, False)
        self.kind = kinds(problem)
        self.own = self._own()
        self.z: dict[tuple[int, Label], Any] = {}
        self.room: dict[Row, Any] = {}  # what of a row is used, a variable with the row's limit
        self.uses: dict[tuple[int, Label], list[Use]] = {}
        for index in self.items:
            self._item(index)
        self.ships = {stream.name: self._copies(stream) for stream in self.streams()}
        self.shipped = [term for terms in self.ships.values() for term in terms]
        for node in range(len(problem.nodes)):
            self._demand(("node", node), {("node", node)}, 1, {node})
        for kind in set(self.kind):
            nodes = {node for node, one in enumerate(self.kind) if one == kind}
            self._demand(("kind", kind), {("kind", kind)} | {("node", node) for node in nodes}, len(nodes), nodes)

    def bound(
        self, limits: Limits, until: float, whole: bool, prices: Sequence[Any] = (), gap: float = milp.GAP
    ) -> milp.Bound:
        """Tuples per burst. `whole`: with whole items, by branch and bound; else the linear relaxation. `prices`: terms
        that are added, none below 0."""
        for variable in self.z.values():
            variable.integer = whole
        found = milp.bound(self.model, self.model.total([*self.shipped, *prices]), limits, until, gap)
        return replace(found, value=max(0.0, found.value - SAFETY * abs(found.value)))

    def prices(self, found: milp.Bound) -> dict[Row, float]:
        """What a unit more of each row would save of a linear relaxation, where that is anything."""
        reduced = found.reduced or {}
        return {row: -reduced[one] for row, one in self.room.items() if reduced.get(one, 0.0) < 0}

    def guide(self, found: milp.Bound) -> dict[int, Label]:
        """The places of a solution with whole items: a node, or the kind of a node that nothing of the part needs."""
        values = found.values or {}
        return {index: label for (index, label), one in self.z.items() if values.get(one, 0.0) > 0.5}

    def streams(self) -> list[Stream]:
        """Streams that some of its items make or read."""
        inside = set(self.items)
        return [one for one in self.problem.streams if one.item in inside or inside.intersection(one.readers)]

    def _own(self) -> list[set[int]]:
        """Per item, the nodes told apart: where something of its part is pinned or restricted, enters or leaves."""
        part = components(self.problem)
        nodes: dict[int, set[int]] = {one: set() for one in part}
        for index in range(len(self.problem.items)):
            allowed = self.allowed(index)
            if len(allowed) < len(self.problem.nodes):
                nodes[part[index]].update(allowed)
        for stream in self.problem.streams:
            one = stream.item if stream.item is not None else next(iter(stream.readers), None)
            if one is not None:
                nodes[part[one]].update(stream.sinks)
                nodes[part[one]].update([stream.node] if stream.node is not None else [])
        return [nodes[one] for one in part]

    def allowed(self, index: int) -> Sequence[int]:
        """The nodes an item may run on."""
        held = self.problem.held.get(index)
        return self.problem.items[index].nodes if held is None else (held,)

    def _item(self, index: int) -> None:
        labels: dict[Label, None] = {}
        item = self.problem.items[index]
        for node in self.allowed(index):
            if item.cost_ns[node] <= self.due[index] and item.load[node] <= self.problem.nodes[node].cap:
                labels[("node", node) if node in self.own[index] else ("kind", self.kind[node])] = None
        for label in labels:
            self.z[index, label] = self.model.programme.add_integer_variable(lb=0, ub=1)
        terms = [self.z[index, label] for label in labels]
        self.model.programme.add_linear_constraint(self.model.total(terms) == 1)

    def _copies(self, stream: Stream) -> list[Any]:
        """t >= z[consumer] - z[producer] at every place where a reader may be."""
        programme, terms = self.model.programme, []
        reads: dict[Label, list[Any]] = {("node", node): [1.0] for node in stream.sinks}
        for reader in stream.readers:
            for label in self._labels(reader):
                reads.setdefault(label, []).append(self.z[reader, label])
        for label, wants in reads.items():
            here = self._produced(stream, label)
            if isinstance(here, float) and here == 1.0:
                continue
            copy = programme.add_variable(lb=0, ub=1)
            for want in wants:
                programme.add_linear_constraint(copy >= want - here)
            terms.append(float(stream.tuples) * copy)
        return terms

    def _produced(self, stream: Stream, label: Label) -> Any:
        if stream.item is None:
            return 1.0 if label == ("node", stream.node) else 0.0
        return self.z.get((stream.item, label), 0.0)

    def _labels(self, index: int) -> list[Label]:
        own: list[Label] = [("node", node) for node in sorted(self.own[index])]
        every: list[Label] = [*own, *(("kind", kind) for kind in sorted(set(self.kind)))]
        return [label for label in every if (index, label) in self.z]

    def _demand(self, group: Label, labels: set[Label], count: int, nodes: set[int]) -> None:
        """(6) and utilisation of one node, or of all nodes of a kind together."""
        programme, cap = self.model.programme, float(self.problem.nodes[min(nodes)].cap)
        used = [(index, label, one) for (index, label), one in self.z.items() if label in labels]
        if not used:
            return
        load, cost = self._costs(nodes)
        for index, label, _ in used:
            self.uses.setdefault((index, label), []).append(Use(group, load[index], cost[index] / MS))
        self.room[Row(group, None)] = programme.add_variable(lb=0, ub=count * cap * (1 + 1e-9))
        programme.add_linear_constraint(
            self.room[Row(group, None)] == self.model.total([load[index] * one for index, _, one in used])
        )
        by_due: dict[int, list[Any]] = {}
        for index, _, one in used:
            by_due.setdefault(self.due[index], []).append(cost[index] / MS * one)
        before: Any = 0.0
        for due_ns in sorted(by_due):
            demand = self.room[Row(group, due_ns)] = programme.add_variable(lb=0, ub=count * due_ns / MS)
            programme.add_linear_constraint(demand == before + self.model.total(by_due[due_ns]))
            before = demand

    def _costs(self, nodes: set[int]) -> tuple[dict[int, float], dict[int, int]]:
        """Utilisation and cost of each item on these nodes, which are of one kind."""
        load: dict[int, float] = {}
        cost: dict[int, int] = {}
        for index, item in enumerate(self.problem.items):
            node = next((one for one in item.nodes if one in nodes), None)
            if node is not None:
                load[index], cost[index] = float(item.load[node]), item.cost_ns[node]
        return load, cost
