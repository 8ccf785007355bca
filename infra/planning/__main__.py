"""`make bench-planner`: what the planner finds, proves and bounds; printed, and written to runs/bench-planner.json.

`python -m infra.planning [PART...]` runs these parts alone, and keeps what the file has of the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from infra.bench import figures
from infra.bench.figures import Figure
from infra.bench.planner.placement import placement
from infra.bench.planner.planner_sound import planner_sound
from infra.bench.shedding.best_effort import best_effort
from infra.planning.bound_tightness import bound_tightness
from infra.planning.reference_plans import reference_plans

OUT = Path(__file__).resolve().parents[2] / "runs" / "bench-planner.json"
PARTS: Mapping[str, Callable[[], list[Figure]]] = {
    "sound": lambda: list(planner_sound()),
    "gaps": placement,
    "tightness": bound_tightness,
    "best_effort": best_effort,
    "reference": reference_plans,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for any figures."""
    parser = argparse.ArgumentParser(prog="python -m infra.planning", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without one")
    chosen = parser.parse_args(arguments).parts or list(PARTS)
    if unknown := [each for each in chosen if each not in PARTS]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    console = Console()
    for name in chosen:
        with console.status(f"measuring: {name}"):
            made = PARTS[name]()
        table = Table("figure", "value", "unit", "goal", "", "how", box=None, header_style="bold")
        for each in made:
            goal = "" if each.goal is None else f"<= {each.goal:g}"
            verdict = "" if each.goal is None else "ok" if each.ok else "missed"
            table.add_row(each.name, f"{each.value:.3g}", each.unit, goal, verdict, each.how)
        console.print(table)
        figures.merge(made, OUT)
    console.print(f"written to {OUT.relative_to(OUT.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
