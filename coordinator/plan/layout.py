"""From a placement to what each node runs: task units, streams, sends, as protos.plan.LocalPlan messages.

Ids count from 1 in the query's order, over the whole plan. A stream is listed on every node that admits, produces,
receives or reads it; `producers` are the nodes that may send it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from coordinator.model import units
from coordinator.model.problem import deadlines
from coordinator.model.routes import Hops
from coordinator.plan import layout_shedding, layout_windows
from coordinator.plan.service_curves import CURVES, Division
from coordinator.spec import graph, windows
from coordinator.spec.cluster import Cluster, Node
from coordinator.spec.query import KEEP, Operator, Query
from protos import plan_pb2
from protos.policies import Chosen


@dataclass(frozen=True)
class Layout:
    """A checked query on a cluster with every choice made; gives ids, units and local plans. `policy`: of the nodes
    that name none."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    place: Mapping[str, str]
    sub_deadline_ns: Mapping[str, int]
    hops: Hops
    policy: Chosen
    grouping: units.Units
    kept: tuple[tuple[str, ...], ...] = ()  # units that run already: they stay whole, and nothing joins them

    @cached_property
    def stream_id(self) -> dict[str, int]:
        """Sources first, then operators, each in the query's order."""
        return {one.name: i for i, one in enumerate(self.query.producers, start=1)}

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
        """Streams that lead, through any operators, to a join by lineage or to a window: a filtered tuple has to send a
        mark there."""
        found: set[str] = set(self.counted)
        for operator in reversed(graph.order(self.query)):
            if self.joins(operator) or operator.name in found:
                found |= set(operator.inputs)
        return found - {operator.name for operator in self.windows}

    @cached_property
    def order(self) -> list[Operator]:
        """Operators so that each stands after those that trigger it."""
        return graph.order(self.query)

    @cached_property
    def late_ns(self) -> dict[str, int]:
        """Per operator the greatest age at which what it begins with can still be in time."""
        return layout_windows.late_ns(self)

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
        """Whether an operator waits for all inputs of one lineage."""
        return graph.kind(operator, self.cluster.catalog) == "join"

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
            kept = [unit for unit in self.kept if self.place[unit[0]] == node]
            stay = {name for unit in kept for name in unit}
            names = [name for name in sorted_names if self.place[name] == node and name not in stay]
            uses = {name: self._uses(name) for name in names}
            found = kept + units.extract(names, uses, self._leaves, self.grouping)
            tasks[node] = []
            for unit in sorted(found, key=lambda unit: position[unit[0]]):
                number += 1
                tasks[node].append((number, unit))
        return tasks

    def _uses(self, name: str) -> list[units.Use]:
        uses = []
        for operator in self.query.operators:
            if name in operator.inputs:
                kind = graph.kind(operator, self.cluster.catalog)
                here = self.place[operator.name] == self.place[name]
                alone = len(operator.inputs) == 1 and kind == "map" and operator.queue is None
                uses.append(units.Use(operator.name, self.deadline_ns[operator.name], here and alone))
        delivered = [output.deadline_ns for output in self.query.outputs if output.origin == name]
        return uses + [units.Use(None, deadline_ns, False) for deadline_ns in delivered]

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

    def local_plan(self, node: Node) -> plan_pb2.LocalPlan:
        """What one node runs."""
        plan = plan_pb2.LocalPlan(
            version=1,
            query=self.query.name,
            node=node.name,
            index=node.index,
            policy=self._policy(node),
            memory_bytes=node.memory_bytes,
            emulate_cost_ns=node.emulate_cost_ns,
            cpu=node.cpu,
        )
        self._add_streams(plan, node)
        plan.sources.extend(layout_windows.sources(self, node.name))
        for operator in self.query.operators:
            if self.place[operator.name] == node.name:
                self._add_operator(plan, operator)
        curves = plan.policy.name in CURVES
        for unit_id, members in self.tasks[node.name]:
            plan.units.add(
                id=unit_id,
                operators=[self.operator_id[name] for name in members],
                sub_deadline_ns=sum(self.sub_deadline_ns[name] for name in members),
                deadline_ns=self.deadline_ns[members[0]],
                exits=[self.stream_id[name] for name in self.exits(members)],
                last_deadline_ns=self.last_deadline_ns[members[0]],
                service=self.division.service(members) if curves else [],
                **layout_windows.queue(self.by_name[members[0]]),
            )
        for output_id, output in enumerate(self.query.outputs, start=1):
            if output.at == node.name:
                stream = self.stream_id[output.origin]
                plan.outputs.add(id=output_id, name=output.name, stream=stream, deadline_ns=output.deadline_ns)
        plan.sheddings.extend(layout_shedding.of_node(self, node.name))
        for run in sorted(_runs(plan)):
            known = self.cluster.catalog.operators[run]
            plan.installed.add(run=run, version=known.version, code=known.code)
        self._add_links(plan, node)
        return plan

    def _policy(self, node: Node) -> plan_pb2.Policy:
        runs = node.policy or self.policy
        given = plan_pb2.Policy(name=runs.name, largest_batch=1)
        for parameter, value in runs.parameters.items():
            setattr(given, parameter, value)
        return given

    def _add_operator(self, plan: plan_pb2.LocalPlan, operator: Operator) -> None:
        plan.operators.add(
            id=self.operator_id[operator.name],
            name=operator.name,
            run=operator.run,
            with_json=json.dumps(operator.parameters, sort_keys=True, separators=(",", ":"), allow_nan=False),
            cost_ns=operator.cost_ns,
            inputs=[self.stream_id[name] for name in self.ordered_inputs(operator)],
            called=operator.called or (),
            sides=[plan_pb2.Side(port=port, stream=self.stream_id[name]) for port, name in operator.side.items()],
            output=self.stream_id[operator.name],
            join=self.joins(operator),
            hang_ns=operator.hang_ns,
            sub_deadline_ns=self.sub_deadline_ns[operator.name],
            fresh=operator.state != KEEP,
            window=layout_windows.message(self, operator),
            closes=self.operator_id[operator.closes] if operator.closes else 0,
            late=layout_windows.late(self, operator),
        )

    def _add_streams(self, plan: plan_pb2.LocalPlan, node: Node) -> None:
        here = {source.name for source in self.query.sources if source.at == node.name}
        here |= {name for name, at in self.place.items() if at == node.name}
        for name, stream_id in self.stream_id.items():
            producers = sorted({one for one, other in self.hops.get(name, ()) if other == node.index})
            if name in here or producers:
                plan.streams.add(
                    id=stream_id,
                    name=name,
                    codec=self.types[name],
                    marked=name in self.marked,
                    deadline_ns=self.deadline_ns[name],
                    producers=producers,
                    last_deadline_ns=self.last_deadline_ns[name],
                    counted=name in self.counted,
                )

    def _add_links(self, plan: plan_pb2.LocalPlan, node: Node) -> None:
        names = list(self.cluster.nodes)
        peers: set[int] = set()
        for name, stream_id in self.stream_id.items():
            for one, other in self.hops.get(name, ()):
                if one == node.index:
                    plan.sends.add(stream=stream_id, peer=other)
                    peers.add(other)
                elif other == node.index:
                    peers.add(one)
        for index in sorted(peers):
            link = self.cluster.link(node.name, names[index])
            assert link is not None  # hops are taken over links only
            plan.peers.add(index=index, name=names[index], latency_ns=link.latency_ns, bandwidth_bps=link.bandwidth_bps)


def _runs(plan: plan_pb2.LocalPlan) -> set[str]:
    """The installed operators that a node's part names."""
    found = {operator.run for operator in plan.operators}
    found |= {operator.late.run for operator in plan.operators}
    found |= {operator.window.size for operator in plan.operators}
    return found - {""}
