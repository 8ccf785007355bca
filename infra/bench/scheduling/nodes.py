"""One or two nodes in virtual time: the agents' engines on a scenario, no operators' code, no trace.

The order of events is the virtual cluster's: what comes at an instant is in before a choice, a decision takes its time,
an operator's results leave when it ends, those of a batch together. A batch keeps a node from looking at what comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from infra.bench.scheduling.scenarios import LINK_NS, Query, Scenario
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job, Unit
from node_agent.core.policies.policy_parts import Policy

RECORDS = bytearray(64 * 1024)
ARRIVED, ENDED, CHOOSE = range(3)  # events of one instant, in this order
RAISED_BY = 1_000_000  # no tuple waits longer for a partner


def _pass(payload: Any) -> Any:
    return payload


def local_plans(scenario: Scenario, policy: Policy) -> list[plans.Plan]:
    """A plan for each node. Sub-deadlines are in proportion to mean costs, less what links take."""
    nodes = 1 + max(each.node for query in scenario.queries for each in query.operators)
    return [_local(scenario, policy, node, nodes) for node in range(nodes)]


def _local(scenario: Scenario, policy: Policy, node: int, nodes: int) -> plans.Plan:
    streams: list[plans.Stream] = []
    sources, operators, units, outputs, sends = [], [], [], [], []
    for number, query in enumerate(scenario.queries):
        base = 1 + 100 * number  # streams: of the source, then what each operator gives
        due_ns = query.deadline_ns
        marked = any(each.joins for each in query.operators)
        streams += [
            plans.Stream(
                base + i, f"s{base + i}", "json", deadline_ns=due_ns, marked=marked and i < len(query.operators)
            )
            for i in range(len(query.operators) + 1)
        ]
        if query.operators[0].node == node:
            sources.append(plans.Source(number + 1, f"q{number}", base))
        for place, each in enumerate(query.operators):
            if each.node != node:
                continue
            reads = tuple(base + 1 + before for before in each.reads) or (base,)
            operators.append(
                plans.Operator(
                    base + place, f"o{base + place}", "pass", reads, base + 1 + place, each.mean_ns, join=each.joins
                )
            )
        hops = sum(query.operators[before].node != each.node for each in query.operators for before in each.reads)
        share = (due_ns - LINK_NS * hops) / _longest_ns(query)
        for path in _paths(query, node, scenario.whole):
            sub_ns = round(share * sum(query.operators[place].mean_ns for place in path))
            units.append(
                plans.Unit(
                    base + path[0], tuple(base + place for place in path), sub_ns, due_ns, _exits(query, path, base)
                )
            )
        for place, each in enumerate(query.operators):
            if each.node == node:
                after = {other.node for other in query.operators if place in other.reads} - {node}
                sends += [(base + 1 + place, other) for other in sorted(after)]
        if query.operators[-1].node == node:
            outputs.append(plans.Output(number + 1, f"q{number}", base + len(query.operators), due_ns))
    return plans.Plan(
        query="scenario", node=f"n{node}", index=node, hash=1, epoch=1, policy=policy.name, largest_batch=1,
        parameters=policy.parameters, streams=tuple(streams), sources=tuple(sources), operators=tuple(operators),
        units=tuple(units), outputs=tuple(outputs), sends=tuple(sends),
        peers=tuple(plans.Peer(other, f"n{other}", LINK_NS) for other in range(nodes) if other != node),
    )  # fmt: skip


def _longest_ns(query: Query) -> int:
    """Mean work of the longest path."""
    ends: list[int] = []
    for each in query.operators:
        ends.append(each.mean_ns + max((ends[before] for before in each.reads), default=0))
    return ends[-1]


def _followers(query: Query, place: int) -> list[int]:
    return [number for number, each in enumerate(query.operators) if place in each.reads]


def _paths(query: Query, node: int, whole: bool) -> list[list[int]]:
    """Task units on a node: operators one by one, or chains without forks and joins."""
    found: list[list[int]] = []
    for place, each in enumerate(query.operators):
        if each.node != node:
            continue
        before = each.reads[0] if len(each.reads) == 1 else None
        goes_on = whole and before is not None and found and len(_followers(query, before)) == 1
        path = next((path for path in found if path[-1] == before), None) if goes_on else None
        if path is None:
            found.append([place])
        else:
            path.append(place)
    return found


def _exits(query: Query, path: Sequence[int], base: int) -> tuple[int, ...]:
    return (base + 1 + path[-1],)


class Run:
    """A scenario under a policy. met: by query, the tuples whose result was in time. decisions: how many were taken."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self._scenario = scenario
        self._nodes = [_Node(self, policy, plan) for plan in local_plans(scenario, policy)]
        self._events: list[tuple[int, int, int, Any]] = []
        self._count = 0
        self.met: list[set[int]] = [set() for _ in scenario.queries]
        self.decisions = 0
        for number, query in enumerate(scenario.queries):
            for seq, at_ns in enumerate(query.at_ns):
                lineage = (number + 1, 1, seq, 0, at_ns, at_ns)
                self._push(at_ns, ARRIVED, (query.operators[0].node, None, number + 1, lineage))
        while self._events:
            at_ns, kind, _, what = heappop(self._events)
            if kind == ARRIVED:
                self._nodes[what[0]].arrive(at_ns, *what[1:])
            elif kind == ENDED:
                what.operator_ended(at_ns)
            else:
                what.choose(at_ns)

    @property
    def missed(self) -> float:
        """Share of the tuples without a result in time, %."""
        tuples = sum(len(query.at_ns) for query in self._scenario.queries)
        return 100 * (1 - sum(map(len, self.met)) / tuples)

    @property
    def missed_by_query(self) -> list[float]:
        """Of each query, %."""
        return [
            100 * (1 - len(met) / len(query.at_ns)) for met, query in zip(self.met, self._scenario.queries, strict=True)
        ]

    @property
    def decision_ns(self) -> int:
        """Of each decision."""
        return self._scenario.decision_ns

    def _push(self, at_ns: int, kind: int, what: Any) -> None:
        self._count += 1
        heappush(self._events, (at_ns, kind, self._count, what))

    def ends(self, at_ns: int, node: _Node) -> None:
        """An operator of that node ends then."""
        self._push(at_ns, ENDED, node)

    def chooses(self, at_ns: int, node: _Node) -> None:
        """That node is idle and something has come."""
        self._push(at_ns, CHOOSE, node)

    def send(self, at_ns: int, peer: int, stream: int, lineage: Lineage) -> None:
        """Over the link."""
        self._push(at_ns + LINK_NS, ARRIVED, (peer, stream, None, lineage))

    def deliver(self, at_ns: int, query: int, lineage: Lineage) -> None:
        """A result."""
        if at_ns <= lineage[4] + self._scenario.queries[query].deadline_ns:
            self.met[query].add(lineage[2])

    def cost_ns(self, operator: int, seq: int) -> int:
        """Of that tuple."""
        query, place = divmod(operator - 1, 100)
        return self._scenario.queries[query].costs_ns[place][seq]


class _Node:
    def __init__(self, run: Run, policy: Policy, plan: plans.Plan) -> None:
        self._run = run
        self._free = policy.name == "ideal"
        self.engine = Engine(policy, Facts(RECORDS, lambda: (0, len(RECORDS))), self, Settings(limit_jobs=1 << 62))
        self._loaded = self.engine.load(plan, {each.id: (_pass, True) for each in plan.operators})
        self._busy = False
        self._waits = False
        self._start_ns = self._step = 0
        self._late: list[tuple[int, Any, Any, Lineage]] = []  # came while a batch ran

    # commands of the engine

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        if payload is None:
            self._run.send(at_ns, peer, stream, lineage)

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        self._run.deliver(at_ns, output.id - 1, lineage)

    # events

    def arrive(self, at_ns: int, stream: int | None, source: int | None, lineage: Lineage) -> None:
        if self._busy and self.engine.batching:
            self._late.append((at_ns, stream, source, lineage))
            return
        self._admit(at_ns, stream, source, lineage)
        if not self._busy and not self._waits:
            self._waits = True
            self._run.chooses(at_ns, self)

    def _admit(self, at_ns: int, stream: int | None, source: int | None, lineage: Lineage) -> None:
        if source is not None:
            self.engine.admit(at_ns, self._loaded.source_routes[source], lineage, None, 0)
        else:
            assert stream is not None
            self.engine.receive(at_ns, self._loaded.routes[stream], lineage, None)

    def choose(self, at_ns: int) -> None:
        self._waits = False
        self._begin(at_ns, self.engine.next(at_ns))

    def _begin(self, at_ns: int, job: Job | None) -> None:
        self._busy = job is not None
        if job is None:
            return
        if self.engine.decided:
            self._run.decisions += 1
            if not self._free:
                at_ns += self._run.decision_ns
        self._start_ns, self._step = at_ns, 0
        self._run.ends(at_ns + self._work_ns(job.unit), self)

    def _work_ns(self, unit: Unit) -> int:
        operator = unit.chain[self._step].operator_id
        cost_ns = self._run.cost_ns
        return sum([cost_ns(operator, job.lineage[2]) for job in self.engine.jobs])

    def operator_ended(self, at_ns: int) -> None:
        engine = self.engine
        job = engine.job
        assert job is not None
        if self._late and self._step + 1 == len(job.unit.chain):
            for came in self._late:
                self._admit(*came)
            self._late = []
        exit_ = job.unit.chain[self._step].exit
        if exit_ is not None:
            for slot, each in enumerate(list(engine.jobs)):
                engine.emit(at_ns, exit_, each.lineage, None, slot)
        self._step += 1
        if self._step < len(job.unit.chain):
            self._run.ends(at_ns + self._work_ns(job.unit), self)
            return
        self._begin(at_ns, engine.step(self._start_ns, at_ns))
