"""Windows that each shedder gives exactly and in time, beside the most that could be given of the run's own arrivals.

    .venv/bin/python -m infra.bench.shedding.window_shedding [SEED...]

Five minutes of a quiet core. Windows of 5 s every 4 s, of use for 5 s after their end, 8 ms of work a tuple on average.
Arrivals are Poisson: steady, or 10 s at twice the load and 20 s at half of it, over and over. Costs are equal, or
lognormal with a standard deviation as large as the mean. At most M tuples wait beside the one that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from infra.papers.shedding import queue_node
from infra.papers.shedding.offline_optimum import Optimum, Workload, optimum
from infra.papers.shedding.queue_node import Served
from infra.papers.shedding.window_node import Setting, workload

SEEDS = (21, 22, 23)  # 1 to 3 and 11 to 13 were used to find the shedder
SECONDS = 64  # of stream a seed: 15 windows, two bursts
LOADS = (0.8, 1.0, 1.3, 1.6, 2.0, 3.0)
MEMORIES = (50, 300, 1000, None)
UNLIMITED = 1_000_000  # more than the tuples of a run
POLICIES = ("window-aware", "front", "random", "drop-tail")
ARRIVALS, COSTS = ("steady", "bursts"), ("equal", "lognormal")


@dataclass(frozen=True)
class Case:
    """arrivals: of ARRIVALS. costs: of COSTS. most: tuples that may wait; None: any number. load: rho, the mean."""

    arrivals: str
    costs: str
    most: int | None
    load: float

    def setting(self, seed: int, seconds: int) -> Setting:
        """As a run of that seed."""
        return Setting(
            self.load,
            phases=((10, 2 * self.load), (20, self.load / 2)) if self.arrivals == "bursts" else (),
            seconds=seconds,
            warm_s=0,
            seed=seed,
            cost_cv=1.0 if self.costs == "lognormal" else 0.0,
            most=UNLIMITED if self.most is None else self.most,
        )


@dataclass(frozen=True)
class Row:
    """A shedder in a case, over all seeds. windows: that lie within the streams. best: that could have been given at
    most; exact: a schedule gives as many, else it is a bound. given: exact and in time. admitted: let in as they
    opened, where the shedder decides on windows. peak: the most tuples that waited."""

    case: Case
    policy: str
    seeds: tuple[int, ...]
    windows: int
    best: int
    exact: bool
    given: int
    admitted: int
    peak: int

    @property
    def share(self) -> float | None:
        """Of what could have been given; None: nothing could."""
        return self.given / self.best if self.best else None

    @property
    def respects_memory(self) -> bool:
        """Whether never more waited than may."""
        return self.case.most is None or self.peak <= self.case.most


def cases() -> list[Case]:
    """All."""
    return [Case(*each) for each in product(ARRIVALS, COSTS, MEMORIES, LOADS)]


def rows(chosen: Sequence[Case], seeds: Sequence[int] = SEEDS, seconds: int = SECONDS) -> Iterator[Row]:
    """Of each case one row per shedder, all on the same arrivals and costs."""
    for case in chosen:
        settings = [case.setting(seed, seconds) for seed in seeds]
        workloads = [workload(setting) for setting in settings]
        found = [best(case, *each) for each in zip(settings, workloads, strict=True)]
        for policy in POLICIES:
            served = [queue_node.run(*each, policy) for each in zip(settings, workloads, strict=True)]
            yield _row(case, policy, tuple(seeds), found, served)


def best(case: Case, setting: Setting, offered: Workload) -> Optimum:
    """The optimum of a run."""
    (grid,) = setting.grids
    constraints = replace(setting.constraints(grid), most=case.most)
    return optimum(offered, constraints, setting.counted(grid))


def _row(case: Case, policy: str, seeds: tuple[int, ...], found: Sequence[Optimum], served: Sequence[Served]) -> Row:
    return Row(
        case,
        policy,
        seeds,
        windows=sum(each.windows for each in served),
        best=sum(each.windows for each in found),
        exact=all(each.exact for each in found),
        given=sum(each.given for each in served),
        admitted=sum(each.admitted for each in served),
        peak=max(each.peak for each in served),
    )


def line(case_rows: Sequence[Row]) -> str:
    """A cell of the table: windows given by `window-aware` of the optimum, and those of the others."""
    first, *others = case_rows
    bound, rest = "" if first.exact else "at most ", ", ".join(str(each.given) for each in others)
    return f"{first.given} of {bound}{first.best} ({rest})"


def main(seeds: Sequence[int]) -> None:
    """Prints the table as Markdown, a line as soon as it is known, and what each shedder has in all."""
    print(f"seeds {', '.join(map(str, seeds))}; {SECONDS} s each; {', '.join(POLICIES)}")
    print("| arrivals | costs | M | " + " | ".join(f"{load:g}" for load in LOADS) + " |")
    print("|" + "---|" * (3 + len(LOADS)), flush=True)
    everything: list[Row] = []
    for arrivals, costs, most in product(ARRIVALS, COSTS, MEMORIES):
        cells = []
        for load in LOADS:
            found = list(rows([Case(arrivals, costs, most, load)], seeds))
            cells.append(line(found))
            everything += found
        print(f"| {arrivals} | {costs} | {most or '–'} | " + " | ".join(cells) + " |", flush=True)
    for policy in POLICIES:
        mine = [row for row in everything if row.policy == policy]
        given, most_given = sum(row.given for row in mine), sum(row.best for row in mine)
        over = sum(not row.respects_memory for row in mine)
        print(f"{policy}: {given} of {most_given}, {100 * given / most_given:.1f} %; beyond M in {over} of {len(mine)}")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or SEEDS)

__all__ = ["Case", "Row", "best", "cases", "main", "rows"]
