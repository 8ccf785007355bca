"""`make bench-crossing`: encounters at blind crossings in dense traffic, under each way and load, in virtual time.

Encounter n runs at load n modulo the number of loads, under every way, and at the physical limit. What was run is kept
line by line, so a run that was broken off goes on; the sums go into runs/bench-crossing.json.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from infra.contest.contest_query import CHAIN, Traffic, query
from infra.contest.outcomes import Crashes, summed
from infra.contest.planned_ways import WAYS, PlannedWay, planned
from infra.contest.street_load import SAMPLES, measured, played
from node_agent.operators.registry import Registry
from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.contest.encounter_scene import encounters
from sim_vehicles.operators.installed import operators_of_vehicles

LOADS = (0.5, 0.8, 1.0, 1.2)
SEED, SAMPLE_SEED = 77, 1
LIMIT = "physical limit: no latency"
RUNS = Path("runs")


@dataclass(frozen=True)
class Line:
    """One encounter under one way. impact_kmh: None where the two did not touch."""

    number: int
    load: float
    way: str
    impact_kmh: float | None
    commanded_s: float | None
    others: int

    @property
    def key(self) -> tuple[int, str]:
        """What it is of."""
        return self.number, self.way


Plans = tuple[PlannedWay, ...]  # of all ways, in their order


def plans(stations: int, folder: Path) -> dict[float, Plans]:
    """By load, for the traffic that so many stations make."""
    of_these = (one for one in encounters(SAMPLE_SEED) if one.stations == stations)
    traffic = measured([played(one, folder) for one in islice(of_these, SAMPLES)], registry())
    return {load: tuple(planned(way, traffic, load) for way in WAYS) for load in LOADS}


def code() -> str:
    """Of the operators and of the query, shortened: lines of other ones are no part of this contest."""
    operators = json.dumps(registry().describe(), sort_keys=True)
    return sha256((operators + query(Traffic(1.0, dict.fromkeys(CHAIN, 1.0)), 1.0, 1)).encode()).hexdigest()[:8]


@cache
def registry() -> Registry:
    """The operators of the vehicles."""
    return operators_of_vehicles()


def run(encounter: Encounter, load: float, made: Plans, folder: Path) -> list[Line]:
    """One encounter under every way."""
    one = played(encounter, folder)
    found = [(LIMIT, one.at_once(registry()))]
    for each in made:
        outcome = one.under(each.plan, registry(), each.cost_scale)
        if outcome.failures:
            raise SystemExit(f"encounter {encounter.number}, {each.way.name}: {outcome.failures[0]}")
        found.append((each.way.name, outcome))
    return [
        Line(encounter.number, load, way, outcome.impact_kmh if outcome.crashed else None, outcome.commanded_s,
             outcome.others)
        for way, outcome in found
    ]  # fmt: skip


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(prog="python -m infra.contest", description=__doc__)
    parser.add_argument("--encounters", type=int, default=40, help="how many; the published figures are of 500")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    folder = RUNS / "contest"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(islice(encounters(SEED), given.encounters))
    lines_file = folder / f"lines-{code()}.jsonl"
    lines = list(_lines(lines_file))
    there = {line.number for line in lines}
    left = [(one, LOADS[place % len(LOADS)]) for place, one in enumerate(chosen) if one.number not in there]
    with Progress(console=Console(stderr=True)) as progress, ProcessPoolExecutor(given.jobs) as pool:
        for done in _run(pool, progress, left, folder):
            lines += done
            with lines_file.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(line)) + "\n" for line in done)
    numbers = {one.number for one in chosen}
    found = sums([line for line in lines if line.number in numbers])
    document = [{"load": load, "way": way, **asdict(each)} for (load, way), each in found.items()]
    (RUNS / "bench-crossing.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    Console().print(_table(found))


def _run(
    pool: ProcessPoolExecutor, progress: Progress, left: list[tuple[Encounter, float]], folder: Path
) -> Iterator[list[Line]]:
    """Each of the encounters, at its load, as it is done."""
    stations = sorted({one.stations for one, _ in left})
    planning = progress.add_task("plans", total=len(stations))
    made: dict[int, dict[float, Plans]] = {}
    for n, found in zip(stations, pool.map(plans, stations, [folder] * len(stations)), strict=True):
        made[n] = found
        progress.advance(planning)
    running = progress.add_task("encounters", total=len(left))
    waiting = [pool.submit(run, one, load, made[one.stations][load], folder) for one, load in left]
    for done in as_completed(waiting):
        progress.advance(running)
        yield done.result()


def sums(lines: list[Line]) -> dict[tuple[float, str], Crashes]:
    """By load and way."""
    impacts: dict[tuple[float, str], list[float | None]] = defaultdict(list)
    for line in lines:
        impacts[line.load, line.way].append(line.impact_kmh)
    ways = [LIMIT, *(way.name for way in WAYS)]
    return {(load, way): summed(impacts[load, way]) for load in LOADS for way in ways if (load, way) in impacts}


def _lines(path: Path) -> Iterator[Line]:
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            yield Line(**json.loads(text))


def _table(found: dict[tuple[float, str], Crashes]) -> Table:
    table = Table("load", "way", "encounters", "crashed", "95 %", "impact km/h", "95 %")
    for (load, way), one in found.items():
        share, impact = one.share, one.impact_kmh
        speeds = ("-", "") if impact is None else (f"{impact.value:.0f}", f"{impact.low:.0f} to {impact.high:.0f}")
        between = f"{share.low:.0%} to {share.high:.0%}"
        table.add_row(f"{load:g}", way, f"{one.encounters}", f"{share.value:.0%}", between, *speeds)
    return table


if __name__ == "__main__":
    main()
