"""`make bench-policies`: what scheduling policies miss on random scenarios; printed, and written to
runs/bench-policies.json.

    .venv/bin/python -m infra.bench.scheduling [FIRST] [NUMBER]

FIRST: the first seed of each class, NUMBER: how many; by default those that nothing was tuned on. Seeds up to 24 were
used while `slack` and `adaptive` were built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from infra.bench.scheduling.nodes import Run
from infra.bench.scheduling.offline import workload
from infra.bench.scheduling.scenarios import KINDS, Scenario, scenario
from infra.papers.policies import policy
from node_agent.core.plan import Parameters
from node_agent.virtual.optimum.schedule import fewest_missed

BUILT_ON = range(1, 25)
FIRST, NUMBER = 7001, 25
KS = (1, 2, 5, 10, 20)
FIXED = tuple(f"bts1 k={k}" for k in KS)
POLICIES = ("edf", "slack", "adaptive", "ideal", *FIXED)
FOUND = "best found"  # a schedule that knows all costs and arrivals, or the best of the policies where that is better
OUT = Path(__file__).resolve().parents[3] / "runs" / "bench-policies.json"
Missed = dict[str, float]  # by policy, %


def measure(given: Scenario) -> Missed:
    """What each policy misses of one scenario, and the best schedule that was found."""
    missed = {}
    for name in POLICIES:
        plain, _, k = name.partition(" k=")
        chosen = policy(plain, parameters=Parameters(first_k=int(k)) if k else None)
        missed[name] = Run(given, chosen).missed
    tasks = workload(given)
    late = fewest_missed(tasks)
    assert late is not None  # it is known on what each task waits
    missed[FOUND] = min(100 * late / len(tasks.results), *missed.values())
    missed["best k"] = min(missed[name] for name in FIXED)
    missed["best of the others"] = min(missed[name] for name in ("edf", "slack", "best k"))
    return missed


Row = tuple[Scenario, Missed]


def worst(rows: Iterable[Row], difference: Callable[[Missed], float]) -> tuple[float, int]:
    """The largest difference, and its seed."""
    return max((difference(missed), given.seed) for given, missed in rows)


COLUMNS = ("edf", "slack", "adaptive", "ideal", "best k", FOUND)


def table(title: str, rows: list[Row], label: Callable[[Scenario], str]) -> Table:
    """Means by class, in %, and the worst seeds in points."""
    made = Table(title=title, box=None, header_style="bold")
    for heading in (
        "class", "scenarios", *COLUMNS, "slack above edf: worst (seed)", "adaptive above the best of the others: worst",
    ):  # fmt: skip
        made.add_column(heading, justify="left" if heading == "class" else "right")
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(label(row[0]), []).append(row)
    for name, group in [*groups.items(), ("all", rows)]:
        edf, edf_seed = worst(group, lambda missed: missed["slack"] - missed["edf"])
        others, seed = worst(group, lambda missed: missed["adaptive"] - missed["best of the others"])
        means = (f"{mean(missed[column] for _, missed in group):.1f}" for column in COLUMNS)
        made.add_row(name, str(len(group)), *means, f"{edf:+.1f} ({edf_seed})", f"{others:+.1f} ({seed})")
    return made


def main() -> int:
    """Prints three tables."""
    given = [int(each) for each in sys.argv[1:]]
    first, number = (given + [FIRST, NUMBER][len(given) :])[:2]
    rows = [
        (one, measure(one)) for kind in KINDS for one in (scenario(kind, seed) for seed in range(first, first + number))
    ]
    steady = [row for row in rows if not row[0].variation]
    varying = [row for row in rows if row[0].variation]
    console = Console(width=170)
    seeds = f"seeds {first} to {first + number - 1}; built on {BUILT_ON.start} to {BUILT_ON.stop - 1}"
    console.print(table(f"missed in %, all scenarios, {seeds}", rows, lambda one: one.kind))
    if steady:
        console.print(table("costs that do not vary", steady, lambda one: one.kind))
    if varying:
        console.print(table("costs that vary", varying, lambda one: one.kind))
        console.print(table("costs that vary, by coefficient of variation", varying, lambda one: f"{one.variation:g}"))
    above = sorted(rows, key=lambda row: row[1]["best of the others"] - row[1]["adaptive"])
    number_above = sum(missed["adaptive"] > missed["best of the others"] + 2 for _, missed in rows)
    console.print(f"adaptive more than 2 points above the best of the others: {number_above} of {len(rows)}; farthest:")
    for one, missed in above[:8]:
        told = ", ".join(f"{name} {missed[name]:.1f}" for name in ("adaptive", "edf", "slack", *FIXED))
        console.print(
            f"  {one.kind} {one.seed}, load {one.load:g}, variation {one.variation:g}: {told}", highlight=False
        )
    OUT.parent.mkdir(exist_ok=True)
    plain = [
        {"class": one.kind, "seed": one.seed, "load": one.load, "variation": one.variation, "missed": missed}
        for one, missed in rows
    ]
    OUT.write_text(json.dumps({"built_on": list(BUILT_ON), "scenarios": plain}, indent=1) + "\n")
    console.print(f"written to {OUT.relative_to(OUT.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
