"""Engine cost per task instance: no-op operators, packed trace, 21 units in a ring of streams, 100 tuples in flight."""

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from infra.bench.engine.floor import IN_FLIGHT, RING_RECORDS, no_operation
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import Facts, Stretch
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.policies import policy
from protos.records import RECORD_BYTES

UNITS = 21


class NoCommands:
    """Nothing leaves the node."""

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Unused: no stream crosses nodes."""
        raise AssertionError

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """Unused: there is no output."""
        raise AssertionError


def circle_plan(units: int = UNITS) -> plans.Plan:
    """Operator i feeds operator i+1, the last one the first: a tuple never leaves, so any number of instances runs."""
    streams = tuple(plans.Stream(i, f"s{i}", "json", deadline_ns=300_000_000) for i in range(1, units + 1))
    operators = tuple(
        plans.Operator(i, f"O{i}", "pass", (i - 1 or units,), i, 1, sub_deadline_ns=1_000_000 * i)
        for i in range(1, units + 1)
    )
    return plans.Plan(
        query="circle", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=streams, sources=(plans.Source(1, "in", 1),), operators=operators,
        units=tuple(plans.Unit(o.id, (o.id,), o.sub_deadline_ns, 300_000_000, (o.output,)) for o in operators),
    )  # fmt: skip


def ring_facts() -> Facts:
    """Facts that wrap around a buffer without a reader."""
    size = RING_RECORDS * RECORD_BYTES

    def wrap() -> Stretch:
        return 0, size

    return Facts(bytearray(size), wrap)


def loaded_engine(
    policy_name: str, units: int = UNITS, facts: Facts | None = None, in_flight: int = IN_FLIGHT
) -> Engine:
    """An engine with the circle and so many tuples in it."""
    engine = Engine(policy(policy_name), facts or ring_facts(), NoCommands())
    loaded = engine.load(circle_plan(units), dict.fromkeys(range(1, units + 1), (no_operation, True)))
    for seq in range(in_flight):
        engine.admit(seq, loaded.source_routes[1], (1, 1, seq, 0, seq, seq), None, 0)
    return engine


def engine_ns(
    instances: int, policy_name: str = "edf", units: int = UNITS, in_flight: int = IN_FLIGHT,
    clock: Callable[[], int] = monotonic_ns,
) -> float:  # fmt: skip
    """Nanoseconds per task instance of the engine: dispatch, operator, emit, fact; two clock reads, as in the floor.

    clock: what is counted."""
    engine = loaded_engine(policy_name, units, in_flight=in_flight)
    emit, step = engine.emit, engine.step
    job = engine.next(monotonic_ns())
    began = clock()
    for _ in range(instances):
        assert job is not None
        last = job.unit.last_step
        exit_ = last.exit
        assert exit_ is not None
        start = monotonic_ns()
        result = last.call(job.payload)
        end = monotonic_ns()
        emit(end, exit_, job.lineage, result)
        job = step(start, end)
    return (clock() - began) / instances
