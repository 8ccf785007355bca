"""Bounds with a confidence against held-out runs: how often they are broken, and how near they are.

    .venv/bin/python -m infra.bench.confidence [--seeds 2] [--first 100] [--runs 200] [--calls 1000000]

Minutes. The exit code is 1 where the 95 % upper limit of the share of all results beyond their bounds is not below what
the confidence leaves, or the lower limit of an output's share is above it. An output by itself is `open` where its
results are too few to tell: a bound that uses up what may be late is near it in truth. Written to
runs/bench-confidence.json. Seeds 0, 1, 3 and 100 were looked at while this was made; those from 200 on were not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.table import Table

from coordinator.spec.quality import Confidence
from infra.bench.confidence.cost_laws import LAWS
from infra.bench.confidence.measured_rows import Figures, Row, Setting, figures, rows
from infra.bench.tightness.drawn_queries import LOADS, PLAIN

OUT = Path(__file__).resolve().parents[3] / "runs" / "bench-confidence.json"
WHILE_BUILDING = (0, 1, 3, 100)  # seeds
FIRST = 200


def main() -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(prog="infra.bench.confidence", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="plans of each class at each load")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--runs", type=int, default=200, help="held-out runs of each plan")
    parser.add_argument("--calls", type=int, default=1_000_000, help="that were measured of each operator")
    parser.add_argument("--confidence", default="99.9", help="in percent")
    parser.add_argument("--kinds", nargs="*", default=list(PLAIN), choices=PLAIN)
    given = parser.parse_args()
    setting = Setting(given.calls, given.runs, Confidence(Fraction(given.confidence) / 100))
    found = list(rows(given.kinds, LOADS, range(given.first, given.first + given.seeds), setting))
    summaries = _summaries(found)
    _print(summaries)
    OUT.parent.mkdir(exist_ok=True)
    content = {"figures": [asdict(each) for each in summaries], "rows": [asdict(each) for each in found]}
    OUT.write_text(json.dumps(content, indent=1) + "\n")
    for row in found:
        if row.says != "kept":
            print(f"{row.says}: {row}")
    late = float(setting.asked.late)
    whole = figures("all", found)
    exceeding = max(whole.together.most, whole.together_independent.most) >= late
    return 1 if exceeding or whole.broken else 0


def _summaries(found: Sequence[Row]) -> list[Figures]:
    groups = {"all": list(found)}
    groups |= {law: [row for row in found if row.law == law] for law in LAWS}
    groups |= {kind: [row for row in found if row.kind == kind] for kind in PLAIN}
    groups |= {f"load {load}": [row for row in found if row.load == load] for load in LOADS}
    return [figures(name, each) for name, each in groups.items() if each]


def _print(summaries: Sequence[Figures]) -> None:
    table = Table("outputs of", "n", "bounded", "results", box=None)
    for heading in (
        "beyond", "at most", "of independent", "at most", "kept", "open", "broken", "bound / seen", "evenly",
        "independent", "largest cost", "plan's cost",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for each in summaries:
        ratios = (each.confident, each.evenly, each.independent, each.largest, each.certain)
        one, other = each.together, each.together_independent
        table.add_row(
            each.name, str(each.outputs), str(each.bounded), str(one.results), str(one.exceeding), f"{one.most:.3%}",
            str(other.exceeding), f"{other.most:.3%}", str(each.holding), str(each.open), str(each.broken),
            *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
        )  # fmt: skip
    Console(width=180).print(table)


if __name__ == "__main__":
    sys.exit(main())
