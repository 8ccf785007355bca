"""How far `adaptive` is from batches of fixed size, in [A]'s setting: points above BTS1 with the k that is best there.

    .venv/bin/python -m infra.bench.adaptive [SEED] [SEEDS]

Some minutes per seed. Scenarios: lambda, phi, costs by query or equal, Poisson or Zipf arrivals, and shocks; 10 000
tuples per stream, decisions of 50 us. k is chosen afterwards, for each scenario and seed anew, by what was missed: no
fixed k knows it beforehand. Seeds up to 6 were used to find `adaptive`; the default was not.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from infra.papers.batching_load import DECISION_NS, MS, Setting, collected, load, policy
from infra.papers.one_node import Workload, run
from infra.papers.pool import spread

SEED, SEEDS = 101, 5
LENGTH = 10_000
KS = (1, 2, 5, 10, 20)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
PHIS_MS = (10, 20, 50, 100)
LARGEST_GAP, EXPONENT = 1000, 1.5
SHOCK_S = 3.0


class Scenario(NamedTuple):
    """phi_ms: of the policies, and how long streams are collected."""

    rate: float
    phi_ms: int
    equal: bool
    zipf: bool
    shock: bool
    seed: int


class Found(NamedTuple):
    """Missed, % of all tuples: `bts1` with each of KS, and `adaptive`."""

    fixed: tuple[float, ...]
    adaptive: float

    @property
    def above(self) -> float:
        """Points above the best k."""
        return self.adaptive - min(self.fixed)

    @property
    def below_one(self) -> float:
        """Points below k = 1."""
        return self.fixed[0] - self.adaptive


def zipf(tuples: Workload, rate: float, seed: int) -> Workload:
    """The same tuples with gaps between those of a stream that are Zipf distributed (z units with a probability that
    falls as z^-1.5, z up to 1000): dense trains, and pauses of hundreds of mean gaps."""
    random = Random(f"zipf {seed} {rate}")
    weights = [z**-EXPONENT for z in range(1, LARGEST_GAP + 1)]
    below = list(accumulate(weights))
    mean = sum(z * weight for z, weight in enumerate(weights, 1)) / below[-1]
    at_ns = [0.0] * len(tuples.queries)
    found = []
    for number, cost_ns in zip(tuples.query, tuples.cost_ns, strict=True):
        units = bisect_left(below, random.random() * below[-1]) + random.random()
        at_ns[number] += units / mean / rate * MS
        found.append((int(at_ns[number]), number, cost_ns))
    found.sort()
    return replace(
        tuples,
        at_ns=[at for at, _, _ in found],
        query=[number for _, number, _ in found],
        cost_ns=[cost_ns for _, _, cost_ns in found],
        due_ns=[at + tuples.queries[number].deadline_ns for at, number, _ in found],
    )


def measure(scenario: Scenario) -> Found:
    """The same arrivals under each policy. The results of a batch are there when it ends."""
    rate, phi_ms, equal, _, shock, seed = scenario
    tuples = load(Setting(rate, length=LENGTH, equal=equal, seed=seed, shock_s=SHOCK_S if shock else 0))
    if scenario.zipf:
        tuples = zipf(tuples, rate, seed)
    batches, phi_ns = collected(tuples, phi_ms * MS), phi_ms * MS - 1
    fixed = tuple(run(policy("bts1", phi_ns, k), batches, DECISION_NS).missed for k in KS)
    return Found(fixed, run(policy("adaptive", phi_ns), batches, DECISION_NS).missed)


def scenarios(seeds: Iterable[int]) -> list[Scenario]:
    """All, seed by seed."""
    steady = [
        (rate, phi, equal, zipf, False)
        for equal in (False, True)
        for zipf in (False, True)
        for phi in PHIS_MS
        for rate in RATES
    ]
    shocks = [(rate, phi, equal, False, True) for equal in (False, True) for phi in PHIS_MS for rate in (0.3, 0.4)]
    return [Scenario(*each, seed) for seed in seeds for each in steady + shocks]


def cell(values: Sequence[float]) -> str:
    """Mean and largest."""
    return f"{sum(values) / len(values):.1f} ({max(values):.1f})"


def tables(found: dict[Scenario, Found]) -> list[Table]:
    """Points above the best k, and below k = 1."""
    rows: dict[tuple[bool, bool, bool, int], dict[float, list[Found]]] = {}
    for each, one in found.items():
        kind = rows.setdefault((each.shock, each.equal, each.zipf, each.phi_ms), {})
        kind.setdefault(each.rate, []).append(one)
    above = Table(title="adaptive, points above the best k: mean (worst seed), by lambda", box=None)
    below = Table(title="adaptive, points below k = 1: mean; and what k = 1 misses in %, by lambda", box=None)
    for made in (above, below):
        for heading in ("costs", "arrivals", "phi, ms", *(f"{rate:g}" for rate in RATES)):
            made.add_column(heading, justify="right")
    for (shock, equal, zipf_, phi_ms), by_rate in rows.items():
        label = ["equal" if equal else "by query", "shock" if shock else "Zipf" if zipf_ else "Poisson", str(phi_ms)]
        cells, others = [], []
        for rate in RATES:
            there = by_rate.get(rate, [])
            cells.append(cell([each.above for each in there]) if there else "")
            gain = sum(each.below_one for each in there) / max(1, len(there))
            first = sum(each.fixed[0] for each in there) / max(1, len(there))
            others.append(f"{gain:.1f} of {first:.1f}" if there else "")
        above.add_row(*label, *cells)
        below.add_row(*label, *others)
    return [above, below]


def main() -> int:
    """Prints two tables and the worst scenarios."""
    given = [int(each) for each in sys.argv[1:]]
    seed, seeds = (given + [SEED, SEEDS][len(given) :])[:2]
    work = scenarios(range(seed, seed + seeds))
    found = dict(zip(work, spread(measure, [(each,) for each in work]), strict=True))
    console = Console(width=160)
    for each in tables(found):
        console.print(each)
    console.print("farthest above the best k:")
    for scenario, one in sorted(found.items(), key=lambda each: -each[1].above)[:8]:
        fixed = ", ".join(f"k={k} {missed:.1f}" for k, missed in zip(KS, one.fixed, strict=True))
        console.print(f"{one.above:5.1f}  {scenario}: {fixed}; adaptive {one.adaptive:.1f}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
