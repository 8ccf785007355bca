from math import cos, isfinite, pi, radians, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.sdk import At
from protos.vehicle_pb2 import Ego, Encounter, Motion
from sim_vehicles.operators.models.ctrv import state_of
from sim_vehicles.operators.models.lanes import LaneMap, LanePath, lanes
from sim_vehicles.operators.place import Extrapolate, Lane, Plane
from sim_vehicles.world.motion import wrap

MS = 1_000_000


def at(age_ms: float) -> At:
    now = 10**12
    measured = now - int(age_ms * MS)
    return At(now, (measured, measured), now + 10**9)


def test_plane_is_equirectangular() -> None:
    # 1e-4 degree is 6378137 * pi / 180 * 1e-4 = 11.1319 m north, and cos(35 degrees) = 0.819152 of it east: 9.1187 m
    seen = Encounter(latitude_e7=350_001_000, longitude_e7=1_370_001_000, east_m=1.0, north_m=-2.0)
    x, y, *_ = state_of(Plane()(seen).measured)
    assert (x, y) == pytest.approx((9.1187 + 1.0, 11.1319 - 2.0), abs=1e-4)


def test_plane_has_the_origin_it_is_told() -> None:
    seen = Encounter(latitude_e7=520_000_000, longitude_e7=-1_799_999_000)
    x, y, *_ = state_of(Plane(52.0, 180.0)(seen).measured)
    # 1e-4 degree beyond the date line, not 360 degrees back: 11.1319 m * cos(52 degrees)
    assert (x, y) == pytest.approx((11.1319 * cos(radians(52)), 0.0), abs=1e-4)


def test_speed_is_the_one_along_the_heading() -> None:
    # velocity (3, 4), heading 0: 3 m/s along it
    motion = Plane()(Encounter(vx_mps=3.0, vy_mps=4.0, heading_rad=0.0)).measured
    assert state_of(motion)[2:] == pytest.approx((0.0, 3.0, 0.0, 0.0))
    # backwards at 2 m/s: heading the other way
    motion = Plane()(Encounter(vx_mps=-2.0, heading_rad=0.0)).measured
    assert (abs(motion.heading_rad), motion.speed_mps) == pytest.approx((pi, 2.0))
    # backwards at 0.4 m/s: a standing vehicle and noise
    motion = Plane()(Encounter(vx_mps=-0.4, heading_rad=0.0)).measured
    assert (motion.heading_rad, motion.speed_mps) == (0.0, 0.0)


def test_extrapolation_to_now() -> None:
    seen = Encounter(
        age_s=0.1,
        ego_age_s=0.3,
        measured=Motion(x_m=50.0, y_m=1.0, heading_rad=pi, speed_mps=10.0),
        ego=Ego(motion=Motion(y_m=-40.0, heading_rad=pi / 2, speed_mps=12.0, acceleration_mps2=-2.0)),
    )
    kept = seen.SerializeToString()
    result = Extrapolate()(seen, at=at(150))
    # 50 ms after O4: ages 0.15 and 0.35 s. Object: 50 - 10 * 0.15 = 48.5.
    # Ego: -40 + 12 * 0.35 - 2 * 0.35^2 / 2 = -35.9225, 12 - 2 * 0.35 = 11.3 m/s
    assert (result.age_s, result.ego_age_s) == pytest.approx((0.15, 0.35))
    assert (result.object.x_m, result.object.y_m) == pytest.approx((48.5, 1.0))
    assert (result.ego_now.x_m, result.ego_now.y_m, result.ego_now.speed_mps) == pytest.approx((0.0, -35.9225, 11.3))
    assert seen.SerializeToString() == kept, "the input is left as it was"


def test_the_ego_turns_with_its_yaw_rate() -> None:
    # 10 m/s, 1 rad/s: radius 10 m; after 0.5 s x = 10 sin 0.5, y = 10 (1 - cos 0.5)
    seen = Encounter(ego_age_s=0.5, ego=Ego(motion=Motion(speed_mps=10.0, yaw_rate_rps=1.0)))
    motion = Extrapolate()(seen, at=at(0)).ego_now
    assert state_of(motion)[:3] == pytest.approx((4.794255, 1.224174, 0.5), abs=1e-6)


def lane_of(x: float, y: float, heading: float, map_: str = "crossing_50") -> Encounter:
    pose = Motion(x_m=x, y_m=y, heading_rad=heading, speed_mps=10.0)
    ego = Motion(x_m=1.6, y_m=-50.0, heading_rad=1.6)
    return Lane(map_)(Encounter(measured=pose, object=pose, ego=Ego(motion=ego), ego_now=ego))


def test_lane_and_its_heading() -> None:
    # the lane to the north lies at x = 1.6; 1 m beside it and 0.1 rad off: d + 2 |dheading| = 1.2, within both limits
    result = lane_of(2.6, -60.0, pi / 2 + 0.1)
    assert result.lane == "south-north"
    assert state_of(result.object)[:4] == pytest.approx((2.6, -60.0, pi / 2, 10.0)), "its heading, not its place"
    assert result.ego_lane == "south-north"
    assert result.ego_now.heading_rad == pytest.approx(pi / 2)


@pytest.mark.parametrize(
    ("x", "heading"),
    [(2.85, pi / 2), (1.6, pi / 2 + 0.16), (1.6, pi / 2 - 0.16), (1.6, -pi / 2), (40.0, pi / 2)],
)
def test_too_far_or_too_much_turned_is_no_lane(x: float, heading: float) -> None:
    result = lane_of(x, -60.0, heading)
    assert result.lane == ""
    assert (result.object.x_m, result.object.heading_rad) == (x, heading)


def test_before_a_junction_straight_on_is_meant_and_in_it_the_way_taken() -> None:
    assert lane_of(1.55, -20.0, pi / 2 + 0.02).lane == "south-north"
    # where SUMO's vehicle B turns left: heading 2.3 near the middle of the junction
    assert lane_of(-0.75, -0.75, 3 * pi / 4).lane == "south-west"
    assert lane_of(-60.0, 1.6, pi).lane == "east-west", "behind the junction too, the straightest of what leads there"


def test_in_a_bend_the_vehicle_is_moved_on_along_its_lane() -> None:
    # the way from the east to the west comes round a bend; where it turns by more than 0.15 rad within 6 m, straight on
    # leads off it
    lane = next(each for each in lanes("crossing_50") if each.name == "east-west")
    s_m = next(s for s in lane.s_m if abs(wrap(lane.at(s + 6.0)[2] - lane.at(s)[2])) > 0.1)
    x, y, heading = lane.at(s_m)
    then = Motion(x_m=x, y_m=y, heading_rad=heading, speed_mps=12.0)
    now = Motion(x_m=x + 6.0 * cos(heading), y_m=y + 6.0 * sin(heading), heading_rad=heading, speed_mps=12.0)
    result = LANE(Encounter(measured=then, object=now, age_s=0.5, ego=Ego(motion=then), ego_now=now))
    assert result.lane == "east-west"
    assert (result.object.x_m, result.object.y_m, result.object.heading_rad) == pytest.approx(lane.at(s_m + 6.0))


def test_least_score_wins_over_least_distance() -> None:
    straight = LanePath("straight", [(0.0, 0.0), (20.0, 0.0)])
    slanted = LanePath("slanted", [(0.0, -1.0), (20.0, 1.0)])  # heading 0.0997; passes through (10, 0)
    found = LaneMap([slanted, straight], 1.2).near(10.0, 0.1, 0.0)
    # straight: 0.1 + 0 = 0.1; slanted: 0.0995 + 2 * 0.0997 = 0.299
    assert [match.lane.name for match in found] == ["straight", "slanted"]


def test_without_a_map_nothing_changes() -> None:
    seen = Encounter(object=Motion(x_m=1.6, y_m=-60.0, heading_rad=1.6))
    assert Lane()(seen) == seen
    with pytest.raises(ValueError, match="crossing_50"):
        Lane("crossing_51")


@given(
    st.integers(-900_000_000, 900_000_000),
    st.integers(-1_800_000_000, 1_800_000_000),
    st.floats(-1310, 1310),
    st.floats(-70, 70),
    st.floats(-pi, pi),
    st.floats(-1000, 2000),
)
def test_results_are_finite(lat: int, lon: int, way: float, speed: float, heading: float, age_ms: float) -> None:
    seen = Encounter(latitude_e7=lat, longitude_e7=lon, east_m=way, north_m=-way, vx_mps=speed, heading_rad=heading)
    result = LANE(Extrapolate()(Plane()(seen), at=at(age_ms)))
    assert all(isfinite(value) for value in (*state_of(result.object), *state_of(result.ego_now)))
    assert result.object.speed_mps >= 0.0


LANE = Lane("crossing_50")
