"""A node whose operators take time on a clock of its own: admission, choice and operators as on a live node."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infra.papers.policies import policy
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job
from node_agent.runtime.executor import Executor
from protos import records as rec
from tests.traces import Kind, of

EVERY_POLICY = (
    "edf", "edf-e2e", "edf-op", "fifo", "taat", "bts", "bts1", "ats1", "adaptive", "slack", "ideal", "muf", "spt", "rr",
    "qed", "pqed", "edf, in batches",
)  # fmt: skip
BATCHED = ", in batches"
DEADLINE_NS = 400


@dataclass(frozen=True)
class Arrival:
    """source, instant, age, payload."""

    source: int
    at_ns: int
    age_ns: int = 0
    payload: Any = 0


def plan_of(**changes: Any) -> plans.Plan:
    """in1 -> [O1, O2] -> O4 -> out1; in1 -> O3 -> out2; in2 -> O5 -> out3. Streams 11 to 15 are the operators'."""
    streams = [plans.Stream(i, f"s{i}", "json", deadline_ns=DEADLINE_NS) for i in (1, 2, 11, 12, 13, 14, 15)]
    inputs = {1: 1, 2: 11, 3: 1, 4: 12, 5: 2}
    chains = {1: (1, 2), 2: (3,), 3: (4,), 4: (5,)}
    exits = {1: (12,), 2: (13,), 3: (14,), 4: (15,)}
    sub_ns = {1: 60, 2: 100, 3: 40, 4: 80}
    made = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=0, streams=tuple(streams),
        sources=(plans.Source(1, "in1", 1), plans.Source(2, "in2", 2)),
        operators=tuple(plans.Operator(i, f"O{i}", "pass", (source,), 10 + i, 5) for i, source in inputs.items()),
        units=tuple(plans.Unit(i, chains[i], sub_ns[i], DEADLINE_NS, exits[i]) for i in chains),
        outputs=tuple(plans.Output(i, f"out{i}", stream, DEADLINE_NS) for i, stream in ((1, 14), (2, 13), (3, 15))),
    )  # fmt: skip
    return replace(made, **changes)


def with_operators(made: plans.Plan, **changes: Any) -> plans.Plan:
    """O1=Late(...) and the like."""
    operators = (replace(each, late=changes.get(each.name)) for each in made.operators)
    return replace(made, operators=tuple(operators))


class Node:
    """full: whether the node's memory is, asked with this node. Every operator passes on what it gets, unless `calls`
    says otherwise."""

    def __init__(
        self, plan: plans.Plan, name: str = "edf", cost_ns: Callable[[int], int] = lambda _: 10,
        full: Callable[["Node"], bool] | None = None, calls: Mapping[int, Callable[[Any], Any]] | None = None,
    ) -> None:  # fmt: skip
        self.now_ns, self.plan = 0, plan
        self.facts = MemoryFacts()
        batch = 0 if name.endswith(BATCHED) else 1
        settings = Settings(memory_full=lambda: full is not None and full(self))
        self.engine = Engine(policy(name.removesuffix(BATCHED), batch, plan.parameters), self.facts, self, settings)
        self._cost_ns, self._calls = cost_ns, calls or {}
        self.loaded = self.load(plan)
        self.executor = Executor(self.engine, lambda: self.now_ns)
        self.executor.drain, self.executor.due_ns = self._drain, 0
        self.pending: list[tuple[int, Arrival]] = []
        self.watch: Callable[[], None] = lambda: None  # after every arrival
        self.delivered: list[tuple[int, int, Any]] = []

    def load(self, plan: plans.Plan) -> CompiledPlan:
        """Beside what runs."""
        calls: dict[int, tuple[Callable[..., Any], bool]] = {}
        for operator in plan.operators:
            calls[operator.id] = (self._call(operator.id), True)
            if operator.late is not None and operator.late.run:
                calls[-operator.id] = (self._call(-operator.id), True)
        loaded = self.engine.load(plan, calls)
        for step in loaded.steps:
            if step.late is not None:
                step.late.now = lambda: self.now_ns
        return loaded

    def _call(self, number: int) -> Callable[[Any], Any]:
        made = self._calls.get(number, lambda payload: payload)

        def call(payload: Any) -> Any:
            self.now_ns += self._cost_ns(number)
            return made(payload)

        return call

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Nothing leaves."""
        raise AssertionError

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result."""
        self.delivered.append((output.id, lineage[2], payload))

    def run(self, arrivals: Sequence[Arrival]) -> "Node":
        """All of them; then until nothing is left."""
        first = len(self.pending) + 1
        self.pending = sorted(enumerate(arrivals, first), key=lambda each: (each[1].at_ns, each[0]), reverse=True)
        while True:
            job: Job | None = self.engine.next(self.now_ns)
            while job is not None:
                job = self.executor.run(job)
            if self.engine.most_urgent() is not None:
                continue
            if not self.pending:
                return self
            self.now_ns = max(self.now_ns, self.pending[-1][1].at_ns)
            self._drain(self.now_ns)

    def _drain(self, at_ns: int) -> None:
        while self.pending and self.pending[-1][1].at_ns <= at_ns:
            number, each = self.pending.pop()
            self.admit(at_ns, number, each)

    def admit(self, at_ns: int, number: int, each: Arrival) -> None:
        """One tuple; its number is its sequence number."""
        origin_ns = each.at_ns - each.age_ns
        lineage = (each.source, 1, number, 0, origin_ns, origin_ns)
        self.engine.admit(at_ns, self.loaded.source_routes[each.source], lineage, each.payload, 0)
        self.watch()

    @property
    def jobs(self) -> int:
        """Queued."""
        return self.engine.queued

    @property
    def records(self) -> list[rec.Record]:
        """All facts so far."""
        return list(rec.unpack_records(bytes(self.facts.buffer[: self.facts.position])))

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Facts of a kind."""
        return of(kind, self.records)

    def shed(self, *policies: int) -> list[rec.Shed]:
        """SHED facts of these policies, or of all."""
        return [each for each in self.of(rec.Shed) if not policies or each.policy in policies]


def conserved(node: Node) -> None:
    """Every tuple ends once at each of its consumers: it runs, is shed, or is lost there, and its results go on."""
    plan, records = node.plan, node.records
    consumers = {stream.id: _units(plan, stream.id) for stream in plan.streams}
    due: Counter[tuple[int, tuple[int, int]]] = Counter()  # unit, lineage: ends that are owed
    made: Counter[tuple[int, tuple[int, int]]] = Counter()
    results: Counter[tuple[int, tuple[int, int]]] = Counter()
    outputs: Counter[tuple[int, tuple[int, int]]] = Counter()
    stream_of = {source.id: source.stream for source in plan.sources}
    units = {unit.id: unit for unit in plan.units}
    nothing: Counter[tuple[int, tuple[int, int]]] = Counter()  # results shed within units, as the units' records say
    for each in records:
        key = (each.source, each.seq)
        if isinstance(each, rec.Admitted):
            due.update((unit, key) for unit in consumers[stream_of[each.source]])
        elif isinstance(each, rec.Ran):
            nothing[each.unit, key] += each.policed_results
            counts = rec.per_exit(each.outputs, 4)
            for exit_, stream in enumerate(units[each.unit].exits):
                for unit in consumers[stream]:
                    due[unit, key] += counts[exit_]
                outputs[stream, key] += counts[exit_]
            if not each.unfinished:
                made[each.unit, key] += 1
        elif isinstance(each, (rec.Shed, rec.Lost)):
            if each.of_arrival:
                made.update((unit, key) for unit in consumers[each.stream])
            elif isinstance(each, rec.Shed) and each.operator:
                nothing[each.unit, key] -= 1
            else:
                made[each.unit, key] += 1
        elif isinstance(each, rec.Output):
            results[next(one.stream for one in plan.outputs if one.id == each.output), key] += 1
    assert +due == +made
    assert not +nothing and not -nothing
    assert results == Counter({key: n for key, n in outputs.items() if n and _delivered(plan, key[0])})


def _units(plan: plans.Plan, stream: int) -> list[int]:
    return [unit.id for unit in plan.units if stream in plan.operator_by_id[unit.operators[0]].inputs]


def _delivered(plan: plans.Plan, stream: int) -> bool:
    return any(output.stream == stream for output in plan.outputs)


def counted(node: Node) -> None:
    """The engine's counts of what was shed are the facts'."""
    shed: Counter[int] = Counter(each.policy for each in node.shed())
    assert dict(shed) == {policy: n for policy, n in node.engine.ledger.shed_by.items() if n}


def survivors(node: Node, source: int, but: Iterable[int]) -> list[int]:
    """Instants of admission of what was not shed at the source by these policies."""
    gone = {each.seq for each in node.shed(*but) if each.ref == rec.NO_REF and each.source == source}
    return [each.at_ns for each in node.of(rec.Admitted) if each.source == source and each.seq not in gone]
