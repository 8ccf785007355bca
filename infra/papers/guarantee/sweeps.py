"""[Q] figures 5 to 7: input rate, throughput asked for, and capacity are varied; nothing is missed under QED where the
test admits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coordinator.calculus.theorems import sharper
from infra.papers.claims import Band, always, holds
from infra.papers.guarantee.random_queries import Drawn, admitted, densest, draw, limit
from infra.papers.guarantee.table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell

DRAWS = 10
Vary = Callable[[Drawn, float], Drawn]
SWEEPS: dict[str, tuple[str, Vary, tuple[float, ...]]] = {
    "figure 5": ("input rate", lambda each, by: each.scaled(rate=by), (0.9, 1.0, 1.1)),
    "figure 6": ("throughput asked for", lambda each, by: each.scaled(throughput=by), (0.8, 1.0, 1.2)),
    "figure 7": ("capacity", lambda each, by: each.scaled(cost=1 / by), (0.9, 1.0, 1.1)),
}
SHOWN = ("qed", "pqed", "fifo")


@dataclass(frozen=True)
class Point:
    """One factor in one draw: whether the test admits the queries, and what each policy misses, %."""

    admitted: bool
    missed: dict[str, float]


def points(name: str, seed: int, most: int | None = None) -> list[Point]:
    """The queries that the test admits, or so many of them, with one of the three varied: by factor."""
    _, vary, factors = SWEEPS[name]
    drawn = draw(seed, FACTOR)
    drawn = drawn[: limit(drawn, sharper) if most is None else most]
    found = []
    for factor in factors:
        varied = [vary(each, factor) for each in drawn]
        workload = densest(varied, WINDOW_NS)
        missed = {policy: simulate(POLICIES[policy], workload).missed for policy in SHOWN}
        found.append(Point(admitted(varied, sharper), missed))
    return found


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """A figure each; the axes are lost, so factors of table 2's values."""
    seeds = SEEDS[effort][:DRAWS]
    for name, (what, _, factors) in SWEEPS.items():
        tell(f"{name}: {what}")
        found = spread(points, [(name, seed, 60 if effort == "tiny" else None) for seed in seeds])
        yield sweep(name, dict(zip(factors, map(list, zip(*found, strict=True)), strict=True)), seeds)


def sweep(name: str, found: dict[float, list[Point]], seeds: list[int]) -> Figure:
    """By factor, of each draw."""
    what = SWEEPS[name][0]
    every = [each for points in found.values() for each in points]
    inside = [each for each in every if each.admitted]
    return Figure(
        f"{name}: {what} varied (% missed)",
        [
            always("where the test admits, QED and PQED miss nothing",
                   [each.missed["qed"] == each.missed["pqed"] == 0 for each in inside], "runs"),
            always("PQED misses what QED misses",
                   [each.missed["qed"] == each.missed["pqed"] for each in every], "runs"),
        ],
        {f"{what} x {factor:g}": f"admitted in {sum(each.admitted for each in points)} of {len(points)}; "
         + ", ".join(f"{policy} {Band.of(each.missed[policy] for each in points)}" for policy in SHOWN)
         for factor, points in found.items()},
        [holds("FIFO misses where the test admits", [each.missed["fifo"] > 0 for each in inside], "runs")],
        f"The queries of table 2 that the test admits, costs x {FACTOR}; all streams begin together and densely, every "
        "task at its bound, 300 ms. PQED in its sound form. Axes and curves are lost.",
        seeds,
        [Plot(name, f"{what}, times table 2's", "QMR, %, median of the draws",
              [Curve(policy, list(found), [Band.of(each.missed[policy] for each in points).median
                                           for points in found.values()]) for policy in SHOWN])],
    )  # fmt: skip
