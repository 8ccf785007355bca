"""One trial as a fixed set of tasks, so that policies and schedules of it can be compared.

What an operator gives for a tuple is taken from a run under `edf`, which sheds nothing, and holds under every policy:
`filter` drops every second tuple *that it sees*, so with tuples shed before it others would pass, at other costs. For
the same reason operators are not policed here. Costs are functions of the tuple already.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import Step
from node_agent.runtime.executor import RAISED, apply
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.optimum.miss_bound import Need, Result, Task, Workload
from node_agent.virtual.scenario import Scenario, VirtualPlan
from node_agent.virtual.world import Admission, Delivery, Offer, World

Key = tuple[int, int, int]  # source, seq, ordinal
Item = tuple[int, Key]  # operator and what it runs on
Made = list[tuple[Key, Any]] | BaseException


def key_of(lineage: Lineage) -> Key:
    """Without what differs from trial to trial."""
    return lineage[0], lineage[2], lineage[3]


class Recorded:
    """What operators gave in the running trial, in the order in which a tuple came (a union may bring it twice)."""

    def __init__(self) -> None:
        self.made: dict[Item, list[Made]] = {}

    def record(
        self, step: Step, lineage: Lineage, payload: Any, now_ns: int, deadline_ns: int
    ) -> list[tuple[Lineage, Any]]:
        """As `apply`."""
        came = self.made.setdefault((step.operator_id, key_of(lineage)), [])
        try:
            got = apply(step, lineage, payload, now_ns, deadline_ns)
        except RAISED as error:
            came.append(error)
            raise
        came.append([(key_of(each), value) for each, value in got])
        return got


class Replayed:
    """Gives what was recorded. What never ran then gives nothing."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._came: dict[Item, int] = {}

    def begin(self) -> None:
        """A trial."""
        self._came.clear()

    def replay(
        self, step: Step, lineage: Lineage, payload: Any, now_ns: int, deadline_ns: int
    ) -> list[tuple[Lineage, Any]]:
        """As `apply`."""
        item = step.operator_id, key_of(lineage)
        number = self._came[item] = self._came.get(item, -1) + 1
        known = self._recorded.made.get(item, ())
        if number >= len(known):
            return []
        made = known[number]
        if isinstance(made, BaseException):
            raise made
        source, epoch, seq, _, low_ns, high_ns = lineage
        return [((source, epoch, seq, key[2], low_ns, high_ns), value) for key, value in made]


class Seen:
    """A world that notes when tuples are admitted and which results are there in time."""

    def __init__(self, world: World, plan: VirtualPlan) -> None:
        self._world = world
        self._ids = {source.name: source.id for source in plan.sources}
        self._deadlines_ns = {output.name: output.deadline_ns for output in plan.outputs}
        self.admitted_ns: dict[Key, int] = {}
        self.due_ns: dict[tuple[str, Key], int] = {}  # results, in time or not
        self.met: set[tuple[str, Key]] = set()

    def begin(self, trial: int) -> None:
        """Forgets the trial before. Only the plan's own arrivals can be compared."""
        self.admitted_ns, self.due_ns, self.met = {}, {}, set()
        self._world.begin(trial)

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Handed on."""
        offer = self._world.offer(source, seq, at_ns)
        if offer is not None:
            self.admitted_ns[self._ids[source], seq, 0] = at_ns
        return offer

    def deliver(self, delivery: Delivery) -> list[Admission] | None:
        """Noted."""
        result = delivery.output, (self._ids[delivery.source], delivery.seq, delivery.ordinal)
        deadline_ns = self._deadlines_ns[delivery.output]
        due_ns = delivery.at_ns - delivery.latency_ns + deadline_ns
        self.due_ns[result] = max(due_ns, self.due_ns.get(result, due_ns))
        if delivery.latency_ns <= deadline_ns:
            self.met.add(result)
        return None


def unpoliced(plan: VirtualPlan) -> VirtualPlan:
    """The plan without limits on what operators give, and without what is shed by how much waits or how late it is:
    that would be another work under every policy."""
    return replace(plan, nodes=tuple(_free(local) for local in plan.nodes))


def _free(local: core.Plan) -> core.Plan:
    return replace(
        local,
        sources=tuple(replace(source, limit=None, on_full="refuse") for source in local.sources),
        operators=tuple(replace(operator, at_most=(), late=None) for operator in local.operators),
        units=tuple(replace(unit, queue_bytes=0) for unit in local.units),
    )


class Graph:
    """What the plan says of operators, streams and links, for tasks."""

    def __init__(self, plan: VirtualPlan, scenario: Scenario) -> None:
        self._plan, self._scenario = plan, scenario
        self._locals = {local.node: local for local in plan.nodes}
        self._at = {operator.id: local.node for local in plan.nodes for operator in local.operators}
        self._operators = {operator.id: operator for local in plan.nodes for operator in local.operators}
        self._producer = {operator.output: operator.id for operator in self._operators.values()}
        self._entries = {source.stream: (source.id, local.node) for local in plan.nodes for source in local.sources}
        self._outputs = {output.name: (output, local.node) for local in plan.nodes for output in local.outputs}
        index = {local.index: local.node for local in plan.nodes}
        self._latency_ns = {
            (local.node, index[peer.index]): peer.latency_ns if scenario.latency_ns is None else scenario.latency_ns
            for local in plan.nodes
            for peer in local.peers
        }
        self._order = self._sorted()

    def workload(self, trial: int, recorded: Recorded, seen: Seen) -> Workload:
        """The trial's tasks, and the results that it gave under the policy that was recorded."""
        return _Tasks(self, trial, recorded, seen).workload()

    def _sorted(self) -> list[int]:
        """Operators, each after those that it reads."""
        order: list[int] = []
        left = set(self._operators)
        while left:
            ready = [
                each
                for each in sorted(left)
                if not any(self._producer.get(stream) in left for stream in self._operators[each].inputs)
            ]
            order += ready
            left -= set(ready)
            assert ready, "the graph of a plan has no cycle"
        return order

    # for _Tasks

    def hop_ns(self, sender: str, receiver: str) -> int:
        """The least time from node to node."""
        return 0 if sender == receiver else self._latency_ns.get((sender, receiver), 0)

    def costs(self, trial: int) -> Mapping[str, Costs]:
        """By node."""
        made = self._scenario
        return {
            name: Costs(local, self._plan.speeds[name], made.jitter, made.cost_scale, made.seed, trial)
            for name, local in self._locals.items()
        }

    @property
    def order(self) -> list[int]:
        """Operators, each after those that it reads."""
        return self._order

    def node(self, operator: int) -> str:
        """Where it runs."""
        return self._at[operator]

    def operator(self, operator: int) -> core.Operator:
        """Its inputs."""
        return self._operators[operator]

    def producer(self, stream: int) -> int | None:
        """None: a source."""
        return self._producer.get(stream)

    def entry(self, stream: int) -> tuple[int, str] | None:
        """The source that enters there, and its node."""
        return self._entries.get(stream)

    def output(self, name: str) -> tuple[core.Output, str]:
        """And where it is delivered."""
        return self._outputs[name]


class _Tasks:
    def __init__(self, graph: Graph, trial: int, recorded: Recorded, seen: Seen) -> None:
        self._graph, self._trial, self._seen = graph, trial, seen
        self._costs = graph.costs(trial)
        self._by_operator: dict[int, list[Key]] = {}
        self._from: dict[Item, list[Key]] = {}  # operator and what it gave -> what it ran on
        for (operator, key), came in recorded.made.items():
            self._by_operator.setdefault(operator, []).append(key)
            for made in came:
                if not isinstance(made, BaseException):
                    for result, _ in made:
                        inputs = self._from.setdefault((operator, result), [])
                        if key not in inputs:
                            inputs.append(key)
        self._number: dict[Item, int] = {}
        self._tasks: list[Task] = []
        self._befores: list[tuple[Item, ...]] = []  # on any node
        self._whole = True  # no task came by one of several ways

    def workload(self) -> Workload:
        for operator in self._graph.order:
            for key in self._by_operator.get(operator, ()):
                self._add(operator, key)
        results = tuple(self._result(*each) for each in sorted(self._seen.due_ns))
        return Workload(tuple(self._tasks), results, self._whole)

    def _add(self, operator: int, key: Key) -> None:
        graph, node = self._graph, self._graph.node(operator)
        befores: list[Item] = []
        ready: list[int] = []
        every = graph.operator(operator)
        for stream in every.inputs:
            came = self._came(stream, key, node)
            if came is not None:
                ready.append(came[0])
                befores += came[1]
        # An operator with several inputs that joins none of them runs on whichever brings the tuple.
        one_way = every.join or len(ready) <= 1
        earliest_ns = (max if every.join else min)(ready, default=min(self._seen.admitted_ns.values(), default=0))
        lineage = (key[0], self._trial, key[1], key[2], 0, 0)
        before = tuple(befores) if one_way else ()
        self._whole = self._whole and one_way and bool(ready)
        here = tuple(self._number[each] for each in before if graph.node(each[0]) == node)
        comes = tuple((self._number[each], graph.hop_ns(graph.node(each[0]), node)) for each in before)
        self._number[operator, key] = len(self._tasks)
        self._tasks.append(Task(node, self._costs[node].cost_ns(operator, lineage), earliest_ns, here, comes))
        self._befores.append(before)

    def _came(self, stream: int, key: Key, node: str) -> tuple[int, list[Item]] | None:
        """When a tuple can be there at the earliest, and after which task; None: it does not come this way."""
        producer = self._graph.producer(stream)
        if producer is None:
            entry = self._graph.entry(stream)
            at_ns = self._seen.admitted_ns.get(key)
            if entry is None or entry[0] != key[0] or at_ns is None:
                return None
            return at_ns + self._graph.hop_ns(entry[1], node), []
        inputs = [(producer, each) for each in self._from.get((producer, key), ()) if (producer, each) in self._number]
        if not inputs:
            return None
        tasks = [self._tasks[self._number[each]] for each in inputs]
        ends_ns = min(each.earliest_ns + each.cost_ns for each in tasks)
        self._whole = self._whole and len(inputs) == 1
        return ends_ns + self._graph.hop_ns(self._graph.node(producer), node), inputs if len(inputs) == 1 else []

    def _result(self, name: str, key: Key) -> Result:
        """Latest ends, from the output backwards."""
        output, sink = self._graph.output(name)
        producer = self._graph.producer(output.stream)
        inputs = self._from.get((producer, key), []) if producer is not None else []
        if producer is None or len(inputs) != 1:
            self._whole = self._whole and producer is None
            return Result(name, ())
        last = self._number[producer, inputs[0]]
        latest = {last: self._seen.due_ns[name, key] - self._graph.hop_ns(self._graph.node(producer), sink)}
        for task in range(last, -1, -1):  # a task's number is above those of the tasks before it
            if task not in latest:
                continue
            starts_ns = latest[task] - self._tasks[task].cost_ns
            for item in self._befores[task]:
                number = self._number[item]
                hop_ns = self._graph.hop_ns(self._graph.node(item[0]), self._tasks[task].node)
                latest[number] = min(latest.get(number, starts_ns - hop_ns), starts_ns - hop_ns)
        return Result(name, tuple(Need(task, latest[task]) for task in sorted(latest)))


__all__ = ["Graph", "Key", "Recorded", "Replayed", "Seen", "key_of", "unpoliced"]
