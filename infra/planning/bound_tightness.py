"""How near end-to-end bounds are to what happens: worst seen over bound, of plans and of whole ways."""

from __future__ import annotations

from infra.bench.figures import Figure
from infra.bench.tightness.drawn_queries import CLASSES
from infra.bench.tightness.measured import Summary, summaries, sweep

SEEDS, RUNS = 2, 200
GOALS = {"plans without windows": 0.9, "plans with windows": 0.8}  # of the mean


def bound_tightness() -> list[Figure]:
    """As distances from 1, since goals are the largest that is good enough."""
    found = {each.name: each for each in summaries(list(sweep(CLASSES, range(SEEDS), RUNS)))}
    how = f"with limits of whole ways; {SEEDS} seeds of each class at three loads, {RUNS} runs of the adversary each"
    figures = [_figure(found[name], 100 * (1 - goal), how) for name, goal in GOALS.items()]
    broken = sum(found[name].broken for name in GOALS)
    return [*figures, Figure("bounds_broken", broken, "outputs", 0, how)]


def _figure(each: Summary, goal: float, how: str) -> Figure:
    name = f"bounds_above_{each.name.replace(' ', '_')}"
    return Figure(
        name, 100 * (1 - each.mean), "%", goal, f"mean over {each.outputs} outputs of 1 - seen / bound; {how}"
    )


__all__ = ["bound_tightness"]
