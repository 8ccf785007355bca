"""The Autoware Reference System at six loads on one node and on two: is it decided before it runs, and how soon."""

from __future__ import annotations

from infra.bench.figures import Figure
from infra.reference_system.__main__ import LOADS
from infra.reference_system.virtual_runs import planned

LIMIT_S = 10


def reference_plans() -> list[Figure]:
    """Per number of nodes, the cases that are neither guaranteed nor disproven; and the longest planning of all."""
    figures: list[Figure] = []
    slowest_s = 0.0
    for nodes in (1, 2):
        made = {load: planned(load, nodes, LIMIT_S) for load in LOADS}
        open_at = [f"{load:.0%}" for load, each in made.items() if each.status == "neither"]
        slowest_s = max(slowest_s, *(each.seconds for each in made.values()))
        how = f"of {len(made)} loads, 50 to 120 %, {LIMIT_S} s each; undecided: {', '.join(open_at) or 'none'}"
        figures.append(Figure(f"reference_{nodes}_undecided", len(open_at), "cases", 0, how))
    how = f"the slowest of all cases, start of the command included; --time-limit {LIMIT_S}"
    return [*figures, Figure("reference_plan_s", slowest_s, "s", 1.05 * LIMIT_S, how)]


__all__ = ["reference_plans"]
