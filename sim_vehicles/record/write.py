"""Makes one recording: runs SUMO, writes motion and scene, and checks that the scene shows what it is for."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
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
    """Writes `crossing_<speed>.csv.gz` and `.json` into folder; nothing where `check` refuses it. BadInputError."""
    crossing = Intersection(speed_kmh)
    recorded = run(crossing, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as new:
        path = Path(new) / f"{crossing.name}.csv.gz"
        beside = Path(new) / f"{crossing.name}.json"
        write_motion(path, recorded.rows)
        scene = _scene(crossing, recorded, seed)
        _write(beside, scene)
        found = facts(read_motion(path), read_scene(beside))
        check(crossing, found)
        _write(beside, {**scene, "facts": found})
        beside.replace(folder / beside.name)
        return path.replace(folder / path.name), found


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


def check(crossing: Intersection, found: Facts) -> None:
    """BadInputError where it is not the scene it should be: a collision course, on which X is hidden from A, and seen
    by somebody no later than the rule of the first sight says."""
    seen = found["first_perceived_s"]
    ego, station = seen["A"], seen["E"]
    if found["least_gap_m"] > 1.0:
        raise bad_input(
            "no_collision_course",
            f"{crossing.name}: A and X stay {found['least_gap_m']} m apart: this is no collision course",
            subject=crossing.name,
        )
    if station is None or (ego is not None and ego <= station):
        raise bad_input(
            "nothing_hidden",
            f"{crossing.name}: E does not perceive X before A does: the buildings hide nothing",
            subject=crossing.name,
        )
    left_m = max(left for left in found["first_perceived_left_m"].values() if left is not None)
    if left_m < crossing.first_sight_m:
        raise bad_input(
            "seen_too_late",
            f"{crossing.name}: X is first perceived when A has {left_m:.2f} m left; D(100 ms) + 1 s is"
            f" {crossing.first_sight_m:.2f} m",
            "lay the bend further out (STRAIGHT_M in record/intersection.py)",
            subject=crossing.name,
        )


def _rounded(line: list[Point]) -> list[list[float]]:
    return [[round(x, 2), round(y, 2)] for x, y in line]


def _write(path: Path, scene: dict[str, Any]) -> None:
    path.write_text(json.dumps(scene, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
