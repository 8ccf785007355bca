"""How often the collision warning warns of nothing, on recorded intersections; what it misses stands beside."""

import os
from dataclasses import replace
from pathlib import Path

from infra.bench.figures import Figure
from infra.bench.vehicles.recorded_split import SPLIT
from sim_vehicles.maps.map_formats import lanelets_of, read_map
from sim_vehicles.traffic.ego_runs import Options, recorded
from sim_vehicles.traffic.measures import FileMeasures, TotalMeasures, in_all, measured
from sim_vehicles.traffic.truth import Limits
from sim_vehicles.world.lane_network import LaneNetwork

TRAFFIC = "SHIMEKIRI_TRAFFIC"  # a directory with recorded intersections; without it that figure is left out
FALSE_PER_10_MINUTES = 1.0
FALSE_LATENCIES_MS = (100, 300)  # measurement to warning


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
