"""Cost of scheduling under each policy: CPU time per tuple, as a ratio to `edf` in the same run.

100 000 tuples are queued, evenly over 10, 1000 or 10 000 task units. Each unit's results go to the next unit's queue,
the last one's to the first one's, so as many stay queued. A tuple costs its share of a decision, which a batch makes
once, the end of its instance, and inserting what it gave. Operators do nothing, time is counted, not read, and what the
loop takes without the engine is subtracted.
"""

import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from statistics import median
from time import thread_time_ns
from typing import NamedTuple

from rich.table import Table

from infra.bench.engine.floor import no_operation
from infra.bench.engine.instance_cost import NoCommands, circle_plan, ring_facts
from infra.bench.figures import Figure
from node_agent.core import job_queues
from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import Job
from node_agent.core.policies import POLICIES, Policy, policy

NAMED = "policy."  # how the figures' names begin
UNITS = (10, 1000, 10_000)
TUPLES = 100_000
REFERENCE = "edf"
LARGEST = 8  # jobs of one instance, where a policy gets batches; each tuple is a burst of its own, the dearest case
MOST = 1.5  # times REFERENCE, where the engine is compiled: the goal
ROUNDS = 15
ROUND_TUPLES = 1500  # of one round, at least
COST_NS = 1000  # of a tuple, on the engine's clock
GAP_NS = 1000  # between admissions
FAR_NS = 10**15  # end-to-end deadline: nothing is shed


def cases() -> dict[str, Policy]:
    """All policies by name, and two of them in batches."""
    batched = {f"{name}:batch={LARGEST}": policy(name, LARGEST) for name in (REFERENCE, "slack")}
    return {**POLICIES, **batched}


@cache
def lineages() -> list[Lineage]:
    """Of the tuples that are queued."""
    return [(1, 1, number, 0, number * GAP_NS, number * GAP_NS) for number in range(TUPLES)]


class Queued:
    """An engine with all tuples queued, which goes on from round to round."""

    def __init__(self, chosen: Policy, units: int) -> None:
        circle = circle_plan(units)
        plan = replace(
            circle,
            streams=tuple(replace(stream, deadline_ns=FAR_NS) for stream in circle.streams),
            units=tuple(replace(unit, deadline_ns=FAR_NS) for unit in circle.units),
        )
        self._engine = engine = Engine(chosen, ring_facts(), NoCommands())
        loaded = engine.load(plan, dict.fromkeys((unit.id for unit in plan.units), (no_operation, True)))
        for number, lineage in enumerate(lineages()):
            engine.release(number * GAP_NS, loaded.units[number % units], lineage, None)
        self._now_ns = TUPLES * GAP_NS
        self._job: Job | None = engine.next(self._now_ns)

    def round(self) -> float:
        """Of some instances, CPU ns per tuple."""
        return self._loop(runs=True) - self._loop(runs=False)

    def _loop(self, runs: bool) -> float:
        """runs False: all but the engine."""
        engine, now_ns, job, tuples = self._engine, self._now_ns, self._job, 0
        emit, step = engine.emit, engine.step
        began_ns = thread_time_ns()
        while tuples < ROUND_TUPLES:
            assert job is not None
            exit_ = job.unit.last_step.exit
            assert exit_ is not None
            jobs = engine.jobs
            start_ns = now_ns
            now_ns += COST_NS * len(jobs)
            for slot, each in enumerate(jobs):
                lineage = each.lineage
                if runs:
                    emit(now_ns, exit_, lineage, None, slot)
            if runs:
                job = step(start_ns, now_ns)
            tuples += len(jobs)
        took_ns = thread_time_ns() - began_ns
        if runs:
            self._now_ns, self._job = now_ns, job
        return took_ns / tuples


class Cost(NamedTuple):
    """Of a policy: CPU ns per tuple, and the ratio to `edf`."""

    name: str
    units: int
    tuple_ns: float
    ratio: float


def costs(units: int, given: Iterable[tuple[str, Policy]]) -> Iterator[Cost]:
    """Policy by policy, in rounds that alternate with `edf`: the medians of the rounds and of their ratios. Each time
    both engines are new, since memory that was used for long is slower, and each begins as often as the other one."""
    for name, chosen in given:
        engines = [Queued(policy(REFERENCE), units), Queued(chosen, units)]
        gc.collect()
        gc.disable()
        try:
            rounds = [_both(engines, number % 2) for number in range(ROUNDS)]
        finally:
            gc.enable()
        yield Cost(name, units, median(own for _, own in rounds), median(own / edf for edf, own in rounds))


def _both(engines: list[Queued], first: int) -> tuple[float, float]:
    """A round of each, that one first."""
    took = [0.0, 0.0]
    for index in (first, 1 - first):
        took[index] = engines[index].round()
    return took[0], took[1]


def policies() -> list[Figure]:
    """For each policy and number of units: us per tuple, and the ratio to `edf`, which has a goal where the engine is
    compiled."""
    made = []
    goal = None if job_queues.__file__.endswith(".py") else MOST
    for units in UNITS:
        for cost in costs(units, cases().items()):
            how = f"CPU time; {units} units, {TUPLES} queued; median of {ROUNDS} rounds by turns with {REFERENCE}"
            name = f"{NAMED}{cost.name}.{units}"
            made += [
                Figure(f"{name}_us", cost.tuple_ns / 1000, "us per tuple", None, how),
                Figure(name, cost.ratio, f"x {REFERENCE}", goal, how),
            ]
    return made


def table(figures: list[Figure], prefix: str = "") -> Table:
    """Of the figures of `policies` whose names begin so: a row per policy."""
    found = {each.name: each for each in figures}
    goals = {each.goal for each in figures if each.name.startswith(prefix + NAMED) and each.goal is not None}
    asked = f"; goal <= {max(goals):g}x" if goals else ""
    made = Table(
        "CPU us per tuple, and x edf", box=None, header_style="bold",
        title=f"{TUPLES} tuples queued{', compiled' if prefix else ''}{asked}",
    )  # fmt: skip
    for units in UNITS:
        made.add_column(f"{units} units", justify="right")
    for name in cases():
        cells = [f"{prefix}{NAMED}{name}.{units}" for units in UNITS]
        if cells[0] not in found:
            continue
        made.add_row(name, *(_cell(found[f"{cell}_us"], found[cell]) for cell in cells))
    return made


def _cell(time: Figure, ratio: Figure) -> str:
    return f"{'' if ratio.ok else 'missed  '}{time.value:.2f}  {ratio.value:.2f}x"


def main() -> int:
    """Only these figures."""
    from rich.console import Console

    Console().print(table(policies()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
