"""CommonRoad scenarios of a pair, built with commonroad-io: its lanes as an intersection, or open ground."""

from __future__ import annotations

import numpy as np
from commonroad.geometry.shape import Rectangle
from commonroad.prediction.prediction import TrajectoryPrediction
from commonroad.scenario.intersection import Intersection, IntersectionIncomingElement
from commonroad.scenario.lanelet import Lanelet, LaneletNetwork
from commonroad.scenario.obstacle import DynamicObstacle, ObstacleType
from commonroad.scenario.scenario import Scenario, Tag
from commonroad.scenario.state import CustomState, InitialState
from commonroad.scenario.trajectory import Trajectory

from infra.second_witness.crime.lanes import Lane
from infra.second_witness.pair_file import Driven, NearPair

ONE, OTHER = 1, 2
ROAD_M = 10.0  # straight, that leads to a lane
OPEN_M = 300.0  # from the middle of the pair to the border of the open ground
OPEN = 900
INTERSECTION = 500
BASES = (100, 200)  # of the numbers of each one's lanelets
OFF_LINE_M = (
    0.01  # commonroad-io takes a centre exactly on a lanelet's first line for one outside of it (arccos of 1.0)
)


def on_lanes(pair: NearPair, lanes: tuple[Lane, Lane]) -> Scenario:
    """Each lane is the way of one of two incomings straight over an intersection, so that the library has a conflict
    area: the ground that both have."""
    network, incomings = [], set()
    for base, lane in zip(BASES, lanes, strict=True):
        before = lane.between(0, 1).longer(ROAD_M).between(0, 2)
        network += [_lanelet(base + 1, before, successor=base + 2), _lanelet(base + 2, lane, predecessor=base + 1)]
        incomings.add(IntersectionIncomingElement(base, {base + 1}, set(), {base + 2}, set()))
    lanelets = LaneletNetwork.create_from_lanelet_list(network)
    lanelets.add_intersection(Intersection(INTERSECTION, list(incomings)))
    scenario = _scenario(pair, lanelets, BASES[0] + 2, BASES[1] + 2)
    scenario.tags = {Tag.INTERSECTION}
    return scenario


def on_open_ground(pair: NearPair) -> Scenario:
    """One lanelet, larger than all that the two drove: for measures that insist on a road and ask nothing of it."""
    middle_x, middle_y = np.mean(pair.one.x_m + pair.other.x_m), np.mean(pair.one.y_m + pair.other.y_m)
    x = middle_x + np.linspace(-OPEN_M, OPEN_M, 7)
    lane = Lane(np.column_stack([x, np.full(len(x), middle_y)]), np.zeros(len(x)), 2 * OPEN_M)
    return _scenario(pair, LaneletNetwork.create_from_lanelet_list([_lanelet(OPEN, lane)]), OPEN, OPEN)


def obstacle(number: int, driven: Driven, lanelet: int) -> DynamicObstacle:
    """A recorded car; time step 0 is the pair's first instant."""
    steps = range(len(driven.x_m))
    shape = Rectangle(length=driven.length_m, width=driven.width_m)
    states = [
        CustomState(
            time_step=k,
            position=np.array([driven.x_m[k], driven.y_m[k]]),
            orientation=driven.heading_rad[k],
            velocity=driven.speed_mps[k],
            acceleration=0.0,
        )
        for k in steps
    ]
    begins = InitialState(
        time_step=0,
        position=states[0].position,
        orientation=states[0].orientation,
        velocity=states[0].velocity,
        acceleration=0.0,
        yaw_rate=0.0,
        slip_angle=0.0,
    )
    on = {k: {lanelet} for k in steps}
    path = TrajectoryPrediction(
        Trajectory(1, states[1:]), shape, center_lanelet_assignment=on, shape_lanelet_assignment=on
    )
    return DynamicObstacle(number, ObstacleType.CAR, shape, begins, path)


def _scenario(pair: NearPair, lanelets: LaneletNetwork, of_one: int, of_other: int) -> Scenario:
    scenario = Scenario(pair.step_s)
    scenario.add_objects(lanelets)
    scenario.add_objects([obstacle(ONE, pair.one, of_one), obstacle(OTHER, pair.other, of_other)])
    return scenario


def _lanelet(number: int, lane: Lane, predecessor: int | None = None, successor: int | None = None) -> Lanelet:
    left = np.column_stack([-np.sin(lane.heading_rad), np.cos(lane.heading_rad)])
    centre = lane.points.copy()
    centre[[0, -1]] += OFF_LINE_M * left[[0, -1]]
    half = left * lane.width_m / 2
    before, after = ([one] if one else [] for one in (predecessor, successor))
    return Lanelet(centre + half, centre, centre - half, number, predecessor=before, successor=after)
