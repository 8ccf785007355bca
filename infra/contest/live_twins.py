"""`make bench-crossing-live`: some of the contest's encounters in real time, each beside its virtual twin.

Under ours and under SQPR + FIFO, into agents on two cores of this machine, which nobody else may use meanwhile. A run
takes 15 s and its agents' start. The sums go into runs/bench-crossing-live.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track
from rich.table import Table

from infra.contest.__main__ import LOADS, RUNS, SAMPLE_SEED, SEED, registry
from infra.contest.contest_query import Traffic
from infra.contest.live_encounter import ended_live
from infra.contest.planned_ways import OURS, SQPR, PlannedWay, Way, planned
from infra.contest.street_load import SAMPLES, measured, played
from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.contest.encounter_run import Outcome
from sim_vehicles.contest.encounter_scene import encounters


@dataclass(frozen=True)
class Twins:
    """One encounter under one way, in real and in virtual time. impact_kmh: None where the two did not touch;
    commanded_s: None where nobody warned."""

    encounter: int
    load: float
    way: str
    live_impact_kmh: float | None
    virtual_impact_kmh: float | None
    live_commanded_s: float | None
    virtual_commanded_s: float | None

    @property
    def agree(self) -> bool:
        """Whether both crash, or neither."""
        return (self.live_impact_kmh is None) == (self.virtual_impact_kmh is None)

    @property
    def later_ms(self) -> float | None:
        """How much later the live warning came; None where one of them did not."""
        if self.live_commanded_s is None or self.virtual_commanded_s is None:
            return None
        return 1000 * (self.live_commanded_s - self.virtual_commanded_s)


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(prog="python -m infra.contest.live_twins", description=__doc__)
    parser.add_argument("--encounters", type=int, default=20)
    given = parser.parse_args()
    if given.encounters < 1:
        parser.error("--encounters: at least 1")
    folder = RUNS / "contest"
    chosen = list(islice(encounters(SEED), given.encounters))
    found: list[Twins] = []
    for place, one in enumerate(track(chosen, "encounters", console=Console(stderr=True))):
        found += both_ways(one, LOADS[place % len(LOADS)], folder)
    document = [asdict(each) for each in found]
    (RUNS / "bench-crossing-live.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    Console().print(table(found), *sums(found), sep="\n")


def both_ways(encounter: Encounter, load: float, folder: Path) -> Iterator[Twins]:
    """One encounter under ours and under SQPR + FIFO."""
    around, at_load = played(encounter, folder), traffic(encounter.stations, folder)
    for way in (OURS, SQPR):
        made = plan(way, encounter.stations, load, folder)
        virtual = around.under(made.plan, registry(), made.cost_scale)
        with TemporaryDirectory() as state:
            live = ended_live(around, made, at_load, load, Path(state))
        yield _twins(encounter.number, load, way, live, virtual)


@cache
def traffic(stations: int, folder: Path) -> Traffic:
    """What so many stations make of the query, as in the contest."""
    of_these = (one for one in encounters(SAMPLE_SEED) if one.stations == stations)
    return measured([played(one, folder) for one in islice(of_these, SAMPLES)], registry())


@cache
def plan(way: Way, stations: int, load: float, folder: Path) -> PlannedWay:
    """As in the contest."""
    return planned(way, traffic(stations, folder), load)


def _twins(number: int, load: float, way: Way, live: Outcome, virtual: Outcome) -> Twins:
    speeds = [each.impact_kmh if each.crashed else None for each in (live, virtual)]
    return Twins(number, load, way.name, speeds[0], speeds[1], live.commanded_s, virtual.commanded_s)


def table(found: Sequence[Twins]) -> Table:
    """A line per run."""
    shown = Table("encounter", "load", "way", "live", "virtual", "live warning later by")
    for each in found:
        later = "-" if each.later_ms is None else f"{each.later_ms:.1f} ms"
        live, virtual = _ended(each.live_impact_kmh), _ended(each.virtual_impact_kmh)
        shown.add_row(f"{each.encounter}", f"{each.load:g}", each.way, live, virtual, later)
    return shown


def sums(found: Sequence[Twins]) -> list[str]:
    """A sentence per way."""
    told = []
    for way in dict.fromkeys(each.way for each in found):
        of_it = [each for each in found if each.way == way]
        later = [each.later_ms for each in of_it if each.later_ms is not None]
        spread = f", live warnings {median(later):.1f} ms later (median; {min(later):.1f} to {max(later):.1f})"
        told.append(f"{way}: {sum(each.agree for each in of_it)} of {len(of_it)} agree{spread if later else ''}")
    return told


def _ended(impact_kmh: float | None) -> str:
    return "avoided" if impact_kmh is None else f"CRASH at {impact_kmh:.0f} km/h"


if __name__ == "__main__":
    main()
