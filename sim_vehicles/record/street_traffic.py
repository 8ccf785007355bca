"""Runs SUMO on the streets, with as many vehicles as bring the wanted number near the middle."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from math import hypot
from pathlib import Path
from random import Random

from sim_vehicles.errors import bad_input
from sim_vehicles.maps.sumo_programs import call, version
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.sizes import Kind
from sim_vehicles.record.streets import (
    BLOCK_M,
    BLOCKS,
    HALF_M,
    LANE_M,
    LENGTH_M,
    NEAR_M,
    SIDEWAYS_MPS2,
    SIGNALS_S,
    SPEED_MPS,
    WIDTH_M,
    wander,
)
from sim_vehicles.world.motion import Motion

STEP_S = 0.5  # of the simulation, and between two records
WARM_UP_S = 180.0
LASTS_S = 90.0
STREETS = 60  # in a route: more than any vehicle drives in that time
SHARE_NEAR = 0.55  # of all vehicles: where the search for their number starts
CLOSE = 0.03  # the mean number near the middle is right to this share
TRIALS = 6


@dataclass(frozen=True)
class Traffic:
    """What SUMO gave: the motion, with times from 0, how many are near the middle in the mean, SUMO's version."""

    motion: Motion
    near: float
    version: str


def traffic(near: int, seed: int) -> Traffic:
    """Traffic with this many vehicles near the middle in the mean, to within 3 %. BadInputError if no number of
    vehicles gives that; MissingToolError if SUMO is not installed."""
    vehicles = round(near / SHARE_NEAR)
    with tempfile.TemporaryDirectory(prefix="shimekiri-record-") as folder:
        here = Path(folder)
        _network(here, seed)
        for _ in range(TRIALS):
            motion = _drive(here, vehicles, seed)
            found = mean_near(motion)
            if abs(found - near) <= CLOSE * near:
                return Traffic(motion, found, version(here))
            vehicles = round(vehicles * near / found)
    raise bad_input(
        "no_such_traffic", f"{near} vehicles do not come together with seed {seed}; try another seed", subject="--seed"
    )


def mean_near(motion: Motion) -> float:
    """How many vehicles are within `NEAR_M` of the middle, in the mean of all records' instants."""
    states = [state for track in motion.tracks.values() for state in track.states]
    instants = len({state.t_s for state in states})
    return sum(hypot(state.x_m, state.y_m) <= NEAR_M for state in states) / instants


def _network(here: Path, seed: int) -> None:
    options = [
        *("--grid", "--grid.number", str(BLOCKS + 1), "--grid.length", f"{BLOCK_M:g}", "--seed", str(seed)),
        *("--offset.disable-normalization", "--offset.x", f"{-HALF_M:g}", "--offset.y", f"{-HALF_M:g}"),
        *("--default-junction-type", "traffic_light", "--tls.cycle.time", str(SIGNALS_S), "--no-turnarounds"),
        *("--junctions.limit-turn-speed", str(SIDEWAYS_MPS2)),
        *("--default.lanewidth", str(LANE_M), "--default.speed", f"{SPEED_MPS:.4f}", "--output-file", "net.xml"),
    ]
    call("netgenerate", options, here)


def _drive(here: Path, vehicles: int, seed: int) -> Motion:
    """SUMO's default drivers: each is as fast as it likes, about the limit, with a standard deviation of a tenth."""
    draw = Random(f"{seed}:streets")  # noqa: S311 (traffic, not secrets)
    each = "".join(
        f'<vehicle id="s{i:03d}" type="car" depart="0" departPos="random_free">'
        f'<route edges="{wander(draw, STREETS)}"/></vehicle>'
        for i in range(vehicles)
    )
    kind = f'<vType id="car" length="{LENGTH_M}" width="{WIDTH_M}"/>'
    (here / "rou.xml").write_text(f"<routes>{kind}{each}</routes>", encoding="utf-8")
    options = [
        *("--net-file", "net.xml", "--route-files", "rou.xml", "--seed", str(seed), "--step-length", str(STEP_S)),
        *("--end", str(WARM_UP_S + LASTS_S + STEP_S), "--fcd-output", "fcd.xml", "--precision", "3"),
        *("--device.fcd.begin", str(WARM_UP_S), "--time-to-teleport", "-1"),
        *("--no-step-log", "true", "--no-warnings", "true"),
    ]
    call("sumo", options, here)
    return _from_zero(read_motion(here / "fcd.xml", kinds={"car": Kind("car", LENGTH_M, WIDTH_M)}))


def _from_zero(motion: Motion) -> Motion:
    """Times from the end of the warm-up on, centimetres: what is finer takes a third of the file and shows nothing."""
    for track in motion.tracks.values():
        track.states = [
            state._replace(
                t_s=round(state.t_s - WARM_UP_S, 1),
                x_m=round(state.x_m, 2),
                y_m=round(state.y_m, 2),
                heading_rad=round(state.heading_rad, 3),
                speed_mps=round(state.speed_mps, 2),
            )
            for state in track.states
        ]
    return motion
