"""Makes a recording of the streets: runs SUMO, writes motion and scene."""

from __future__ import annotations

import json
from math import hypot
from pathlib import Path
from typing import Any, TypedDict

from sim_vehicles.readers.table import write_motion
from sim_vehicles.record.street_traffic import LASTS_S, STEP_S, WARM_UP_S, Traffic, traffic
from sim_vehicles.record.streets import LANE_M, NEAR_M, houses, roads
from sim_vehicles.world.motion import Motion

RANGE_M = 150.0  # as in the blind crossing
STANDS_MPS = 0.1


class StreetFacts(TypedDict):
    """vehicles: in all, and in the mean within `near_m` of the middle. In the mean of all records: their speed, and the
    share that stands."""

    vehicles: int
    near_m: float
    near: float
    speed_mps: float
    standing: float


def record_streets(near: int, folder: Path, seed: int) -> tuple[Path, StreetFacts]:
    """Writes `streets_<near>.csv.gz` and `.json` into folder. BadInputError, MissingToolError: see `traffic`."""
    driven = traffic(near, seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"streets_{near}.csv.gz"
    tracks = driven.motion.tracks
    # By vehicle: what stands between two records of one vehicle changes little, and takes little room.
    write_motion(
        path, ((f"{state.t_s:.1f}", tracks[name], state) for name in sorted(tracks) for state in tracks[name].states)
    )
    facts = _facts(driven)
    text = json.dumps(_scene(near, driven, seed, facts), indent=1, ensure_ascii=False, allow_nan=False)
    path.with_name(f"streets_{near}.json").write_text(text + "\n", encoding="utf-8")
    return path, facts


def _facts(driven: Traffic) -> StreetFacts:
    speeds = [state.speed_mps for track in driven.motion.tracks.values() for state in track.states]
    return StreetFacts(
        vehicles=len(driven.motion.tracks),
        near_m=NEAR_M,
        near=round(driven.near, 1),
        speed_mps=round(sum(speeds) / len(speeds), 2),
        standing=round(sum(speed < STANDS_MPS for speed in speeds) / len(speeds), 3),
    )


def _scene(near: int, driven: Traffic, seed: int, facts: StreetFacts) -> dict[str, Any]:
    ego = _in_the_middle(driven.motion)
    return {
        "shimekiri": 1,
        "scene": f"streets_{near}",
        "recording": f"streets_{near}.csv.gz",
        "ego": ego,
        "stations": [name for name in sorted(driven.motion.tracks) if name != ego],
        "origin": {"latitude_deg": 35.0, "longitude_deg": 137.0},
        "sensing": {"range_m": RANGE_M},
        "occluders": [{"name": name, "polygon": polygon} for name, polygon in houses().items()],
        "roads": [
            {"name": name, "lanes_each_way": 1, "lane_width_m": LANE_M, "line": line} for name, line in roads().items()
        ],
        "made": {
            "with": f"Eclipse SUMO {driven.version}",
            "command": f"sim-vehicles record-streets --stations {near} --seed {seed}",
            "seed": seed,
            "step_s": STEP_S,
            "warm_up_s": WARM_UP_S,
        },
        "facts": facts,
    }


def _in_the_middle(motion: Motion) -> str:
    """The vehicle that is nearest to the middle halfway through."""
    states = motion.at(LASTS_S / 2)
    return min(states, key=lambda name: (hypot(states[name].x_m, states[name].y_m), name))
