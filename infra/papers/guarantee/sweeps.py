"""[Q] figures 5 to 7: input rate, throughput asked for, and capacity are varied; nothing is missed under QED where the
test admits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coordinator.calculus.theorems import sharper
from infra.papers.guarantee.random_queries import Drawn, admitted, densest, draw, limit
from infra.papers.guarantee.table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell

SEED = 1
SWEEPS: dict[str, tuple[str, Callable[[Drawn, float], Drawn], tuple[float, ...]]] = {
    "figure 5": ("input rate", lambda each, by: each.scaled(rate=by), (0.8, 0.9, 1.0, 1.1, 1.2)),
    "figure 6": ("throughput asked for", lambda each, by: each.scaled(throughput=by), (0.6, 0.8, 1.0, 1.2, 1.5)),
    "figure 7": ("capacity", lambda each, by: each.scaled(cost=1 / by), (0.8, 0.9, 1.0, 1.1, 1.25)),
}
SHOWN = ("qed", "pqed", "fifo", "rr", "spt")


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """A figure each; the axes are lost, so factors of table 2's values."""
    drawn = draw(SEED, FACTOR)
    drawn = drawn[: 60 if effort == "tiny" else limit(drawn, sharper)]
    for name, (what, vary, factors) in SWEEPS.items():
        tell(f"{name}: {what}")
        yield _sweep(name, what, vary, factors if effort == "full" else factors[::2], drawn)


def _sweep(
    name: str, what: str, vary: Callable[[Drawn, float], Drawn], factors: tuple[float, ...], drawn: list[Drawn]
) -> Figure:
    found: dict[str, list[float | None]] = {policy: [] for policy in SHOWN}
    inside = []
    for factor in factors:
        varied = [vary(each, factor) for each in drawn]
        inside.append(admitted(varied, sharper))
        workload = densest(varied, WINDOW_NS)
        for policy in SHOWN:
            found[policy].append(simulate(POLICIES[policy], workload).missed)
    told = {
        f"{what} x {factor:g}{', admitted' if inside[i] else ''}": ", ".join(
            f"{policy} {found[policy][i]:.1f}" for policy in SHOWN
        )
        for i, factor in enumerate(factors)
    }
    missed = [found[policy][i] for policy in ("qed", "pqed") for i in range(len(factors)) if inside[i]]
    return Figure(
        f"{name}: {what} varied (% missed)",
        {"QED, PQED where admitted": 0},
        told,
        not any(missed) and any(inside),
        "Where the test admits, nothing is missed under QED and PQED, as printed. Axes and curves are lost.",
        f"{len(drawn)} queries of table 2, costs x {FACTOR}; all streams begin together and densely, every task "
        "at its bound, 300 ms.",
        [SEED],
        [
            Plot(
                name,
                f"{what}, times table 2's",
                "QMR, %",
                [Curve(each, list(factors), ys) for each, ys in found.items()],
            )
        ],
    )
