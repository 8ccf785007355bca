"""Makes one recording: runs SUMO, writes motion and scene, and checks that the scene shows what it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.scene_file import read_scene
from sim_vehicles.readers.table import write_motion
from sim_vehicles.record.facts import Facts, facts
from sim_vehicles.record.intersection import CONFLICT, CONFLICT_S, LANE_M, STEP_S, Intersection
from sim_vehicles.record.sumo import Recorded, run
from sim_vehicles.world.geometry import Point

RANGE_M = 150.0  # a long-range surround sensor; it is the buildings that hide X, not the reach


def record(speed_kmh: int, folder: Path, seed: int) -> tuple[Path, Facts]:
    """Writes `crossing_<speed>.csv.gz` and `.json` into folder. BadInputError if it is not the scene it should be."""
    crossing = Intersection(speed_kmh)
    recorded = run(crossing, seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{crossing.name}.csv.gz"
    write_motion(path, recorded.rows)
    beside = folder / f"{crossing.name}.json"
    scene = _scene(crossing, recorded, seed)
    _write(beside, scene)
    found = facts(read_motion(path), read_scene(beside))
    _write(beside, {**scene, "facts": found})
    _check(path, found)
    return path, found


def _scene(crossing: Intersection, recorded: Recorded, seed: int) -> dict[str, Any]:
    return {
        "shimekiri": 1,
        "scene": crossing.name,
        "recording": f"{crossing.name}.csv.gz",
        "speed_kmh": crossing.speed_kmh,
        "ego": "A",
        "crossing": "X",
        "stations": ["B", "D", "E"],
        "no_radio": ["C", "F", "G", "X"],
        "start_s": CONFLICT_S - 4.0,  # before that more than 10 of 20 messages are about vehicles that close in
        "conflict": {"x_m": CONFLICT[0], "y_m": CONFLICT[1], "ego_there_s": CONFLICT_S},
        "origin": {"latitude_deg": 35.0, "longitude_deg": 137.0},
        "sensing": {"range_m": RANGE_M},
        "occluders": [{"name": name, "polygon": _rounded(line)} for name, line in crossing.buildings().items()],
        "roads": [
            {"name": name, "lanes_each_way": 1, "lane_width_m": LANE_M, "line": _rounded(line)}
            for name, line in crossing.roads().items()
        ],
        "made": {
            "with": f"Eclipse SUMO {recorded.version}",
            "command": f"sim-vehicles record --speed {crossing.speed_kmh} --seed {seed}",
            "seed": seed,
            "step_s": STEP_S,
            "sumo_says_collision_s": recorded.collision_s,
        },
    }


def _check(path: Path, found: Facts) -> None:
    seen = found["first_perceived_s"]
    ego, station = seen["A"], seen["E"]
    if found["least_gap_m"] > 1.0:
        raise bad_input(
            "no_collision_course",
            f"A and X stay {found['least_gap_m']} m apart: this is no collision course",
            file=path,
        )
    if station is None or (ego is not None and ego <= station):
        raise bad_input("nothing_hidden", "E does not perceive X before A does: the buildings hide nothing", file=path)


def _rounded(line: list[Point]) -> list[list[float]]:
    return [[round(x, 2), round(y, 2)] for x, y in line]


def _write(path: Path, scene: dict[str, Any]) -> None:
    path.write_text(json.dumps(scene, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
