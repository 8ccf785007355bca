"""`make bench-crossing`: encounters at blind crossings in dense traffic, under each way and load, in virtual time.

Encounter n runs at load n modulo the number of loads, under every way, and without any latency. Two ways that explain
what comes of the others run in a fifth of the encounters. A run that was broken off goes on. The sums go into
runs/bench-crossing.json, the encounters into runs/bench-crossing.jsonl. `--publish` runs nothing: it puts the sums
where the page about a run finds them, and the encounters beside this module.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from infra.contest.encounter_journal import ENCOUNTERS, EncounterJournal, Ended, read_encounters, write_encounters
from infra.contest.outcomes import paired, summed
from infra.contest.planned_ways import OURS, WAYS, PlannedWay, Way, planned
from infra.contest.street_load import SAMPLES, measured, played
from node_agent.operators.registry import Registry
from sim_vehicles.contest.contest_results import (
    PUBLISHED,
    ContestResults,
    WayAtLoad,
    read_results,
    write_results,
)
from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.contest.encounter_scene import encounters
from sim_vehicles.operators.installed import operators_of_vehicles

LOADS = (0.5, 0.8, 1.0, 1.2)
SEED, SAMPLE_SEED = 2027, 1
AT_ONCE = "no latency"
RUNS = Path("runs")
RESULTS = RUNS / "bench-crossing.json"
Plans = tuple[PlannedWay, ...]  # of all ways, in their order


@cache
def registry() -> Registry:
    """The operators of the vehicles."""
    return operators_of_vehicles()


def plans(stations: int, folder: Path) -> dict[float, Plans]:
    """By load, for the traffic that so many stations make."""
    of_these = (one for one in encounters(SAMPLE_SEED) if one.stations == stations)
    traffic = measured([played(one, folder) for one in islice(of_these, SAMPLES)], registry())
    return {load: tuple(planned(way, traffic, load) for way in WAYS) for load in LOADS}


@dataclass(frozen=True)
class Turn:
    """An encounter and its place in the contest, from 0."""

    place: int
    encounter: Encounter

    @property
    def load(self) -> float:
        """What both nodes have to do, as a share of what they can."""
        return LOADS[self.place % len(LOADS)]

    def has(self, way: Way) -> bool:
        """Whether it is run that way."""
        return self.place // len(LOADS) % way.every == 0


def run(turn: Turn, made: Plans, folder: Path) -> Ended:
    """One encounter under every way that it has."""
    one = played(turn.encounter, folder)
    outcomes = {AT_ONCE: one.at_once(registry())}
    for each in (each for each in made if turn.has(each.way)):
        outcomes[each.way.name] = one.under(each.plan, registry(), each.cost_scale)
        if failures := outcomes[each.way.name].failures:
            raise RuntimeError(f"encounter {turn.encounter.number}, {each.way.name}: {failures[0]}")
    impacts = {way: outcome.impact_kmh if outcome.crashed else None for way, outcome in outcomes.items()}
    commanded_s = {way: outcome.commanded_s for way, outcome in outcomes.items()}
    return Ended(turn.encounter.number, turn.load, impacts, commanded_s)


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(prog="python -m infra.contest", description=__doc__)
    parser.add_argument("--encounters", type=int, default=40, help="how many; the published figures are of 500")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--publish", action="store_true", help=f"puts {RESULTS} where the page finds it; runs nothing")
    given = parser.parse_args()
    if given.publish:
        write_results(read_results(RESULTS), PUBLISHED)
        write_encounters(read_encounters(RESULTS.with_suffix(".jsonl")), ENCOUNTERS)
        return
    if given.encounters < 1 or given.jobs < 1:
        parser.error("--encounters and --jobs: at least 1")
    folder = RUNS / "contest"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(islice(encounters(SEED), given.encounters))
    journal = EncounterJournal(folder)
    ended = {each.number: each for each in journal.read()}
    left = [Turn(place, one) for place, one in enumerate(chosen) if one.number not in ended]
    with Progress(console=Console(stderr=True)) as progress, ProcessPoolExecutor(given.jobs) as pool:
        try:
            for each in _run(pool, progress, left, folder):
                journal.add(each)
                ended[each.number] = each
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    counted = [ended[one.number] for one in chosen]
    found = results(counted)
    write_results(found, RESULTS)
    write_encounters(counted, RESULTS.with_suffix(".jsonl"))
    Console().print(_table(found))


def _run(pool: ProcessPoolExecutor, progress: Progress, left: list[Turn], folder: Path) -> Iterator[Ended]:
    """Each of the encounters, at its load, as it is done."""
    stations = sorted({one.encounter.stations for one in left})
    planning = progress.add_task("plans", total=len(stations))
    made: dict[int, dict[float, Plans]] = {}
    for n, found in zip(stations, pool.map(plans, stations, [folder] * len(stations)), strict=True):
        made[n] = found
        progress.advance(planning)
    running = progress.add_task("encounters", total=len(left))
    waiting = [pool.submit(run, one, made[one.encounter.stations][one.load], folder) for one in left]
    for done in as_completed(waiting):
        progress.advance(running)
        yield done.result()


def results(ended: Sequence[Ended]) -> ContestResults:
    """What came of all encounters, by load and way; each way beside ours, in the same encounters."""
    loads = [load for load in LOADS if any(each.load == load for each in ended)]
    rows = [_row(ended, load, way) for load in loads for way in (AT_ONCE, *(way.name for way in WAYS))]
    return ContestResults(f"{datetime.now(UTC):%Y-%m-%d}", _revision(), SEED, len(ended), OURS.name, tuple(rows))


def _row(ended: Sequence[Ended], load: float, way: str) -> WayAtLoad:
    with_it = [each.impacts_kmh for each in ended if each.load == load and way in each.impacts_kmh]
    ours, its = ([each[one] for each in with_it] for one in (OURS.name, way))
    return WayAtLoad(load, way, summed(its), None if way == OURS.name else paired(ours, its))


def _revision() -> str:
    """Of the checkout; empty outside of one."""
    git = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def _table(found: ContestResults) -> Table:
    ours = found.compared_with
    table = Table(
        "load", "way", "encounters", "crashed", "95 %", "km/h, mean of all", "95 %", f"{ours} alone, it alone", "p"
    )
    for each in found.rows:
        share, speed, pair = each.crashes.share, each.crashes.speed_kmh, each.pair
        mean = ("", "") if speed is None else (f"{speed.value:.1f}", f"{speed.low:.1f} to {speed.high:.1f}")
        table.add_row(
            f"{each.load:g}", each.way, f"{each.crashes.encounters}", f"{share.value:.0%}",
            f"{share.low:.0%} to {share.high:.0%}",
            *mean,
            "" if pair is None else f"{pair.only_first}, {pair.only_second}",
            "" if pair is None else f"{pair.by_chance:.3f}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
