"""`slack` against `edf` by workload, on the same trials: what each misses, and a confidence interval of the difference.

    .venv/bin/python -m infra.bench.shedding.overload [SEED] [NUMBER]

Some minutes. A sample is one seed: one trial of figure 7's query, or one generated query (two nodes, costs with
coefficient of variation 1). The load is that of the busiest node, by costs and periods, without scheduling. Seeds up to
8 were used to find `slack`; the default was not.
"""

from __future__ import annotations

import sys
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from coordinator.model.choices import Choices
from coordinator.solve import planner
from infra.bench.planner.instances import SHAPES, Recipe, write
from infra.papers.placement.collision_plans import MS, plan
from infra.papers.pool import spread
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.optimum.regret import regret
from node_agent.virtual.scenario import Scenario, VirtualPlan, virtual_plan
from protos.plan.arrivals import BurstArrival
from protos.plan_document import Plan

SEED, NUMBER = 1001, 16
JITTER = "lognormal:cv=1"
NODES, OPERATORS, BURSTS = 2, 10, 8
STATES = 2000  # of a search for the bound, which is not what is compared here
FIGURE7 = (15, 25, 28, 30)
# load, how many times larger bursts are, deadlines over those with which the work of a burst could just be done
LOADS = ((0.8, 1, 0.6), (1.0, 1, 0.6), (1.0, 4, 0.6), (1.1, 1, 1.2), (1.35, 1, 1.2), (1.6, 1, 1.2), (1.6, 4, 1.2))
NORMAL_95 = 1.96


class Sample(NamedTuple):
    """Missed, %: bound, best schedule found, `edf`, `slack`."""

    bound: float
    found: float
    edf: float
    slack: float


def figure7(n: int, seed: int) -> Sample:
    """One trial at n V2V tuples, planned for 15, counted over out1 and out2."""
    scenario = Scenario(
        seed=seed, jitter=parse_jitter(JITTER), cost_scale=1.2, latency_ns=0, burst={"v2v": n},
        phase_ns={"sensor": 5 * MS},
    )  # fmt: skip
    return _sample(plan(15, "deadline", "operator", policy="fifo"), scenario, ("control", "warning"))


def generated(load: float, larger: int, room: float, seed: int) -> Sample:
    """One generated query whose busiest node has that load. larger: bursts have as many times the tuples, and their
    work the same sum. room: of the deadlines, see LOADS."""
    shape = SHAPES[seed % len(SHAPES)]
    with TemporaryDirectory() as folder:
        query, cluster = write(Recipe(NODES, OPERATORS, shape, room, seed), Path(folder))
        choices = Choices(allocator="sqpr", model="paper", sub_deadlines="proportional", policy="fifo")
        planned = planner.make_plan(query, cluster, choices)
    made = virtual_plan(planned)
    burst = {source.name: larger * source.arrival.burst for source in made.sources}
    scenario = Scenario(
        seed=seed, jitter=parse_jitter(JITTER), cost_scale=load / (larger * busiest(made)), bursts=BURSTS, burst=burst
    )
    return _sample(planned, scenario, None)


def busiest(made: VirtualPlan) -> float:
    """Load of the busiest node as declared, if every operator gives one result per input, as those that are generated
    do."""
    rates = {
        local_source.stream: source.arrival.burst / source.arrival.period_ns
        for local in made.nodes
        for local_source in local.sources
        for source in made.sources
        if source.name == local_source.name and isinstance(source.arrival, BurstArrival)
    }
    loads = dict.fromkeys(made.speeds, 0.0)
    left = [(operator, local.node) for local in made.nodes for operator in local.operators]
    while left:
        operator, node = left.pop(0)
        if not set(operator.inputs) <= set(rates):
            left.append((operator, node))
            continue
        come = [rates[stream] for stream in operator.inputs]
        rate = min(come) if operator.join else sum(come)
        rates[operator.output] = rate
        loads[node] += rate * operator.cost_ns / made.speeds[node]
    return max(loads.values())


def _sample(planned: Plan, scenario: Scenario, outputs: tuple[str, ...] | None) -> Sample:
    done = regret(planned, scenario, policies=("slack",), outputs=outputs, states=STATES)
    values = (done.bound_ratio, done.found_ratio, done.ratio("edf"), done.ratio("slack"))
    return Sample(*(100 * (value or 0.0) for value in values))


def row(samples: list[Sample]) -> list[str]:
    """Means; the difference with its 95 % interval; in how many samples each is better."""
    gains = [each.edf - each.slack for each in samples]
    half = NORMAL_95 * stdev(gains) / sqrt(len(gains)) if len(gains) > 1 else float("nan")
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    columns = [mean(values) for values in zip(*samples, strict=True)]
    return [*(f"{each:.1f}" for each in columns), f"{mean(gains):.1f} +- {half:.1f}", f"{better} : {worse}"]


def main() -> int:
    """Prints one table."""
    given = [int(each) for each in sys.argv[1:]]
    seed, number = (given + [SEED, NUMBER][len(given) :])[:2]
    seeds = range(seed, seed + number)
    table = Table(title=f"slack against edf, missed in %, {number} samples from seed {seed}", box=None)
    table.add_column("workload")
    for heading in ("bound", "best found", "edf", "slack", "edf - slack", "better : worse"):
        table.add_column(heading, justify="right")
    for n in FIGURE7:
        table.add_row(f"figure 7, n = {n}, out1 and out2", *row(spread(figure7, [(n, each) for each in seeds])))
    for load, larger, room in LOADS:
        bursts = f", bursts x {larger}" if larger > 1 else ""
        samples = spread(generated, [(load, larger, room, each) for each in seeds])
        table.add_row(f"generated, load {load:g}, deadlines x {room:g}{bursts}", *row(samples))
    Console(width=130).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
