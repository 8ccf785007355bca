"""Bounds with a confidence against held-out runs: how often they are broken, and how near they are.

    .venv/bin/python -m infra.bench.confidence [--seeds 2] [--first 100] [--runs 200] [--calls 1000000]

Minutes. The exit code is 1 where the 95 % upper limit of the share of an output's results beyond its bound is not below
what the confidence leaves. Written to runs/bench-confidence.json. Seeds 0 to 9 were looked at while the bounds were
made; those from 100 on were not.
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
WHILE_BUILDING = range(10)  # seeds
FIRST = 100


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
    failed = [row for row in found if not row.holds]
    for row in failed:
        print(f"does not hold: {row}")
    return 1 if failed else 0


def _summaries(found: Sequence[Row]) -> list[Figures]:
    groups = {"all": list(found)}
    groups |= {law: [row for row in found if row.law == law] for law in LAWS}
    groups |= {kind: [row for row in found if row.kind == kind] for kind in PLAIN}
    groups |= {f"load {load}": [row for row in found if row.load == load] for load in LOADS}
    return [figures(name, each) for name, each in groups.items() if each]


def _print(summaries: Sequence[Figures]) -> None:
    table = Table("outputs of", "n", "bounded", "results", "beyond", "largest upper limit", box=None)
    for heading in ("bound / seen", "evenly", "independent", "largest cost", "plan's cost"):
        table.add_column(heading, justify="right")
    for each in summaries:
        ratios = (each.confident, each.evenly, each.independent, each.largest, each.certain)
        table.add_row(
            each.name, str(each.outputs), str(each.bounded), str(each.results), str(each.beyond),
            f"{each.most:.5f}", *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
        )  # fmt: skip
    Console(width=160).print(table)


if __name__ == "__main__":
    sys.exit(main())
