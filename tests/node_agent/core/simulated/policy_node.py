"""A node in virtual time, as small as can be: independent units, one source each; for tests of policies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job
from node_agent.core.policies import Policy


@dataclass(frozen=True)
class Shape:
    """A unit: its sub-deadline, end-to-end deadline and declared cost."""

    sub_ns: int
    deadline_ns: int
    cost_ns: int
    service: tuple[plans.Service, ...] = ()
    arrivals: tuple[plans.Arrivals, ...] = ()


@dataclass(frozen=True)
class Arrival:
    """Unit from 1, instant, what it costs really, how old it is."""

    unit: int
    at_ns: int
    cost_ns: int
    age_ns: int = 0


@dataclass
class Started:
    """An instance. ready: the jobs that were queued when it was chosen, its own included, by arrival number."""

    unit: int
    jobs: list[int]
    chosen_ns: int
    start_ns: int
    end_ns: int
    decided: bool
    ready: dict[int, Job] = field(default_factory=dict)


def plan_of(shapes: Sequence[Shape]) -> plans.Plan:
    """Source i -> unit i -> output i."""
    count = len(shapes)
    return plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json") for i in range(1, 2 * count + 1)),
        sources=tuple(plans.Source(i, f"in{i}", i) for i in range(1, count + 1)),
        operators=tuple(
            plans.Operator(i, f"O{i}", "pass", (i,), count + i, shape.cost_ns) for i, shape in enumerate(shapes, 1)
        ),
        units=tuple(
            plans.Unit(i, (i,), shape.sub_ns, shape.deadline_ns, (count + i,), shape.service, shape.arrivals)
            for i, shape in enumerate(shapes, 1)
        ),
        outputs=tuple(
            plans.Output(i, f"out{i}", count + i, shape.deadline_ns) for i, shape in enumerate(shapes, 1)
        ),
    )  # fmt: skip


class Node:
    """Runs arrivals through an engine; every decision costs `decision_ns`. `watch` is called at every choice."""

    def __init__(self, shapes: Sequence[Shape], policy: Policy, decision_ns: int = 0) -> None:
        self.facts = MemoryFacts()
        self.engine = Engine(policy, self.facts, self)
        calls: dict[int, tuple[Callable[..., Any], bool]] = dict.fromkeys(range(1, len(shapes) + 1), (id, True))
        self.loaded = self.engine.load(plan_of(shapes), calls)
        self.decision_ns = decision_ns
        self.delivered: list[tuple[int, int, int]] = []  # (unit, number, instant)
        self.started: list[Started] = []
        self.costs: dict[tuple[int, int], int] = {}

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Nothing leaves."""
        raise AssertionError

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result."""
        self.delivered.append((output.id, lineage[2], at_ns))

    def run(self, arrivals: Sequence[Arrival]) -> "Node":
        """All of them, in order of time; then until nothing is left."""
        pending = sorted(enumerate(arrivals, 1), key=lambda each: (each[1].at_ns, each[0]), reverse=True)
        now_ns = 0
        job: Job | None = None
        while pending or job is not None:
            if job is None:
                now_ns = max(now_ns, pending[-1][1].at_ns)
                self._admit(pending, now_ns)
                before = self._ready()
                job = self.engine.next(now_ns)
                if job is None:
                    continue
            else:
                before = self._ready()
                now_ns = self.started[-1].end_ns
                self._admit(pending, now_ns)
                before |= self._ready()
                last = self.started[-1]
                for slot, each in enumerate(self.engine.jobs):
                    self.engine.emit(now_ns, job.unit.exits[0], each.lineage, None, slot)
                job = self.engine.step(last.start_ns, now_ns)
            if job is not None:
                self._start(job, now_ns, before)
        return self

    def _admit(self, pending: list[tuple[int, Arrival]], until_ns: int) -> None:
        while pending and pending[-1][1].at_ns <= until_ns:
            number, each = pending.pop()
            self.costs[each.unit, number] = each.cost_ns
            origin_ns = each.at_ns - each.age_ns
            lineage = (each.unit, 1, number, 0, origin_ns, origin_ns)
            self.engine.admit(each.at_ns, self.loaded.source_routes[each.unit], lineage, None, 0)

    def _ready(self) -> dict[int, Job]:
        return {job.number: job for unit in self.loaded.units for job in unit.queue}

    def _start(self, job: Job, at_ns: int, ready: dict[int, Job]) -> None:
        engine = self.engine
        jobs = engine.jobs
        free = engine.policy.name == "ideal" or not engine.decided  # whose decisions cost nothing
        start_ns = at_ns + (0 if free else self.decision_ns)
        cost_ns = sum(self.costs[each.unit.id, each.lineage[2]] for each in jobs)
        numbers = [each.lineage[2] for each in jobs]
        self.started.append(Started(job.unit.id, numbers, at_ns, start_ns, start_ns + cost_ns, engine.decided, ready))

    @property
    def order(self) -> list[tuple[int, list[int]]]:
        """(unit, tuples) of every instance."""
        return [(each.unit, each.jobs) for each in self.started]
