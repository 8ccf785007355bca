"""A placement with every choice made: task units, ids, deadlines, ways; `local_plans` has what each node runs.

Ids count from 1 in the query's order, over the whole plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from coordinator.model import task_units
from coordinator.model.problem import deadlines, tuple_cost_ns
from coordinator.model.routes import Hops
from coordinator.plan.service_curves import Division
from coordinator.spec import graph, windows
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from protos.policies import Chosen


@dataclass(frozen=True)
class Layout:
    """A checked query on a cluster with every choice made; gives ids and units. `policy`: of the nodes that name
    none; `incumbent_units`: units that run already, which stay whole and which nothing joins; `cuts`: operators that
    begin a unit wherever they are."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    place: Mapping[str, str]
    sub_deadline_ns: Mapping[str, int]
    hops: Hops
    policy: Chosen
    grouping: task_units.Units
    incumbent_units: tuple[tuple[str, ...], ...] = ()
    cuts: frozenset[str] = frozenset()

    @cached_property
    def stream_id(self) -> dict[str, int]:
        """Sources first, then operators, each in the query's order."""
        return {one.name: i for i, one in enumerate(self.query.producers, start=1)}

    @cached_property
    def max_bytes(self) -> dict[str, int]:
        """Of a payload of each stream; 0: not declared."""
        return graph.payload_bytes(self.query, self.cluster.catalog)

    @cached_property
    def operator_id(self) -> dict[str, int]:
        """Operators in the query's order."""
        return {operator.name: i for i, operator in enumerate(self.query.operators, start=1)}

    @cached_property
    def by_name(self) -> dict[str, Operator]:
        """Operators by name."""
        return {operator.name: operator for operator in self.query.operators}

    @cached_property
    def deadline_ns(self) -> dict[str, int]:
        """The least end-to-end deadline that each stream leads to through trigger inputs; 0: none."""
        found = deadlines(self.query)
        for source in self.query.sources:
            led = [found[one.name] for one in self.query.operators if source.name in one.inputs and found[one.name]]
            found[source.name] = min(led, default=0)
        return found

    @cached_property
    def last_deadline_ns(self) -> dict[str, int]:
        """The greatest end-to-end deadline that each stream leads to through trigger inputs, where it is not also the
        least one; else 0. A tuple of a window whose deadline counts from its end has as much longer as that is long."""
        found = dict.fromkeys(self.deadline_ns, 0)
        for output in self.query.outputs:
            found[output.origin] = max(found[output.origin], output.deadline_ns)
        for operator in reversed(graph.order(self.query)):
            behind = found[operator.name] + windows.beyond_ns(operator)
            for name in operator.inputs if found[operator.name] else ():
                found[name] = max(found[name], behind)
        return {name: last_ns if last_ns != self.deadline_ns[name] else 0 for name, last_ns in found.items()}

    @cached_property
    def marked(self) -> set[str]:
        """Streams that lead, through any operators, to a join by lineage or to a window: a filtered tuple has to send
        punctuation there."""
        found: set[str] = set(self.counted)
        for operator in reversed(graph.order(self.query)):
            if graph.kind(operator, self.cluster.catalog) == "join" or operator.name in found:
                found |= set(operator.inputs)
        return found - {operator.name for operator in self.windows}

    @cached_property
    def order(self) -> list[Operator]:
        """Operators so that each stands after those that trigger it."""
        return graph.order(self.query)

    @cached_property
    def late_ns(self) -> dict[str, int]:
        """Per operator the greatest age at which a tuple that it begins with can still be in time for one output: the
        deadline less what the shortest way there costs, operators at their declared costs and links at their
        latencies; without end where it leads to none, as in a plan for fail-over that has lost one."""
        query, cluster = self.query, self.cluster
        found: dict[str, int | None] = {one.name: None for one in query.operators}  # None: leads to no output
        for output in query.outputs:
            left = output.deadline_ns - self.way_ns(output.origin, output.at)
            now = found[output.origin]
            found[output.origin] = left if now is None else max(now, left)
        for operator in reversed(self.order):
            name, behind = operator.name, found[operator.name]
            if behind is None:
                continue
            behind += windows.more_ns(operator) - tuple_cost_ns(operator, cluster.nodes[self.place[name]])
            found[name] = behind
            for stream in operator.inputs:
                if stream in found:
                    now, left = found[stream], behind - self.way_ns(stream, self.place[name])
                    found[stream] = left if now is None else max(now, left)
        return {name: windows.ENDLESS_NS if left is None else left for name, left in found.items()}

    def way_ns(self, stream: str, at: str) -> int:
        """Latency of the links that a stream takes to a node."""
        return self._ways_ns.get((stream, at), 0)

    @cached_property
    def windows(self) -> list[Operator]:
        """The operators that collect tuples in windows, in the query's order."""
        return windows.collecting(self.query)

    @cached_property
    def counted(self) -> set[str]:
        """Streams on their way to a window."""
        return windows.counted(self.query)

    @cached_property
    def source_id(self) -> dict[str, int]:
        """Those of clients in the query's order, then those of windows, by the name of what collects them."""
        return windows.source_ids(self.query)

    @cached_property
    def beat_ns(self) -> dict[str, int]:
        """How often the node of a source that leads to a window says how far it is."""
        return windows.beats_ns(self.query, self.cluster.catalog)

    @cached_property
    def _ways_ns(self) -> dict[tuple[str, str], int]:
        """Latency of the links to every node that a stream is sent to."""
        names = list(self.cluster.nodes)
        link_ns: dict[tuple[str, str], int] = {}
        for stream, pairs in self.hops.items():
            entry = {names[end]: names[start] for start, end in pairs}
            for end in entry:
                at, link_ns[stream, end] = end, 0
                while at in entry:
                    link = self.cluster.link(entry[at], at)
                    assert link is not None  # hops are taken over links only
                    link_ns[stream, end] += link.latency_ns
                    at = entry[at]
        return link_ns

    @cached_property
    def division(self) -> Division:
        """What outputs ask beyond their deadlines, divided among the units."""
        units_ = tuple(unit for tasks in self.tasks.values() for _, unit in tasks)
        return Division(self.query, units_, self.sub_deadline_ns, self._ways_ns, self.place)

    def joins(self, operator: Operator) -> bool:
        """Whether an operator takes one tuple of each input."""
        return graph.kind(operator, self.cluster.catalog) in ("join", "fusion")

    def ordered_inputs(self, operator: Operator) -> list[str]:
        """Input streams in the order of the operator's ports."""
        return graph.ordered_inputs(operator, self.cluster.catalog)

    @cached_property
    def tasks(self) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
        """Per node: (unit id, operators), ids over the whole plan in the order of nodes."""
        tasks: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        number = 0
        sorted_names = [operator.name for operator in graph.order(self.query)]
        position = {operator.name: i for i, operator in enumerate(self.query.operators)}
        for node in self.cluster.nodes:
            incumbent_units = [unit for unit in self.incumbent_units if self.place[unit[0]] == node]
            stay = {name for unit in incumbent_units for name in unit}
            names = [name for name in sorted_names if self.place[name] == node and name not in stay]
            uses = {name: self._uses(name) for name in names}
            found = incumbent_units + task_units.extract(names, uses, self._leaves, self.grouping)
            tasks[node] = []
            for unit in sorted(found, key=lambda unit: position[unit[0]]):
                number += 1
                tasks[node].append((number, unit))
        return tasks

    def _uses(self, name: str) -> list[task_units.Use]:
        uses = []
        for operator in self.query.operators:
            if name in operator.inputs:
                kind = graph.kind(operator, self.cluster.catalog)
                here = self.place[operator.name] == self.place[name]
                alone = len(operator.inputs) == 1 and kind == "map" and operator.queue is None
                alone = alone and operator.name not in self.cuts
                uses.append(task_units.Use(operator.name, self.deadline_ns[operator.name], here and alone))
        delivered = [output.deadline_ns for output in self.query.outputs if output.origin == name]
        return uses + [task_units.Use(None, deadline_ns, False) for deadline_ns in delivered]

    def _leaves(self, name: str, successor: str | None) -> bool:
        """Whether a stream has a consumer other than being the trigger of `successor`. What a window collects goes
        nowhere: one that closes is admitted anew."""
        if self.by_name[name].window is not None:
            return False
        if any(output.origin == name for output in self.query.outputs) or name in self.hops:
            return True
        for operator in self.query.operators:
            if name in operator.side.values() or (name in operator.inputs and operator.name != successor):
                return True
        return False

    def exits(self, unit: tuple[str, ...]) -> list[str]:
        """The streams that leave a unit, in the operators' order."""
        following: list[str | None] = [*unit[1:], None]
        return [name for name, after in zip(unit, following, strict=True) if self._leaves(name, after)]
