"""Cost per task instance through the live runtime's own loop: ring, hang cell, exception guard, socket polls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.bench.engine.floor import IN_FLIGHT
from infra.bench.engine.instance_cost import UNITS
from node_agent.core import plan as plans
from node_agent.runtime.in_process import in_process, run_queued
from node_agent.runtime.loop import Runtime

MEMORY = Path("/dev/shm")


def chain_plan(units: int = UNITS) -> plans.Plan:
    """Units in a row, one operator each, as many as in the engine's circle; the last one's results go nowhere."""
    operators = tuple(
        plans.Operator(i, f"O{i}", "pass", (i,), i + 1, 1, sub_deadline_ns=1_000_000 * i) for i in range(1, units + 1)
    )
    return plans.Plan(
        query="chain", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json", deadline_ns=300_000_000) for i in range(1, units + 2)),
        sources=(plans.Source(1, "in", 1),), operators=operators,
        units=tuple(
            plans.Unit(o.id, (o.id,), o.sub_deadline_ns, 300_000_000, (o.output,) if o.id < units else ())
            for o in operators
        ),
    )  # fmt: skip


@contextmanager
def chained_runtime() -> Iterator[Runtime]:
    """A live runtime in this process, with the chain committed."""
    memory = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(dir=memory) as folder, in_process(chain_plan(), Path(folder)) as runtime:
        yield runtime


def runtime_ns(runtime: Runtime, rounds: int) -> float:
    """Nanoseconds per task instance; each round queues 100 tuples and runs them through all units."""
    ran = [run_queued(runtime, IN_FLIGHT) for _ in range(rounds)]
    return sum(ns for _, ns in ran) / sum(instances for instances, _ in ran)
