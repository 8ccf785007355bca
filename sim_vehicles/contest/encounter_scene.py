"""The scene of an encounter: two straight roads that cross, houses in all four corners, and a witness.

The ego A comes from the south and the crossing vehicle X from the right, both in the right-hand lane of their road.
Where nobody brakes their centres are at the crossing point of these lanes within a tenth of a second of each other.
The witness E stands beyond the crossing, on X's side of X's road, looks at what comes, and has a radio. X has
none. E's sensors reach exactly as far as X is away at the instant of first sight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from math import cos, hypot, pi, sin

from sim_vehicles.contest.drawn_encounter import Encounter, drawn
from sim_vehicles.encounter.visibility import Eye
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.scene import Scenario, Scene

MEET_S = 16.0  # when the ego's centre is where the two ways cross
END_S = 22.0
STEP_S = 0.1
HALF_LANE_M = 1.6
LENGTH_M, WIDTH_M = 4.5, 1.8
HOUSE_M = 250.0
WITNESS_M = 12.0  # beyond the crossing
EGO, CROSSING, WITNESS = "A", "X", "E"
NORTH_RAD = pi / 2


def encounters(seed: int) -> Iterator[Encounter]:
    """All encounters of a seed that are blind: the ego does not see the other one before the witness does."""
    for number in count():
        encounter = drawn(seed, number)
        if Eye(scenario(encounter), EGO, CROSSING).first_s(0.0, MEET_S - encounter.first_sight_s) is None:
            yield encounter


def scenario(encounter: Encounter) -> Scenario:
    """The motion of an encounter if nobody brakes, in a plane whose origin is where the axes of the two roads cross."""
    heading_rad = NORTH_RAD + encounter.angle_rad
    meet = _crossing_point(heading_rad)
    tracks = {
        EGO: _driving(EGO, meet, NORTH_RAD, encounter.ego_mps, MEET_S),
        CROSSING: _driving(CROSSING, meet, heading_rad, encounter.crossing_mps, MEET_S + encounter.offset_s),
        WITNESS: _standing(WITNESS, _place_of_witness(heading_rad), heading_rad + pi),
    }
    scene = Scene(
        name=f"encounter {encounter.number}",
        ego=EGO,
        stations=(WITNESS,),
        crossing=CROSSING,
        occluders=tuple(_houses(heading_rad, encounter.setback_m)),
        range_m=_reach_m(tracks, encounter),
        start_s=0.0,
    )
    return Scenario(Motion(tracks, f"encounter {encounter.number}"), scene)


def _lane(heading_rad: float) -> Point:
    """A point of the right-hand lane of the road with that heading whose axis goes through the origin."""
    return HALF_LANE_M * sin(heading_rad), -HALF_LANE_M * cos(heading_rad)


def _crossing_point(heading_rad: float) -> Point:
    """Where the ego's lane and that of the crossing vehicle cross."""
    x_m, y_m = _lane(heading_rad)
    along_m = (HALF_LANE_M - x_m) / cos(heading_rad)
    return HALF_LANE_M, y_m + along_m * sin(heading_rad)


def _place_of_witness(heading_rad: float) -> Point:
    """Where the witness stands: in the oncoming lane, beyond the crossing."""
    x_m, y_m = _lane(heading_rad)
    return WITNESS_M * cos(heading_rad) - x_m, WITNESS_M * sin(heading_rad) - y_m


def _driving(name: str, meet: Point, heading_rad: float, speed_mps: float, meet_s: float) -> Track:
    def way(t_s: float) -> Point:
        way_m = speed_mps * (t_s - meet_s)
        return meet[0] + way_m * cos(heading_rad), meet[1] + way_m * sin(heading_rad)

    return _track(name, way, heading_rad, speed_mps)


def _standing(name: str, place: Point, heading_rad: float) -> Track:
    return _track(name, lambda t_s: place, heading_rad, 0.0)


def _track(name: str, way: Callable[[float], Point], heading_rad: float, speed_mps: float) -> Track:
    instants = [i * STEP_S for i in range(round(END_S / STEP_S) + 1)]
    return Track(name, "car", LENGTH_M, WIDTH_M, [State(t_s, *way(t_s), heading_rad, speed_mps) for t_s in instants])


def _houses(heading_rad: float, setback_m: float) -> list[tuple[Point, ...]]:
    """One block per corner, its two fronts parallel to the roads at the setback."""
    arms = sorted(angle % (2 * pi) for angle in (NORTH_RAD, -NORTH_RAD, heading_rad, heading_rad + pi))
    return [_block(a, b, setback_m) for a, b in zip(arms, [*arms[1:], arms[0] + 2 * pi], strict=True)]


def _block(right_rad: float, left_rad: float, setback_m: float) -> tuple[Point, ...]:
    """Between two arms: the corner at the crossing, and so far along both fronts."""
    middle_rad, half_rad = (right_rad + left_rad) / 2, (left_rad - right_rad) / 2
    corner_m = setback_m / sin(half_rad)
    corner = corner_m * cos(middle_rad), corner_m * sin(middle_rad)
    ends = [(corner[0] + HOUSE_M * cos(arm), corner[1] + HOUSE_M * sin(arm)) for arm in (right_rad, left_rad)]
    return corner, ends[0], ends[1]


def _reach_m(tracks: dict[str, Track], encounter: Encounter) -> float:
    at_s = MEET_S - encounter.first_sight_s
    eye, target = tracks[WITNESS].at(at_s), tracks[CROSSING].at(at_s)
    assert eye is not None and target is not None  # both are there from 0 s on
    return hypot(target.x_m - eye.x_m, target.y_m - eye.y_m)


__all__ = ["CROSSING", "EGO", "MEET_S", "encounters", "scenario"]
