"""The collision warning: what a tuple costs, who crashes at which speed and latency, how often it warns of nothing."""

import os
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

from infra.bench.figures import Figure
from infra.bench.recorded_split import SPLIT
from sim_vehicles.closed_loop.constant_latency import CrashRow, Impacts, crash_table
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.maps.map_formats import lanelets_of, read_map
from sim_vehicles.operators.chain import Chain
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.traffic.ego_runs import Options, recorded
from sim_vehicles.traffic.measures import FileMeasures, TotalMeasures, in_all, measured
from sim_vehicles.traffic.truth import Limits
from sim_vehicles.world.lane_network import LaneNetwork

ROUNDS = 5
PERIOD_NS, LATENCY_NS = 500_000_000, 200_000_000
FEEDS = [
    Feed("v2v", "a", "vehicle.Cpm", 20, PERIOD_NS),
    Feed("sensor", "a", "vehicle.Sensor", 10, PERIOD_NS),
    Feed("centre", "b", "vehicle.Hazard", 100, PERIOD_NS),
]
SCENE, UNTIL_NS = "crossing_50", 12_000_000_000
SPEEDS_KMH, PHASES = (30, 50, 70), 20
TRAFFIC = "SHIMEKIRI_TRAFFIC"  # a directory with recorded intersections; without it that figure is left out
FALSE_PER_10_MINUTES = 1.0
FALSE_LATENCIES_MS = (100, 300)  # measurement to warning


def costs() -> list[Figure]:
    """CPU time of every operator per tuple, called as a node calls it, on the messages of a crossing."""
    scenario = load_scenario(SCENE)
    start_ns = round((scenario.scene.start_s or 0) * 1e9)
    sent = Stimuli(FEEDS, scenario, StimulusOptions(start_ns, UNTIL_NS)).bursts()
    rounds = [_round(sent) for _ in range(ROUNDS)]
    how = f"median of {ROUNDS} rounds over {SCENE}, one core, no node around it"
    each = {name: median(one[name] for one in rounds) for name in rounds[0]}
    return [
        Figure("warning_tuple_us", each.pop("relevant"), "us", None, f"O2 to O21 on a tuple that O3 passes; {how}"),
        *(Figure(f"operator_{name}_us", us, "us", None, f"per call; {how}") for name, us in each.items()),
    ]


def _round(sent: list[Any]) -> dict[str, float]:
    chain = Chain(clock_ns=perf_counter_ns)
    for burst in sent:
        origin_ns = burst.at_ns - burst.age_ns
        for value in burst.values:
            chain.admit(burst.source, value, origin_ns + LATENCY_NS, origin_ns)
    per_call = {name: chain.spent_ns[name] / calls / 1000 for name, calls in chain.calls.items() if calls}
    aside = ("O1", "O5", "O6")  # do not lead to the warning
    return per_call | {"relevant": sum(us for name, us in per_call.items() if name not in aside)}


def crashes() -> list[Figure]:
    """Crashes of 20 burst phases by speed and latency, every tuple with the same latency; beside the closed form."""
    return [_crash_figure(row) for row in crash_table(SPEEDS_KMH, phases=PHASES)]


def _crash_figure(row: CrashRow) -> Figure:
    ms = row.latency_ns // 1_000_000
    how = (
        f"of {row.phases} burst phases; {_impact(row.driven)}; closed form: {row.closed_form.crashes}, "
        f"{_impact(row.closed_form)};"
        " automatic braking"
    )
    return Figure(f"crash_{row.speed_kmh}kmh_{ms}ms", row.driven.crashes, "crashes", None, how)


def _impact(found: Impacts) -> str:
    if found.median_kmh is None:
        return "no impact"
    return f"impact {found.median_kmh:.0f} km/h in the middle, {found.most_kmh:.0f} at most"


def false_warnings() -> list[Figure]:
    """Warnings that came to nothing, on recorded intersections, every vehicle in turn as the one that is warned, with
    the lanes of its map and without; of the recordings of either side of the split that are there. No other one is
    read."""
    where = os.environ.get(TRAFFIC)
    found = []
    for side, names in SPLIT.items():
        files = [file for name in names if where and (file := _file(Path(where), name))]
        if files:
            found += _false_figures(side, files, len(names))
    return found


def _file(where: Path, name: str) -> Path | None:
    return next((file for end in ("csv", "xml") if (file := where / f"{name}.{end}").is_file()), None)


def _network(file: Path) -> LaneNetwork | None:
    """Of a CommonRoad scenario its own; of PLACE_NUMBER.csv that of PLACE.osm beside it, if it is there."""
    map_ = file.parent / f"{file.stem.rpartition('_')[0]}.osm"
    return read_map(map_) if map_.is_file() else lanelets_of(file)


def _false_figures(side: str, files: list[Path], names: int) -> list[Figure]:
    cases = [(ms, lanes) for lanes in (True, False) for ms in FALSE_LATENCIES_MS]
    found: dict[tuple[int, bool], list[FileMeasures]] = {case: [] for case in cases}
    limits, mapped = Limits(), 0
    for file in files:
        one = recorded(file, limits, network=_network(file))
        mapped += one.network is not None
        for ms, lanes in cases:
            run = (one if lanes else replace(one, network=None)).run(Options(latency_ns=ms * 1_000_000), jobs=2)
            found[ms, lanes].append(measured(run, limits))
    return [
        _false_figure(side, ms, f"lanes of {mapped} of them" if lanes else "no lanes", in_all(found[ms, lanes]), names)
        for ms, lanes in cases
    ]


def _false_figure(side: str, ms: int, lanes: str, total: TotalMeasures, names: int) -> Figure:
    critical = total.critical
    how = (
        f"{total.vehicle_minutes:.0f} vehicle-minutes of {names} recordings, {lanes}; {total.onsets} warnings, of which"
        f" {total.true} came true and {total.false} did not; crossing conflicts that nobody was warned of:"
        f" {total.missed['crossing']}; critical ones warned of 1 s before: {critical.in_time} of"
        f" {critical.in_time + critical.late}; what the recording's end leaves open counts as false"
    )
    rate, name = total.at_most_false_per_minute * 10, f"false_warnings_{side}_{ms}ms"
    name += "_no_lanes" if lanes == "no lanes" else ""
    return Figure(name, rate, "per 10 vehicle-minutes", FALSE_PER_10_MINUTES, how)
