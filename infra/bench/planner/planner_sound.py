"""The planner's default model at full size, as a user calls it: outputs guaranteed or disproven, and the time it
takes.

Generated sources declare no `max_age`, so no output of theirs is guaranteed from the tuple's origin on. What counts
here is the bound from admission on, which is what the search plans for; the instances stay as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.bench.figures import Figure
from infra.bench.planner.instances import Recipe, write
from protos import plan_document
from protos.plan_document import Plan

ROOT = Path(__file__).resolve().parents[3]
SEEDS = "SHIMEKIRI_SOUND_SEEDS"  # how many instances of each kind, 1 without it
LATE = 5.0  # percent of the outputs that may be neither guaranteed nor disproven
OVER = 5.0  # percent of its time limit that a plan may take longer
EASY, MIDDLE = 3.0, 1.5
DISPROVEN = 3  # the exit code where it is proven that no plan is guaranteed


@dataclass(frozen=True)
class Size:
    """Nodes, operators, and the time limit in seconds."""

    nodes: int
    operators: int
    limit_s: int


SIZES = (Size(5, 50, 30), Size(10, 100, 60), Size(20, 200, 120))


@dataclass(frozen=True)
class Planned:
    """What one call gave. `open`: outputs neither guaranteed, from admission on, nor disproven."""

    open: tuple[str, ...]
    outputs: int
    seconds: float
    said: str


def planner_sound() -> Iterator[Figure]:
    """Two figures per instance, as they are measured."""
    for size in SIZES:
        for name, slack in (("easy", EASY), ("middle", MIDDLE)):
            for seed in range(int(os.environ.get(SEEDS, "1"))):
                yield from _figures(size, name, Recipe(size.nodes, size.operators, slack=slack, seed=seed))


def _figures(size: Size, name: str, recipe: Recipe) -> list[Figure]:
    found = _planned(size, recipe)
    key = f"sound_{size.nodes}_{size.operators}_{name}" + (f"_{recipe.seed}" if recipe.seed else "")
    held = found.outputs - len(found.open)
    what = (
        f"{held} of {found.outputs} outputs, from admission on; {found.seconds:.1f} s of {size.limit_s}; {found.said}"
    )
    over = 100 * max(0.0, found.seconds - size.limit_s) / size.limit_s
    return [
        Figure(f"{key}_open", 100 * len(found.open) / found.outputs, "%", LATE, f"not guaranteed or disproven: {what}"),
        Figure(f"{key}_over", over, "%", OVER, "of the time limit that the whole command took longer"),
    ]


def _planned(size: Size, recipe: Recipe) -> Planned:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        query, cluster = write(recipe, folder)
        outputs = sum(line.lstrip().startswith("out") for line in query.read_text().splitlines()) - 1
        made = folder / "plan.json"
        command = [sys.executable, "-m", "coordinator", "plan", str(query), str(cluster), "-o", str(made)]
        began = time.perf_counter()
        ran = subprocess.run(
            [*command, "--best-effort", "--time-limit", str(size.limit_s)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        if not made.exists():
            disproven = ran.returncode == DISPROVEN
            names = () if disproven else tuple(f"out{number}" for number in range(outputs))
            return Planned(names, outputs, seconds, "disproven" if disproven else ran.stderr.strip()[-200:])
        plan = plan_document.parse(made.read_bytes())
    return Planned(_open(plan), len(plan.guarantee), seconds, plan.solver.outcome)


def _open(plan: Plan) -> tuple[str, ...]:
    """Outputs of a plan that are not in time from admission on, unless no plan is guaranteed, proven."""
    if plan.solver.why:
        return ()
    return tuple(
        name
        for name, claim in plan.guarantee.items()
        if claim.from_admission_ns is None or claim.from_admission_ns > claim.deadline_ns
    )


if __name__ == "__main__":
    for figure in planner_sound():
        goal = "" if figure.goal is None else f"{figure.goal:g}"
        print(f"{figure.name:28} {figure.value:8.4g} {figure.unit:3} {goal:>5} {figure.how}", flush=True)
