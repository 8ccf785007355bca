"""Facts of the Autoware Reference System: its nodes, their inputs and periods, as its builder makes them.

github.com/ros-realtime/reference-system (Apache-2.0), autoware_system_builder.hpp and timing/default.hpp. Every node
that computes does the same fixed work; how long that takes is what a platform says, and here the load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MS = 1_000_000
SECOND = 1000 * MS
Kind = Literal["transform", "fusion", "cyclic", "intersection"]


@dataclass(frozen=True)
class Callback:
    """What a node computes of its inputs. `latest`: inputs that trigger nothing, whose latest values it reads."""

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    latest: tuple[str, ...] = ()


FRONT, REAR, SINK, PLANNER = "FrontLidarDriver", "RearLidarDriver", "ObjectCollisionEstimator", "BehaviorPlanner"
TIMER = f"{PLANNER}Timer"
PERIODS_MS: Mapping[str, int] = {
    FRONT: 100,
    REAR: 100,
    "PointCloudMap": 120,
    "Visualizer": 60,
    "Lanelet2Map": 100,
    "EuclideanClusterSettings": 25,
    TIMER: 100,
}
CALLBACKS = (
    Callback("PointsTransformerFront", "transform", (FRONT,)),
    Callback("PointsTransformerRear", "transform", (REAR,)),
    Callback("VoxelGridDownsampler", "transform", ("PointCloudFusion",)),
    Callback("PointCloudMapLoader", "transform", ("PointCloudMap",)),
    Callback("RayGroundFilter", "transform", ("PointCloudFusion",)),
    Callback(SINK, "transform", ("EuclideanClusterDetector",)),
    Callback("MPCController", "transform", (PLANNER,)),
    Callback("ParkingPlanner", "transform", ("Lanelet2MapLoader",)),
    Callback("LanePlanner", "transform", ("Lanelet2MapLoader",)),
    Callback("PointCloudFusion", "fusion", ("PointsTransformerFront", "PointsTransformerRear")),
    Callback("NDTLocalizer", "fusion", ("VoxelGridDownsampler", "PointCloudMapLoader")),
    Callback("VehicleInterface", "fusion", ("MPCController", PLANNER)),
    Callback("Lanelet2GlobalPlanner", "fusion", ("Visualizer", "NDTLocalizer")),
    Callback("Lanelet2MapLoader", "fusion", ("Lanelet2Map", "Lanelet2GlobalPlanner")),
    Callback(
        PLANNER,
        "cyclic",
        (TIMER,),
        (SINK, "NDTLocalizer", "Lanelet2GlobalPlanner", "Lanelet2MapLoader", "ParkingPlanner", "LanePlanner"),
    ),
    Callback("EuclideanClusterDetector", "intersection", ("RayGroundFilter",)),
    Callback("EuclideanIntersection", "intersection", ("EuclideanClusterSettings",)),
)
COMMANDS: Mapping[str, str] = {"VehicleDBWSystem": "VehicleInterface", "IntersectionOutput": "EuclideanIntersection"}
UNEVEN = frozenset({"NDTLocalizer", "Lanelet2GlobalPlanner", "Lanelet2MapLoader"})  # fusions of inputs of other periods
HOT_PATH = "hot_path"  # our output beside the commands: what the latency of the hot path is measured at
DEADLINES_MS: Mapping[str, int] = {HOT_PATH: 300, "VehicleDBWSystem": 100, "IntersectionOutput": 100}
DRIVE = "VehicleDBWSystem"  # the command that rests on what the planner reads
AGE_MS = 60_000  # of the data behind it: the reference system demands none, so this is a limit that never binds


def rates() -> dict[str, float]:
    """Runs per second of each callback where nothing is dropped but at fusions, which run as often as their slowest
    input comes."""
    found = {name: 1000 / period_ms for name, period_ms in PERIODS_MS.items()}
    waiting = list(CALLBACKS)
    while waiting:
        ready = [each for each in waiting if all(name in found for name in each.inputs)]
        found |= {each.name: min(found[name] for name in each.inputs) for each in ready}
        waiting = [each for each in waiting if each.name not in found]
    return {each.name: found[each.name] for each in CALLBACKS}


def cost_ns(load: float, nodes: int) -> int:
    """CPU time of each callback that puts that load on so many cores, in whole us."""
    return round(load * nodes * 1e6 / sum(rates().values())) * 1000
