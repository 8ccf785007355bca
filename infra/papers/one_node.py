"""One node in virtual time: the agents' engine and policies on a list of arrivals, no operators' code, no trace.

The papers' experiments have 10^6 tuples and a unit per query. The virtual cluster would run them as well, with a plan,
payloads and records; this driver keeps the order of its events (arrivals of an instant are in before a choice, a
decision takes its time, then the instance) and counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from infra.papers.policies.ideal import IDEAL
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job, Unit
from node_agent.core.plan import Arrivals, Parameters, Service
from node_agent.core.policies.policy_parts import Policy

RECORDS = bytearray(64 * 1024)


@dataclass(frozen=True)
class Query:
    """A unit. cost_ns: as declared, the worst or the mean; service: none: the deadline is a delay bound."""

    deadline_ns: int
    cost_ns: int
    service: tuple[Service, ...] = ()
    arrivals: tuple[Arrivals, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Tuples in the order of their arrival: instant, query, CPU time, instant at which it is due.

    group: tuples of one number have a branch in common ([Q] 4.2): the first that runs pays shared_ns and leaves the
    result for the others; -1: none.
    """

    queries: Sequence[Query]
    at_ns: Sequence[int]
    query: Sequence[int]
    cost_ns: Sequence[int]
    due_ns: Sequence[int]
    group: Sequence[int] = ()
    shared_ns: int = 0
    origin_ns: Sequence[int] = ()  # where tuples are older than their arrival at the node


@dataclass
class Outcome:
    """met: 1 for each tuple that ended in time, in the workload's order. late: tuples of each query that ended late or
    were shed. largest: most tuples of one decision. k: of a controller, at the end; grown: how often it raised it."""

    arrived: list[int]
    met: bytearray
    late: list[int] = field(default_factory=list)
    shed: int = 0
    decisions: int = 0
    largest: int = 0
    overhead_ns: int = 0
    busy_ns: int = 0
    ended_ns: int = 0
    grown: int = 0
    k: int = 0

    @property
    def missed(self) -> float:
        """Share of all tuples that ended late or were shed, %."""
        return 100 * (len(self.met) - sum(self.met)) / max(1, len(self.met))

    @property
    def mean_batch(self) -> float:
        """Tuples per decision."""
        return (len(self.met) - self.shed) / max(1, self.decisions)


class _Nowhere:
    """Results go nowhere: no operator's code runs, so there are none."""

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        raise AssertionError("one node sends nothing")

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        raise AssertionError("nothing is emitted")


def _pass(payload: Any) -> Any:
    return payload


def local_plan(queries: Sequence[Query], policy: Policy, parameters: Parameters) -> plans.Plan:
    """A unit of one operator per query."""
    ids = range(1, len(queries) + 1)
    return plans.Plan(
        query="papers", node="a", index=0, hash=1, epoch=1, policy=policy.name, largest_batch=1, parameters=parameters,
        streams=tuple(plans.Stream(each, f"s{each}", "json") for each in range(1, 2 * len(queries) + 1)),
        operators=tuple(
            plans.Operator(each, f"o{each}", "pass", (each,), len(queries) + each, query.cost_ns, query.deadline_ns)
            for each, query in zip(ids, queries, strict=True)
        ),
        units=tuple(
            plans.Unit(
                each, (each,), query.deadline_ns, query.deadline_ns, (len(queries) + each,), query.service,
                query.arrivals,
            )
            for each, query in zip(ids, queries, strict=True)
        ),
        outputs=tuple(
            plans.Output(each, f"r{each}", len(queries) + each, query.deadline_ns)
            for each, query in zip(ids, queries, strict=True)
        ),
    )  # fmt: skip


def _node(policy: Policy, workload: Workload) -> tuple[Engine, list[tuple[int, Unit, int]]]:
    """The engine with a unit per query, and the arrivals: instant, unit, number of the tuple."""
    engine = Engine(policy, Facts(RECORDS, lambda: (0, len(RECORDS))), _Nowhere(), Settings(limit_jobs=1 << 62))
    plan = local_plan(workload.queries, policy, policy.parameters)
    loaded = engine.load(plan, {operator.id: (_pass, True) for operator in plan.operators})
    units = {unit.id: unit for unit in loaded.units}
    of = zip(workload.at_ns, workload.query, strict=True)
    return engine, [(at_ns, units[query + 1], i) for i, (at_ns, query) in enumerate(of)]


def _work(workload: Workload) -> Callable[[Sequence[int]], int]:
    """The CPU time of an instance's tuples; of tuples with a branch in common the first one pays for it."""
    cost_ns, group, shared_ns = workload.cost_ns, workload.group, workload.shared_ns
    taken: set[int] = set()

    def together(batch: Sequence[int]) -> int:
        total_ns = 0
        for i in batch:
            total_ns += cost_ns[i]
            if group[i] in taken:
                total_ns -= shared_ns
            elif group[i] >= 0:
                taken.add(group[i])
        return total_ns

    return together if group else lambda batch: sum([cost_ns[i] for i in batch])


def run(policy: Policy, workload: Workload, decision_ns: int = 0) -> Outcome:
    """All tuples, until the last one has ended. The tuples of a batch end with it, as on the agents."""
    engine, arrivals = _node(policy, workload)
    work, due_ns, of, origin = _work(workload), workload.due_ns, workload.query, workload.origin_ns
    counts = Counter(of)
    done = Outcome([counts[query] for query in range(len(workload.queries))], bytearray(len(of)))
    decision = 0 if policy.name == IDEAL.name else decision_ns
    release, step, position, count, now, ran, together = engine.release, engine.step, 0, len(arrivals), 0, 0, 0
    start, met = 0, done.met
    job: Job | None = None
    while True:
        while position < count and arrivals[position][0] <= now:
            at, unit, i = arrivals[position]
            position += 1
            born = origin[i] if origin else at
            release(at, unit, (unit.id, 1, i, 0, born, born), i)
        job = engine.next(now) if job is None else step(start, now)
        if job is None:
            if position == count:
                break
            now = max(now, arrivals[position][0])
            continue
        start = now
        if engine.decided:
            start += decision
            done.decisions += 1
            together = 0
        batch = cast("list[int]", [each.payload for each in engine.jobs])  # as released above
        now = start + work(batch)
        done.busy_ns += now - start
        ran += len(batch)
        together += len(batch)
        done.largest = max(done.largest, together)
        for i in batch:
            met[i] = now <= due_ns[i]
    late = Counter(query for query, in_time in zip(of, met, strict=True) if not in_time)
    done.late = [late[query] for query in range(len(workload.queries))]
    done.overhead_ns, done.ended_ns, done.shed = decision * done.decisions, now, count - ran
    done.grown, done.k = getattr(engine.ready.tuner, "grown", 0), getattr(engine.ready.tuner, "k", 0)
    return done
