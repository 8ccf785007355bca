"""Placement by size: how soon there is a plan, how far it is from a proven bound, and what is proven optimal."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import CoordinatorError
from coordinator.model import problem
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.progress import Progress, relative_gap
from coordinator.solve.heuristics import scale
from coordinator.solve.milp import deadline
from coordinator.spec import input_files
from infra.bench.figures import Figure
from infra.bench.planner.instances import Recipe, write

PAPER = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries"
LIMIT = "SHIMEKIRI_PLACEMENT_SECONDS"  # time limit of each problem, 60 without it
SEEDS = "SHIMEKIRI_PLACEMENT_SEEDS"  # of the generated problems, as "0 1 2"; 0 without it, which the goals are of
NEVER = 1e9  # where no plan was found
TIGHT, MIDDLE, EASY = 0.8, 1.5, 3.0


@dataclass(frozen=True)
class Size:
    """A row of the table; goals in seconds, and of gaps in percent; `tight`: of NLR on the tight problem."""

    nodes: int
    operators: int
    proven_s: float | None = None
    plan_s: float | None = None
    gap: float | None = None
    tight: float | None = None


SIZES = (
    Size(10, 100, proven_s=5, tight=30),
    Size(20, 200, gap=1, tight=1),
    Size(50, 500, plan_s=2, gap=10, tight=10),
    Size(100, 1000, plan_s=2, gap=10, tight=10),
)


def placement() -> list[Figure]:
    """The query of the paper, then generated ones of four sizes, with deadlines from tight to easy."""
    seconds = float(os.environ.get(LIMIT, "60"))
    made = [_paper()]
    for size in SIZES:
        for name, slack in (("easy", EASY), ("middle", MIDDLE), ("tight", TIGHT)):
            for seed in map(int, os.environ.get(SEEDS, "0").split()):
                made += _solved(size, name, Recipe(size.nodes, size.operators, slack=slack, seed=seed), seconds)
    return made


def _built(query: Path, cluster: Path) -> problem.Problem:
    read, nodes, _ = input_files.read_files(query, cluster)
    assert nodes is not None  # a path was given
    return problem.build(read, nodes, {})


def _paper() -> Figure:
    """Its optimum, proven; the second run of two, with the solver's library loaded."""
    built = _built(PAPER / "collision_paper.yaml", PAPER / "cluster_paper.yaml")
    spent = NEVER
    for _ in range(2):
        began = time.perf_counter()
        found = deadline.allocate(built, Limits())
        spent = time.perf_counter() - began if found.proven else NEVER
    return Figure("place_2_21_s", spent, "s", 0.2, "two nodes, the paper's 21 operators: until the optimum is proven")


def _solved(size: Size, name: str, recipe: Recipe, seconds: float) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        built = _built(*write(recipe, Path(directory)))
    first = NEVER

    def watch(now: Progress) -> None:
        nonlocal first
        if now.held:
            first = min(first, now.seconds)

    began = time.perf_counter()
    found: Allocation | None = None
    said = ""
    try:
        found = scale.allocate(built, Limits(seconds), watch)
    except CoordinatorError as error:
        said = str(error)
    if found is not None:
        traffic = float(found.traffic)
        said = f"NLR {found.nlr:g} of at least {found.bound:g}, traffic {traffic:g} of {found.traffic_bound or 0:g}"
    spent = time.perf_counter() - began
    key = f"place_{size.nodes}_{size.operators}_{name}" + (f"_seed{recipe.seed}" if recipe.seed else "")
    how = f"{said}; {seconds:g} s at most, seed {recipe.seed}, deadlines {recipe.slack:g} times the least divisible"
    nlr, traffic = (100.0, 100.0) if found is None else _gaps(found)
    figures = [
        Figure(f"{key}_plan_s", first, "s", size.plan_s, f"until the first plan; {how}"),
        Figure(f"{key}_nlr_gap", nlr, "%", size.tight if name == "tight" else size.gap, f"of NLR to its bound; {how}"),
        Figure(
            f"{key}_traffic_gap",
            traffic,
            "%",
            size.gap,
            f"of traffic to its bound, of plans with NLR 0 where this one has it; {how}",
        ),
    ]
    if size.proven_s is not None:
        proven = spent if found is not None and found.proven else NEVER
        figures.append(Figure(f"{key}_proven_s", proven, "s", size.proven_s, f"until the optimum is proven; {how}"))
    return figures


def _gaps(found: Allocation) -> tuple[float, float]:
    """Of NLR and of traffic, in percent."""
    traffic = 0.0 if found.proven else relative_gap(float(found.traffic), found.traffic_bound or 0.0)
    return 100 * relative_gap(found.nlr, found.bound), 100 * traffic


if __name__ == "__main__":
    for figure in placement():
        print(f"{figure.name:30} {figure.value:12.4g} {figure.unit:3} {figure.goal or '':>5} {figure.how}")
