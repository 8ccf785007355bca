"""Runs SUMO on the crossing and reads its floating-car data back. Needs the extra [record]."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as Tree  # its input is what SUMO wrote here a moment ago
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sim_vehicles.maps.sumo_programs import call, version
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.sizes import Kind
from sim_vehicles.record.intersection import (
    ARM_M,
    CARS,
    CONFLICT,
    CONFLICT_S,
    END_S,
    LANE_M,
    STEP_S,
    X_BEHIND_M,
    Intersection,
)
from sim_vehicles.world.motion import State, Track

# Without these SUMO's junction model always lets one of the two wait.
RECKLESS = 'jmIgnoreFoeProb="1" jmIgnoreFoeSpeed="50" jmIgnoreJunctionFoeProb="1"'


@dataclass(frozen=True)
class Recorded:
    """What SUMO gave: rows in order of time and id, its version, and when it saw A and X collide (None: it did not)."""

    rows: list[tuple[str, Track, State]]
    version: str
    collision_s: float | None


@dataclass(frozen=True)
class _Lane:
    length_m: float
    start: tuple[float, float]
    end: tuple[float, float]


def run(crossing: Intersection, seed: int) -> Recorded:
    """Builds the network, drives the vehicles, returns their motion. MissingToolError if SUMO is not installed."""
    with tempfile.TemporaryDirectory(prefix="shimekiri-record-") as folder:
        here = Path(folder)
        _network(crossing, here)
        lanes = _lanes(here / "net.xml")
        (here / "rou.xml").write_text(_routes(crossing, lanes), encoding="utf-8")
        options = [
            *("--net-file", "net.xml", "--route-files", "rou.xml", "--seed", str(seed)),
            *("--step-length", str(STEP_S), "--end", str(END_S + STEP_S), "--precision", "5"),
            *("--collision.check-junctions", "true", "--collision.mingap-factor", "0", "--collision.action", "warn"),
            *("--collision-output", "collisions.xml", "--fcd-output", "fcd.xml", "--no-step-log", "true"),
            *("--time-to-teleport", "-1", "--no-warnings", "true"),
        ]
        call("sumo", options, here)
        return Recorded(list(_fcd(here / "fcd.xml")), version(here), _collision(here / "collisions.xml"))


def _network(crossing: Intersection, here: Path) -> None:
    axes = crossing.roads()
    ends = "".join(f'<node id="{arm}" x="{line[-1][0]:.4f}" y="{line[-1][1]:.4f}"/>' for arm, line in axes.items())
    nodes = f'<nodes><node id="centre" x="0" y="0" type="priority"/>{ends}</nodes>'
    edges = []
    for arm, line in axes.items():
        # The road that A is on has the right of way.
        common = f'numLanes="1" speed="{crossing.speed_mps:.6f}" priority="{2 if arm in ("south", "north") else 1}"'
        out = " ".join(f"{x:.4f},{y:.4f}" for x, y in line)
        back = " ".join(f"{x:.4f},{y:.4f}" for x, y in reversed(line))
        edges.append(f'<edge id="from_{arm}" from="{arm}" to="centre" {common} shape="{back}"/>')
        edges.append(f'<edge id="to_{arm}" from="centre" to="{arm}" {common} shape="{out}"/>')
    # From 4.5 m on a driver without the right of way would see the main road, and slow down until then; X does not.
    blind = '<connection from="from_east" to="to_west" fromLane="0" toLane="0" visibility="300"/>'
    (here / "con.xml").write_text(f"<connections>{blind}</connections>", encoding="utf-8")
    (here / "nod.xml").write_text(nodes, encoding="utf-8")
    (here / "edg.xml").write_text(f"<edges>{''.join(edges)}</edges>", encoding="utf-8")
    options = [
        *("--node-files", "nod.xml", "--edge-files", "edg.xml", "--connection-files", "con.xml"),
        *("--output-file", "net.xml", "--no-warnings", "true"),
        *("--offset.disable-normalization", "true", "--no-turnarounds", "true", "--default.lanewidth", str(LANE_M)),
        *("--precision", "4"),
    ]
    call("netconvert", options, here)


def _lanes(net: Path) -> dict[str, _Lane]:
    lanes = {}
    for lane in Tree.parse(net).iter("lane"):  # noqa: S314 (own file)
        shape = [tuple(float(part) for part in point.split(",")) for point in lane.attrib["shape"].split()]
        (x0, y0), (x1, y1) = shape[0][:2], shape[-1][:2]
        lanes[lane.attrib["id"]] = _Lane(float(lane.attrib["length"]), (x0, y0), (x1, y1))
    return lanes


def _routes(crossing: Intersection, lanes: dict[str, _Lane]) -> str:
    v = crossing.speed_mps
    types = "".join(
        f'<vType id="{name}" length="{car.length_m}" width="{car.width_m}" maxSpeed="{v:.6f}" speedFactor="1" '
        f'speedDev="0" sigma="0" tau="1" minGap="2" {RECKLESS if car.reckless else ""}/>'
        for name, car in CARS.items()
    )
    west = lanes["from_west_0"].length_m
    parts = [
        _standing("E", west - 1.0),
        _standing("D", west - 8.0),
        _driving("X", "from_east", "to_west", _x_departs(crossing, lanes["from_east_0"]), v),
        _driving("C", "from_north", "to_south", _departs(v, CONFLICT_S - 9.0, 1.6), v),
        _driving("B", "from_south", "to_west", _departs(v, CONFLICT_S - 9.0, 1.6), v),
        _driving("A", "from_south", "to_north", _departs(v, CONFLICT_S, CONFLICT[1], CARS["A"].length_m / 2), v),
        _driving("F", "from_south", "to_north", _departs(v, CONFLICT_S - 2.2, CONFLICT[1]), v),
        _driving("G", "from_south", "to_north", _departs(v, CONFLICT_S - 4.4, CONFLICT[1]), v),
    ]
    return f"<routes>{types}{''.join(parts)}</routes>"


def _departs(v: float, at_s: float, to_m: float, ahead_m: float = 0.0) -> float:
    """Where on its arm (metres from the arm's end) a front starts to be `to_m` (+ ahead) past the centre at at_s."""
    return ARM_M + to_m + ahead_m - v * at_s


def _x_departs(crossing: Intersection, lane: _Lane) -> float:
    """X's centre is X_BEHIND_M before the conflict point when A's is on it; the lane ends where the junction begins."""
    front_then = CONFLICT[0] + X_BEHIND_M - CARS["X"].length_m / 2
    return lane.length_m - (crossing.speed_mps * CONFLICT_S - (lane.end[0] - front_then))


def _driving(name: str, start: str, to: str, position_m: float, v: float) -> str:
    return (
        f'<vehicle id="{name}" type="{name}" depart="0" departPos="{position_m:.4f}" departSpeed="{v:.6f}" '
        f'insertionChecks="none"><route edges="{start} {to}"/></vehicle>'
    )


def _standing(name: str, position_m: float) -> str:
    return (
        f'<vehicle id="{name}" type="{name}" depart="0" departPos="{position_m:.4f}" departSpeed="0" '
        f'insertionChecks="none"><route edges="from_west to_east"/>'
        f'<stop lane="from_west_0" endPos="{position_m:.4f}" duration="1000"/></vehicle>'
    )


def _fcd(path: Path) -> Iterator[tuple[str, Track, State]]:
    """What SUMO wrote, in order of time and id, up to the end of the scene."""
    motion = read_motion(path, kinds={name: Kind(car.type, car.length_m, car.width_m) for name, car in CARS.items()})
    states = [(state, track) for track in motion.tracks.values() for state in track.states if state.t_s <= END_S]
    for state, track in sorted(states, key=lambda one: (one[0].t_s, one[1].id)):
        yield f"{state.t_s:.2f}", track, state


def _collision(path: Path) -> float | None:
    for one in Tree.parse(path).iter("collision"):  # noqa: S314 (own file)
        if {one.attrib["collider"], one.attrib["victim"]} == {"A", "X"}:
            return float(one.attrib["time"])
    return None
