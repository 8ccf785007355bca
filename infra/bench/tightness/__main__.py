"""How tight end-to-end bounds are: worst seen over bound, on random plans of several nodes.

    .venv/bin/python -m infra.bench.tightness [--seeds 4] [--first 0] [--runs 300] [--worst 0]

Some minutes. The exit code is 1 where a bound is broken. Written to runs/bench-tightness.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from infra.bench.tightness.drawn_queries import CLASSES
from infra.bench.tightness.measured import summaries, sweep

OUT = Path(__file__).resolve().parents[3] / "runs" / "bench-tightness.json"


def main() -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(prog="infra.bench.tightness", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="plans of each class at each load")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=300, help="runs of the adversary for each output")
    parser.add_argument("--worst", type=int, default=0, help="so many of the loosest are printed")
    parser.add_argument("--kinds", nargs="*", default=list(CLASSES))
    given = parser.parse_args()
    found = list(sweep(given.kinds, range(given.first, given.first + given.seeds), given.runs))
    table = Table("worst seen / bound", "outputs", "mean", "least", "largest", "broken", box=None, header_style="bold")
    for each in summaries(found):
        table.add_row(
            each.name, str(each.outputs), f"{each.mean:.3f}", f"{each.least:.3f}", f"{each.largest:.3f}",
            str(each.broken),
        )  # fmt: skip
    console = Console(width=160)
    console.print(table)
    for one in sorted(found, key=lambda each: each.ratio)[: given.worst]:
        where = f"{one.kind} {one.load} {one.seed} {one.output}"
        print(f"{one.ratio:.3f} {one.seen_ns / 1e6:.2f} of {one.bound_ns / 1e6:.2f} ms: {where}: {one.way}")
    OUT.parent.mkdir(exist_ok=True)
    content = {"summaries": [asdict(each) for each in summaries(found)], "outputs": [asdict(each) for each in found]}
    OUT.write_text(json.dumps(content, indent=1) + "\n")
    broken = [each for each in found if each.ratio > 1]
    for one in broken:
        print(f"broken: {one}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
