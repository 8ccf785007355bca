"""Regret of `edf` and `slack` against what no schedule can beat: figure 7's sweep, and random queries in overload.

    .venv/bin/python -m infra.bench.shedding.regret [SEED] [TRIALS]

Some minutes. The sweep is [P] figure 7's: planned once for 15 V2V tuples, 1 to 30 come; costs of 1.2 ms with
coefficient of variation 1; the sensor's burst 5 ms after V2V's. Seed 1 was used to find `slack`; the default was not.
"""

from __future__ import annotations

import sys
from math import log, sqrt
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from coordinator.model.choices import Choices
from coordinator.solve import planner
from infra.bench.planner.instances import SHAPES, Recipe, write
from infra.papers.placement.collision_plans import MS, plan
from infra.papers.pool import spread
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.optimum.regret import Regret, regret
from node_agent.virtual.scenario import Scenario

SEED, TRIALS = 1001, 20
PLANNED_AT = 15
SWEEP = range(1, 31)
TWO = ("control", "warning")
DUE_MS, COST_MS, CHAIN, OF_OUT1 = 300, 1.2, 16, 10  # of out2; per operator; operators after O3; results of out1
BLIND_TRIALS = 4000
POLICIES = ("edf", "edf-e2e", "slack")
SCALES = (1.0, 2.0, 3.0)
NODES, OPERATORS, BURSTS = 3, 12, 3
QUERIES = 8  # of each shape


class Row(NamedTuple):
    """All ratios in %: the bound, the best schedule found, the policies in the order of `POLICIES`."""

    bound: float
    found: float
    missed: tuple[float, ...]
    closed: int


def row(found: Regret) -> Row:
    """Of one comparison."""
    missed = tuple(100 * (found.ratio(name) or 0) for name in POLICIES)
    return Row(100 * (found.bound_ratio or 0), 100 * (found.found_ratio or 0), missed, found.closed)


def figure7(n: int, seed: int, trials: int, outputs: tuple[str, ...] | None) -> Row:
    """At n V2V tuples per burst, an operator per unit, no link delay."""
    scenario = Scenario(
        trials=trials, seed=seed, jitter=parse_jitter("lognormal:cv=1"), cost_scale=1.2, latency_ns=0,
        burst={"v2v": n}, phase_ns={"sensor": 5 * MS},
    )  # fmt: skip
    made = plan(PLANNED_AT, "deadline", "operator", policy="fifo")
    return row(regret(made, scenario, policies=POLICIES, outputs=outputs))


def unknowing(n: int, seed: int) -> float:
    """What has to be expected to miss of out1 and out2 who does not know costs before they are paid, %: at best.

    Node b has the first V2V tuple after one run of O2; from then on it works on one after the other and on nothing
    else: O3, which passes every second one, and for that the 16 operators of the chain, until out2 is due. Before they
    run tuples are alike, so no order is better than to finish what has least left.
    """
    random, sigma = Random(seed), sqrt(log(2))
    missed = 0
    for _ in range(BLIND_TRIALS):
        left_ms = float(DUE_MS)
        for number in range(1, 2 + n + CHAIN * (n // 2)):
            left_ms -= COST_MS * random.lognormvariate(-sigma * sigma / 2, sigma)
            # a result after O2's first run and, for each, two of O3 and a chain
            ran, rest = divmod(number - 1, 2 + CHAIN)
            missed += rest == 0 and ran > 0 and left_ms < 0
    return 100 * missed / BLIND_TRIALS / (OF_OUT1 + n // 2)


def generated(shape: Any, scale: float, seed: int, trials: int) -> Row:
    """A generated query of that shape, whose costs are `scale` times as declared, in several bursts."""
    with TemporaryDirectory() as folder:
        query, cluster = write(Recipe(NODES, OPERATORS, shape, seed=seed), Path(folder))
        choices = Choices(allocator="sqpr", model="paper", sub_deadlines="proportional", policy="fifo")
        made = planner.make_plan(query, cluster, choices)
    scenario = Scenario(
        trials=trials, seed=seed, jitter=parse_jitter("lognormal:cv=1"), cost_scale=scale, bursts=BURSTS
    )
    return row(regret(made, scenario, policies=POLICIES))


def table(title: str, first: str, labels: list[str], rows: list[Row], trials: int) -> Table:
    """A row per workload; policies as points above the bound."""
    made = Table(title=title, box=None, header_style="bold")
    made.add_column(first)
    for heading in ("bound %", "best found %", *(f"{name} above" for name in POLICIES), f"closed of {trials}"):
        made.add_column(heading, justify="right")
    for label, each in zip(labels, rows, strict=True):
        above = [f"{missed - each.bound:.2f}" for missed in each.missed]
        made.add_row(label, f"{each.bound:.2f}", f"{each.found:.2f}", *above, str(each.closed))
    mean = [sum(each.missed[i] - each.bound for each in rows) / len(rows) for i in range(len(POLICIES))]
    bound, best = (sum(values) / len(rows) for values in zip(*((each.bound, each.found) for each in rows), strict=True))
    made.add_row("mean", f"{bound:.2f}", f"{best:.2f}", *(f"{each:.2f}" for each in mean), "")
    return made


def _mean(rows: list[Row]) -> Row:
    missed = tuple(sum(each) / len(rows) for each in zip(*(row.missed for row in rows), strict=True))
    bound, found = (sum(values) / len(rows) for values in zip(*((row.bound, row.found) for row in rows), strict=True))
    return Row(bound, found, missed, sum(row.closed for row in rows))


def main() -> int:
    """Prints three tables."""
    given = [int(each) for each in sys.argv[1:]]
    seed, trials = (given + [SEED, TRIALS][len(given) :])[:2]
    console = Console()
    for title, outputs in (("all outputs", None), ("out1 and out2 only", TWO)):
        rows = spread(figure7, [(n, seed, trials, outputs) for n in SWEEP])
        labels = [str(n) for n in SWEEP]
        console.print(table(f"figure 7, {title}, seed {seed}, {trials} trials: points", "n", labels, rows, trials))
    expected = ", ".join(f"{n}: {unknowing(n, seed):.1f}" for n in SWEEP if n > 25)
    console.print(f"out1 and out2, missed in % at best by who does not know costs beforehand: {expected}")
    kinds = [(shape, scale) for shape in SHAPES for scale in SCALES]
    found = spread(generated, [(*kind, seed + number, trials // 4 or 1) for kind in kinds for number in range(QUERIES)])
    rows = [_mean(found[i * QUERIES : (i + 1) * QUERIES]) for i in range(len(kinds))]
    labels = [f"{shape}, costs x {scale:g}" for shape, scale in kinds]
    of = QUERIES * (trials // 4 or 1)
    title = f"generated, {QUERIES} queries each, seeds from {seed} on: points"
    console.print(table(title, "shape", labels, rows, of))
    return 0


if __name__ == "__main__":
    sys.exit(main())
