"""Compares policies of [A] at a few settings, in seconds: `python -m infra.papers.compare --rates 0.5 --phi 100`.

It serves work on a policy. A row per setting: `bts1` with each k, then the policies named; last, how many points
each of those is above the best k. The same arrivals for all of a row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from infra.papers.batching.query_trees import MS, Setting, measure
from infra.papers.pool import spread

STREAM = 10_000  # tuples, as [A] 4.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table. Exit code 0."""
    options = _options(arguments)
    settings = [
        Setting(
            rate,
            options.queries,
            options.length,
            None if options.random else 0.5,
            options.shock if options.shock else 0,
            options.equal,
            seed,
        )
        for rate in options.rates
        for seed in options.seeds
    ]
    cases = [(setting, phi_ms) for setting in settings for phi_ms in options.phi]
    names = tuple(options.policies)
    work = [(each, ("bts1",), phi * MS, k) for each, phi in cases for k in options.k]
    work += [(each, names, phi * MS, options.first_k) for each, phi in cases]
    found = spread(measure, work)
    fixed, others = found[: len(cases) * len(options.k)], found[len(cases) * len(options.k) :]
    table = Table("lambda", "seed", "phi, ms", *[f"bts1 k={k}" for k in options.k], *names, "above the best k")
    for i, (setting, phi_ms) in enumerate(cases):
        by_k = [each["bts1"].missed for each in fixed[i * len(options.k) : (i + 1) * len(options.k)]]
        by_name = [others[i][name].missed for name in names]
        above = " ".join(f"{value - min(by_k):+.1f}" for value in by_name)
        cells = [f"{value:.1f}" for value in by_k + by_name]
        table.add_row(f"{setting.rate:g}", str(setting.seed), f"{phi_ms:g}", *cells, above)
    console = Console(width=max(100, 12 * (4 + len(options.k) + len(names))))
    console.print("missed, % of all tuples (late or shed)")
    console.print(table)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.papers.compare", description=__doc__)
    add = parser.add_argument
    add("policies", nargs="*", default=["adaptive", "adaptive open"], help="default: adaptive, 'adaptive open'")
    add("--rates", nargs="+", type=float, default=[0.5], help="lambda, tuples per ms and stream")
    add("--phi", nargs="+", type=int, default=[100], help="ms")
    add("--k", nargs="+", type=int, default=[1, 2, 5, 10], help="of bts1")
    add("--first-k", type=int, default=1, help="where the other policies begin")
    add("--seeds", nargs="+", type=int, default=[1])
    add("--queries", type=int, default=100, help="a tenth of them, on a machine ten times slower")
    add("--length", type=int, default=STREAM, help="tuples per stream; with short ones overload is over too early")
    add("--equal", action="store_true", help="every tuple costs 22 us, not as its query's tree")
    add("--random", action="store_true", help="random selectivities, not 0.5")
    add("--shock", type=float, default=0, metavar="S", help="from then on the rate is four times as high for 2 s")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
