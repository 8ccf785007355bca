"""Distance of `adaptive` from batches of fixed size, in [A]'s setting: points above BTS1 with the k that is best there.

    .venv/bin/python -m infra.bench.adaptive [SEED] [SEEDS]

Some minutes per seed. Scenarios: lambda, phi, costs by query or equal, Poisson or Zipf arrivals, and shocks; 10 000
tuples per stream, decisions of 50 us. k is chosen afterwards, for each scenario and seed anew, by what was missed: no
fixed k knows it beforehand. Seeds up to 6 were used to find `adaptive`; the default was not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from infra.papers.batching.query_trees import MS, Setting, Streams, measured_with, policy
from infra.papers.pool import spread

SEED, SEEDS = 101, 1
LENGTH = 10_000
KS = (1, 2, 5, 10, 20)
RATES = (0.1, 0.3, 0.5, 0.8, 1.0)
SHOCK_RATES = (0.3, 0.5)
PHIS_MS = (10, 20, 50, 100)
SHOCK_S = 3.0  # when it comes


class Scenario(NamedTuple):
    """phi_ms: of the policies, and how long streams are collected."""

    rate: float
    phi_ms: int
    equal: bool
    streams: Streams
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


def measure(scenario: Scenario) -> Found:
    """The same arrivals under each policy. The results of a batch are there when it ends."""
    rate, phi_ms, equal, streams, shock, seed = scenario
    setting = Setting(rate, length=LENGTH, equal=equal, seed=seed, shock_s=SHOCK_S if shock else 0, streams=streams)
    policies = {f"bts1 {k}": policy("bts1", phi_ms * MS, k) for k in KS}
    missed = [
        each.missed
        for each in measured_with(setting, policies | {"adaptive": policy("adaptive", phi_ms * MS)}).values()
    ]
    return Found(tuple(missed[:-1]), missed[-1])


def scenarios(seeds: Iterable[int]) -> list[Scenario]:
    """All, seed by seed."""
    kinds: list[tuple[bool, Streams, bool, tuple[float, ...]]] = [
        (False, "poisson", False, RATES), (True, "poisson", False, RATES),
        (False, "zipf gaps", False, RATES), (False, "zipf rates", False, RATES),
        (False, "poisson", True, SHOCK_RATES), (True, "poisson", True, SHOCK_RATES),
    ]  # fmt: skip
    return [
        Scenario(rate, phi_ms, equal, streams, shock, seed)
        for seed in seeds
        for equal, streams, shock, rates in kinds
        for phi_ms in PHIS_MS
        for rate in rates
    ]


def cell(values: Sequence[float]) -> str:
    """Mean and largest."""
    return f"{sum(values) / len(values):.1f} ({max(values):.1f})"


def tables(found: dict[Scenario, Found]) -> list[Table]:
    """Points above the best k, and below k = 1."""
    rows: dict[tuple[bool, bool, Streams, int], dict[float, list[Found]]] = {}
    for each, one in found.items():
        kind = rows.setdefault((each.shock, each.equal, each.streams, each.phi_ms), {})
        kind.setdefault(each.rate, []).append(one)
    above = Table(title="adaptive, points above the best k: mean (worst seed), by lambda", box=None)
    below = Table(title="adaptive, points below k = 1: mean; and what k = 1 misses in %, by lambda", box=None)
    for made in (above, below):
        for heading in ("costs", "arrivals", "phi, ms", *(f"{rate:g}" for rate in RATES)):
            made.add_column(heading, justify="right")
    for (shock, equal, streams, phi_ms), by_rate in rows.items():
        label = ["equal" if equal else "by query", f"{streams}, shock" if shock else streams, str(phi_ms)]
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
