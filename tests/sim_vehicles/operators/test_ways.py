"""Ways on by the lanes of a map: shares, and what O9, O14 and O15 make of them. Lanes in metres, drives as listed."""

from math import cos, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Ego, Encounter, Motion, Path
from sim_vehicles.operators.conflict import Overlap, Predict
from sim_vehicles.operators.models.network_paths import MOST_WAYS
from sim_vehicles.operators.models.onward_ways import (
    LANES_AT_HAND,
    NO_LANE,
    TURN_SHARE,
    Onward,
    Pose,
    RoadMap,
    messages,
)
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.lane_network import Lane, LaneNetwork

RADIUS_M = 10.0


def arc(x: float, y: float, heading: float, turn: float, steps: int = 18) -> tuple[Point, ...]:
    """From (x, y) round by `turn` on RADIUS_M."""
    side = 1.0 if turn > 0 else -1.0
    cx, cy = x - side * RADIUS_M * sin(heading), y + side * RADIUS_M * cos(heading)
    at = [heading + turn * k / steps for k in range(steps + 1)]
    return tuple((cx + side * RADIUS_M * sin(h), cy - side * RADIUS_M * cos(h)) for h in at)


# Eastwards to the origin; from there straight on, or left round to the north at (10, 10).
JUNCTION = LaneNetwork(
    [
        Lane("to", ((-100.0, 0.0), (0.0, 0.0)), ("straight", "left")),
        Lane("straight", ((0.0, 0.0), (100.0, 0.0))),
        Lane("left", arc(0.0, 0.0, 0.0, pi / 2), ("north",)),
        Lane("north", ((10.0, 10.0), (10.0, 100.0))),
        Lane("aside", ((-100.0, 4.0), (100.0, 4.0))),
    ]
)


def onward(x: float, y: float, heading: float, speed: float, yaw_rate: float | None = 0.0) -> dict[str, float]:
    """Shares of the ways by where they end: straight or left."""
    map_ = RoadMap(JUNCTION, 1.5)
    found = map_.onward(Pose(x, y, heading, speed, yaw_rate, 0.0), map_.near(x, y, heading), MOST_WAYS)
    return {("left" if one.path.y_m[-1] > 50 else "straight"): one.share for one in found}


def test_straight_on_is_ten_times_likelier_than_a_turn_from_where_both_can_be_driven() -> None:
    found = onward(-20.0, 0.0, 0.0, 6.0)
    assert found["left"] / found["straight"] == pytest.approx(TURN_SHARE)


def test_who_is_too_fast_for_a_turn_goes_straight_on() -> None:
    """A radius of 10 m with 4 m/s2 across takes 6.3 m/s; from 14 m/s within 20 m that is 3.9 m/s2 of braking."""
    found = onward(-20.0, 0.0, 0.0, 14.0)
    assert found.get("left", 0.0) < 0.05 * found["straight"]


def test_who_turns_is_in_the_turn() -> None:
    x, y = arc(0.0, 0.0, 0.0, pi / 2)[4]
    assert set(onward(x, y, pi / 9, 6.0, 0.6)) == {"left"}
    both = onward(1.0, 0.05, 0.1, 6.0, 0.6)
    unsaid = onward(1.0, 0.05, 0.1, 6.0, None)
    assert both["left"] / both["straight"] > unsaid["left"] / unsaid["straight"], "what nobody says counts for none"


def test_ways_that_stay_together_are_one() -> None:
    """The first lane and the one beside it differ; both ways of the first lane are one for who gets nowhere near."""
    assert len(onward(-90.0, 0.0, 0.0, 8.0)) == 1


def test_where_the_lane_ends_the_way_goes_straight_on() -> None:
    map_ = RoadMap(JUNCTION, 1.5)
    (way,) = messages(map_.onward(Pose(100.0, 0.0, 0.0, 5.0, 0.0, 0.0), map_.near(100.0, 0.0, 0.0), 3), 5.0)
    assert list(way.x_m) == [100.0, 135.0] and list(way.y_m) == [0.0, 0.0]


@given(st.floats(-90, 100), st.floats(-1.4, 1.4), st.floats(-0.3, 0.3), st.floats(0, 30), st.floats(-1, 1))
def test_shares_leave_room_for_no_lane(x: float, y: float, heading: float, speed: float, yaw_rate: float) -> None:
    map_ = RoadMap(JUNCTION, 1.5)
    found = map_.onward(Pose(x, y, heading, speed, yaw_rate, 0.0), map_.near(x, y, heading), 3)
    ways = messages(found, speed)
    shares = [way.share for way in ways]
    assert all(len(way.x_m) == len(way.y_m) > 1 for way in ways)
    assert sum(shares) <= (1.0 + TURN_SHARE) / (1.0 + TURN_SHARE + NO_LANE) + 1e-9
    assert shares == sorted(shares, reverse=True)
    for one in found:
        assert isinstance(one, Onward) and 0.0 < one.share <= 1.0


def motion(x: float, y: float, heading: float, speed: float) -> Motion:
    return Motion(x_m=x, y_m=y, heading_rad=heading, speed_mps=speed)


def told(ego: Motion, other: Motion) -> Encounter:
    return Encounter(ego=Ego(length_m=4.5, width_m=1.8), ego_now=ego, object=other, length_m=4.5, width_m=1.8)


def test_a_path_for_each_way_and_one_for_no_lane() -> None:
    given_ = told(motion(0, -40, pi / 2, 10), motion(-20.0, 0.5, 0.0, 6.0))
    map_ = RoadMap(JUNCTION, 1.5)
    ways = messages(map_.onward(Pose(-20.0, 0.5, 0.0, 6.0, 0.0, 0.0), map_.near(-20.0, 0.5, 0.0), 3), 6.0)
    given_.ways.extend(ways)
    out = Predict()(given_)
    assert [path.free for path in out.object_paths] == [False, False, True]
    assert sum(path.share for path in out.object_paths) == pytest.approx(1.0)
    straight, left, free = out.object_paths
    assert straight.y_m[-1] == pytest.approx(0.5), "half a metre beside the middle all the way"
    assert left.heading_rad[-1] > 0.3
    assert list(free.y_m) == pytest.approx([0.5] * 41)
    assert [path.share for path in out.ego_paths] == [1.0]


def line(x: float, y: float, heading: float, long: float, share: float) -> Path:
    at = [long * k / 40 for k in range(41)]
    xs, ys = [x + s * cos(heading) for s in at], [y + s * sin(heading) for s in at]
    return Path(x_m=xs, y_m=ys, heading_rad=[heading] * 41, step_s=0.1, share=share)


def test_the_share_is_that_of_all_pairs_of_ways_that_cross() -> None:
    """The ego goes north along x = 0. The other comes from the west: 0.6 along y = 0, 0.3 turns off before, 0.1 along
    y = 5."""
    given_ = told(motion(0, -20, pi / 2, 10), motion(-20, 0, 0.0, 10))
    given_.ego_paths.append(line(0, -20, pi / 2, 40, 1.0))
    given_.object_paths.extend([line(-20, 0, 0.0, 40, 0.6), line(-20, 0, -pi / 2, 40, 0.3), line(-20, 5, 0.0, 40, 0.1)])
    zone = Overlap()(given_).zone
    assert zone.share == pytest.approx(0.7)
    assert zone.ego_in_m == pytest.approx(20 - 0.9 - 2.25), "of the likeliest pair"


def test_ways_that_are_not_handed_on_keep_their_share() -> None:
    """Five branches alike of which three are handed on: theirs is a fifth each, less what no lane has."""
    turns = [-0.8, -0.4, 0.0, 0.4, 0.8]
    fan = [Lane(str(turn), ((0.0, 0.0), (80 * cos(turn), 80 * sin(turn)))) for turn in turns]
    map_ = RoadMap(LaneNetwork([Lane("to", ((-50.0, 0.0), (0.0, 0.0)), tuple(each.name for each in fan)), *fan]), 1.5)
    ways = messages(map_.onward(Pose(-20.0, 0.0, 0.0, 3.0, 0.0, 0.0), map_.near(-20.0, 0.0, 0.0), 3), 20.0)
    assert len(ways) <= 3
    assert sum(way.share for way in ways) < 0.95


def test_of_many_branches_some_are_followed() -> None:
    fan = [Lane(str(k), ((0.0, 0.0), (80 * cos(k / 20), 80 * sin(k / 20)))) for k in range(20)]
    map_ = RoadMap(LaneNetwork([Lane("to", ((-50.0, 0.0), (0.0, 0.0)), tuple(each.name for each in fan)), *fan]), 1.5)
    found = map_.onward(Pose(-5.0, 0.0, 0.0, 10.0, 0.0, 0.0), map_.near(-5.0, 0.0, 0.0), MOST_WAYS)
    assert len(found) > 4


def test_ways_of_few_lanes_are_remembered() -> None:
    lanes = [Lane(f"l{k}", ((0.0, 10.0 * k), (50.0, 10.0 * k))) for k in range(3 * LANES_AT_HAND)]
    map_ = RoadMap(LaneNetwork(lanes), 1.5)
    for k in range(len(lanes)):
        assert len(map_.onward(Pose(5.0, 10.0 * k, 0.0, 5.0, 0.0, 0.0), map_.near(5.0, 10.0 * k, 0.0), 3)) == 1
    assert len(map_._courses) == LANES_AT_HAND


def test_a_ring_is_followed_round() -> None:
    """In a roundabout of 5 m the way comes past the vehicle again: it goes on from where it is."""
    ring = tuple((5 * cos(k / 10), 5 * sin(k / 10)) for k in range(63))
    given_ = told(motion(40, 40, 0.0, 5), motion(5.8, 0.5, pi / 2, 4.0))
    given_.ways.add(x_m=[x for x, _ in ring], y_m=[y for _, y in ring], share=0.8)
    path = Predict()(given_).object_paths[0]
    for x, y in list(zip(path.x_m, path.y_m, strict=True))[:20]:
        assert 5.0 < (x * x + y * y) ** 0.5 < 6.6


def test_a_single_way_is_taken_for_certain() -> None:
    map_ = RoadMap(JUNCTION, 1.5)
    (one,) = map_.onward(Pose(-20.0, 0.0, 0.0, 6.0, 0.0, 0.0), map_.near(-20.0, 0.0, 0.0), 1)
    assert one.share == 1.0 and one.path.y_m[-1] == 0.0, "straight on"
    given_ = told(motion(0, -40, pi / 2, 10), motion(-20.0, 0.0, 0.0, 6.0))
    given_.ways.extend(messages([one], 6.0))
    assert [path.free for path in Predict()(given_).object_paths] == [False], "and no other path is looked at"


def test_a_way_is_followed_from_before_its_begin_and_past_its_end() -> None:
    given_ = told(motion(40, 40, 0.0, 5), motion(-1.0, 0.3, 0.0, 10.0))
    given_.ways.add(x_m=[0.0, 5.0, 10.0], y_m=[0.0, 0.0, 0.0], share=1.0)
    path = Predict()(given_).object_paths[0]
    assert list(path.x_m) == pytest.approx([-1.0 + k for k in range(41)])
    assert list(path.y_m) == pytest.approx([0.3] * 41)
