"""A node in virtual time that runs a graph of units, one operator each, with results that several of them take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job
from node_agent.core.policies import Policy
from protos import records

ALWAYS_NS = 1 << 62
FIRST = 100  # the stream of operator 1 is 101; sources are below


@dataclass(frozen=True)
class Box:
    """An operator, alone in its unit. outputs: deadlines of the outputs that deliver its result; 0 costs nothing."""

    inputs: tuple[int, ...]
    cost_ns: int
    outputs: tuple[int, ...] = ()
    sub_ns: int = 5
    join: bool = False
    sides: tuple[int, ...] = ()
    service: tuple[plans.Service, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Operators from 1 on, each after those that it reads."""

    boxes: tuple[Box, ...]

    def takers(self, number: int) -> list[int]:
        """Operators that the result of one triggers."""
        return [i for i, box in enumerate(self.boxes, 1) if FIRST + number in box.inputs]

    def reached(self, number: int) -> list[int]:
        """Operators that it leads to, itself among them."""
        found = [number]
        for each in found:
            found += [taker for taker in self.takers(each) if taker not in found]
        return found

    def due(self, number: int) -> list[int]:
        """Deadlines of all outputs that it leads to."""
        return [each for reached in self.reached(number) for each in self.boxes[reached - 1].outputs]

    def read_beside(self, number: int) -> bool:
        """Whether something that has no deadline waits for its result: a side input."""
        return any(FIRST + number in box.sides for box in self.boxes)

    def worth_ns(self, number: int) -> int:
        """How long after its origin a tuple is worth running there."""
        if any(self.read_beside(each) or not self.due(each) for each in self.reached(number)):
            return ALWAYS_NS
        return max(self.due(number))

    def room_ns(self, number: int) -> int:
        """How long after its origin a tuple may start there and still meet one output, all work on the way counted."""
        box = self.boxes[number - 1]
        rooms = [*box.outputs, *(self.room_ns(each) for each in self.takers(number))]
        return max([*rooms, ALWAYS_NS] if self.read_beside(number) else rooms, default=0) - box.cost_ns

    def plan(self) -> plans.Plan:
        """As a local plan; unit and operator have one number."""
        sources = sorted({each for box in self.boxes for each in (*box.inputs, *box.sides) if each < FIRST})
        streams = [plans.Stream(each, f"s{each}", "any") for each in sources]
        operators, units, outputs = [], [], []
        for i, box in enumerate(self.boxes, 1):
            due, stream = self.due(i) or [0], FIRST + i
            last_ns = max(due) if max(due) != min(due) else 0
            streams.append(plans.Stream(stream, f"O{i}", "any", deadline_ns=min(due), last_deadline_ns=last_ns))
            sides = tuple((f"p{each}", each) for each in box.sides)
            operators.append(plans.Operator(i, f"O{i}", "pass", box.inputs, stream, box.cost_ns, sides=sides,
                                            join=box.join))  # fmt: skip
            units.append(plans.Unit(i, (i,), box.sub_ns, min(due), (stream,), box.service, last_deadline_ns=last_ns))
            outputs += [(stream, deadline_ns) for deadline_ns in box.outputs]
        return plans.Plan(
            query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1, streams=tuple(streams),
            sources=tuple(plans.Source(each, f"s{each}", each) for each in sources), operators=tuple(operators),
            units=tuple(units),
            outputs=tuple(plans.Output(i, f"out{i}", *each) for i, each in enumerate(outputs, 1)),
        )  # fmt: skip


@dataclass
class Play:
    """Runs tuples through the graph. make: (unit, value) -> its result; passes: (unit, seq) -> whether there is one;
    takes_ns: (unit, seq) -> what it costs, None: as declared; results: (output, seq, instant)."""

    graph: Graph
    policy: Policy
    make: Callable[[int, Any], Any] = lambda _, payload: payload
    passes: Callable[[int, int], bool] = lambda _, seq: True
    takes_ns: Callable[[int, int], int] | None = None
    facts: MemoryFacts = field(default_factory=MemoryFacts)
    ran: list[tuple[int, int]] = field(default_factory=list)  # (unit, seq)
    results: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine(self.policy, self.facts, self)
        calls: Mapping[int, Any] = dict.fromkeys(range(1, len(self.graph.boxes) + 1), (id, True))
        self.loaded = self.engine.load(self.graph.plan(), calls)

    def send(self, *_: Any) -> None:
        """Nothing leaves."""
        raise AssertionError

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result."""
        self.results.append((output.id, lineage[2], at_ns))

    def admit(
        self, source: int, seq: int, at_ns: int, origin: tuple[int, int] | None = None, value: Any = None
    ) -> None:
        """A tuple, with the interval that holds its origin."""
        lineage = (source, 1, seq, 0, *(origin or (at_ns, at_ns)))
        self.engine.admit(at_ns, self.loaded.source_routes[source], lineage, value, 0)

    def go(self, at_ns: int, arrivals: Sequence[tuple[int, int, int, tuple[int, int]]] = ()) -> "Play":
        """Run until nothing is left. arrivals: (instant, source, seq, origin), later than at_ns."""
        pending = sorted(arrivals, reverse=True)
        job = self.engine.next(at_ns)
        while job is not None or pending:
            if job is None:
                at_ns = self._arrive(pending, max(at_ns, pending[-1][0]))
                job = self.engine.next(at_ns)
                continue
            jobs: list[Job] = list(self.engine.jobs)
            start_ns = at_ns
            at_ns += sum(self._cost_ns(each) for each in jobs)
            self._arrive(pending, at_ns)
            for slot, each in enumerate(jobs):
                self.ran.append((each.unit.id, each.lineage[2]))
                if self.passes(*self.ran[-1]):
                    made = self.make(each.unit.id, each.payload)
                    self.engine.emit(at_ns, each.unit.exits[0], each.lineage, made, slot)
            del jobs, each, job
            job = self.engine.step(start_ns, at_ns)
        return self

    def _cost_ns(self, job: Job) -> int:
        declared_ns = self.graph.boxes[job.unit.id - 1].cost_ns
        return declared_ns if self.takes_ns is None else self.takes_ns(job.unit.id, job.lineage[2])

    def _arrive(self, pending: list[tuple[int, int, int, tuple[int, int]]], until_ns: int) -> int:
        while pending and pending[-1][0] <= until_ns:
            at_ns, source, seq, origin = pending.pop()
            self.admit(source, seq, at_ns, origin)
        return until_ns

    @property
    def shed(self) -> list[tuple[int, int]]:
        """(unit, seq) of what was dropped as late."""
        found = records.unpack_records(self.facts.data())
        return [(each.ref, each.seq) for each in found if isinstance(each, records.Shed)]

    @property
    def deadlines(self) -> list[tuple[int, int, int]]:
        """(unit, seq, deadline) of every instance, as recorded."""
        found = records.unpack_records(self.facts.data())
        return [(each.unit, each.seq, each.due_ns) for each in found if isinstance(each, records.Ran)]
