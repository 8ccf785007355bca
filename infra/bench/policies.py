"""Cost of scheduling under each policy: microseconds per decision and per tuple, as ratios to `edf` in the same run.

100 000 tuples are queued, evenly over 10, 1000 or 10 000 task units. Each unit's results go to the next unit's queue,
the last one's to the first one's, so as many stay queued. Nothing but the engine is timed; operators do nothing and
time is counted, not read.

decision   the call that ends an instance and chooses the next one, per decision
tuple      that, and inserting what the instance gave, per tuple; batches share their decision
"""

import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from time import perf_counter_ns
from typing import NamedTuple

from rich.table import Table

from infra.bench.engine.floor import no_operation
from infra.bench.engine.instance_cost import NoCommands, circle_plan, ring_facts
from infra.bench.figures import Figure
from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import Job
from node_agent.core.policies import POLICIES, policy

NAMED = "policy."  # how the figures' names begin
UNITS = (10, 1000, 10_000)
TUPLES = 100_000
REFERENCE = "edf"
ROUNDS = 15
ROUND_TUPLES = 1500  # of one round, at least
ROUND_NS = 20_000_000  # after which a round is over
COST_NS = 1000  # of a tuple, on the engine's clock
GAP_NS = 1000  # between admissions
FAR_NS = 10**15  # end-to-end deadline: nothing is shed


class Decision(NamedTuple):
    """Of one round, in ns."""

    decision: float
    tuple: float


@cache
def lineages() -> list[Lineage]:
    """Of the tuples that are queued."""
    return [(1, 1, number, 0, number * GAP_NS, number * GAP_NS) for number in range(TUPLES)]


class Queued:
    """An engine with all tuples queued, which goes on from round to round."""

    def __init__(self, name: str, units: int) -> None:
        circle = circle_plan(units)
        plan = replace(
            circle,
            streams=tuple(replace(stream, deadline_ns=FAR_NS) for stream in circle.streams),
            units=tuple(replace(unit, deadline_ns=FAR_NS) for unit in circle.units),
        )
        self._engine = engine = Engine(policy(name), ring_facts(), NoCommands())
        loaded = engine.load(plan, dict.fromkeys((unit.id for unit in plan.units), (no_operation, True)))
        for number, lineage in enumerate(lineages()):
            engine.release(number * GAP_NS, loaded.units[number % units], lineage, None)
        self._now_ns = TUPLES * GAP_NS
        self._job: Job | None = engine.next(self._now_ns)

    def round(self) -> Decision:
        """Some instances."""
        engine, now_ns, job = self._engine, self._now_ns, self._job
        tuples = decisions = deciding_ns = inserting_ns = 0
        while tuples < ROUND_TUPLES and deciding_ns + inserting_ns < ROUND_NS:
            assert job is not None
            exit_ = job.unit.last_step.exit
            assert exit_ is not None
            jobs = engine.jobs
            start_ns = now_ns
            now_ns += COST_NS * len(jobs)
            began = perf_counter_ns()
            for slot, each in enumerate(jobs):
                engine.emit(now_ns, exit_, each.lineage, None, slot)
            inserted = perf_counter_ns()
            job = engine.step(start_ns, now_ns)
            deciding_ns += perf_counter_ns() - inserted
            inserting_ns += inserted - began
            tuples += len(jobs)
            decisions += engine.decided
        self._now_ns, self._job = now_ns, job
        return Decision(deciding_ns / max(1, decisions), (deciding_ns + inserting_ns) / tuples)


class Cost(NamedTuple):
    """Of a policy: the least ns of its rounds, and the ratio to the least of the rounds of `edf` in between."""

    name: str
    units: int
    time: Decision
    ratio: Decision


def costs(units: int, names: Iterable[str]) -> Iterator[Cost]:
    """Policy by policy, in rounds that alternate with `edf`. The least counts: what else runs only adds."""
    floor = Queued(REFERENCE, units)
    for name in names:
        queued = Queued(name, units)
        gc.collect()
        gc.disable()
        try:
            rounds = [(floor.round(), queued.round()) for _ in range(ROUNDS)]
        finally:
            gc.enable()
        edf, own = (Decision(*(min(each) for each in zip(*side, strict=True))) for side in zip(*rounds, strict=True))
        yield Cost(name, units, own, Decision(own.decision / edf.decision, own.tuple / edf.tuple))


def policies() -> list[Figure]:
    """For each policy and number of units: us per decision and per tuple, and their ratios to `edf`."""
    made = []
    for units in UNITS:
        for cost in costs(units, POLICIES):
            how = f"{units} units, {TUPLES} tuples queued; least of {ROUNDS} rounds that alternate with {REFERENCE}"
            for what in Decision._fields:
                name = f"{NAMED}{cost.name}.{units}.{what}"
                made += [
                    Figure(f"{name}_us", getattr(cost.time, what) / 1000, f"us per {what}", None, how),
                    Figure(name, getattr(cost.ratio, what), f"x {REFERENCE}", None, how),
                ]
    return made


def table(figures: list[Figure], prefix: str = "") -> Table:
    """Of the figures of `policies` whose names begin so: a row per policy."""
    values = {each.name: each.value for each in figures}
    made = Table(
        "us, and x edf", box=None, header_style="bold", title=f"{TUPLES} tuples queued{', compiled' if prefix else ''}"
    )
    for units in UNITS:
        for what in Decision._fields:
            made.add_column(f"{what}, {units} units", justify="right")
    for name in POLICIES:
        cells = [f"{prefix}{NAMED}{name}.{units}.{what}" for units in UNITS for what in Decision._fields]
        if cells[0] not in values:
            continue
        made.add_row(name, *(f"{values[f'{cell}_us']:.2f}  {values[cell]:.2f}x" for cell in cells))
    return made


def main() -> int:
    """Only these figures."""
    from rich.console import Console

    Console().print(table(policies()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
