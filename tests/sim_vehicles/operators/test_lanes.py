from itertools import pairwise
from math import cos, hypot, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.operators.models.lanes import LaneMap, LanePath, beside, known_maps, lanes, score, ways
from sim_vehicles.readers.scenarios import load_scenario

ARMS = [("south", -pi / 2), ("north", pi / 2), ("west", pi), ("east", 0.0)]
CORNER = LanePath("corner", [(0.0, 0.0), (10.0, 0.0), (10.0, 20.0)])  # east 10 m, then north 20 m


def crossing(each_way: int = 1) -> dict[str, LanePath]:
    roads = [
        {
            "name": name,
            "lanes_each_way": each_way,
            "lane_width_m": 3.0,
            "line": [[0, 0], [100 * cos(a), 100 * sin(a)]],
        }
        for name, a in ARMS
    ]
    return {lane.name: lane for lane in ways(roads)}


def test_projection_on_a_corner() -> None:
    # (4, 1): 4 m along the first piece, 1 m beside it; heading 0.1 against 0
    assert CORNER.project(4.0, 1.0, 0.1) == pytest.approx((4.0, 1.0, 0.1))
    # (12, 15): 10 + 15 m, 2 m beside; heading 0 where the lane goes north
    assert CORNER.project(12.0, 15.0, 0.0) == pytest.approx((25.0, 2.0, -pi / 2))
    # before the start and beyond the end the nearest point is the end itself: distances 3-4-5
    assert CORNER.project(-3.0, -4.0, 0.0)[:2] == pytest.approx((0.0, 5.0))
    assert CORNER.project(13.0, 24.0, pi / 2)[:2] == pytest.approx((30.0, 5.0))


def test_position_along_a_corner() -> None:
    assert CORNER.at(4.0) == pytest.approx((4.0, 0.0, 0.0))
    assert CORNER.at(15.0) == pytest.approx((10.0, 5.0, pi / 2))
    assert CORNER.at(10.0)[2] == pytest.approx(pi / 4), "on the corner: half way between both headings"
    assert CORNER.at(9.0)[2] == pytest.approx(pi / 8), "1 m before it: half of that, for it goes over within 2 m"
    assert CORNER.at(-5.0) == pytest.approx((0.0, 0.0, 0.0)), "held at the start"
    assert CORNER.at(40.0) == pytest.approx((10.0, 30.0, pi / 2)), "straight on beyond the end"
    assert CORNER.offset(4.0, 1.0, 4.0) == pytest.approx(1.0), "left"
    assert CORNER.offset(12.0, 5.0, 15.0) == pytest.approx(-2.0), "right"


def test_a_parallel_is_mitred() -> None:
    # 1 m left of east-then-north: y = 1 up to x = 9, then x = 9
    assert [p for x, y in beside([(0, 0), (10, 0), (10, 20)], 1.0) for p in (x, y)] == pytest.approx(
        [0, 1, 9, 1, 9, 20]
    )


def test_ways_through_drive_on_the_right() -> None:
    found = crossing()
    assert len(found) == 12, "from each of four arms to each of the three others"
    straight = found["south-north"]
    assert all(x == pytest.approx(1.5) for x in straight.x_m), "half a lane to the right of the axis, all the way"
    assert straight.length_m == pytest.approx(200.0)
    assert straight.at(100.0) == pytest.approx((1.5, 0.0, pi / 2))


def test_turns_are_near_circles() -> None:
    # lanes end 3 + 4 = 7 m out (half a road and the corner). Left: (1.5, -7) to (-7, 1.5), radius 8.5 about (-7, -7)
    left = crossing()["south-west"]
    inside = [(x, y) for x, y in zip(left.x_m, left.y_m, strict=True) if x > -7.0 + 1e-9 and y > -7.0 + 1e-9]
    assert len(inside) > 8
    assert all(hypot(x + 7.0, y + 7.0) == pytest.approx(8.5, abs=0.01) for x, y in inside)
    assert left.length_m == pytest.approx(93 + pi / 2 * 8.5 + 93, abs=0.05)
    # right: from (1.5, -7) to (7, -1.5), radius 5.5 round (7, -7)
    right = crossing()["south-east"]
    x, y, heading = right.at(93 + pi / 4 * 5.5)
    assert (x, y) == pytest.approx((7 - 5.5 / 2**0.5, -7 + 5.5 / 2**0.5), abs=0.02)
    assert heading == pytest.approx(pi / 4, abs=0.02)


def test_more_lanes_each_way() -> None:
    found = crossing(each_way=2)
    assert found["south-north:1"].x_m[0] == pytest.approx(1.5)
    assert found["south-north:2"].x_m[0] == pytest.approx(4.5)
    assert found["south-west"].x_m[0] == pytest.approx(1.5), "left from the innermost lane"
    assert found["south-east"].x_m[0] == pytest.approx(4.5), "right from the outermost lane"


@pytest.mark.parametrize("name", ["crossing_30", "crossing_50", "crossing_70"])
def test_recorded_vehicles_drive_on_the_lanes(name: str) -> None:
    """X comes round the bend and A straight on: never more than a hand beside the lane that leads where they go."""
    motion = load_scenario(name).motion
    paths = {lane.name: lane for lane in lanes(name)}
    for vehicle, lane in (("A", "south-north"), ("X", "east-west"), ("B", "south-west")):
        placed = [paths[lane].project(s.x_m, s.y_m, s.heading_rad) for s in motion.tracks[vehicle].states]
        assert max(p.d_perp_m for p in placed) < (1.2 if vehicle == "B" else 0.35), vehicle
        assert max(abs(p.dheading_rad) for p in placed) < (0.45 if vehicle == "B" else 0.12), vehicle
        assert all(b.s_m >= a.s_m - 1e-6 for a, b in pairwise(placed)), "never backwards"


@given(st.floats(-2000, 2000), st.floats(-60, 500))
def test_at_and_project_are_inverse(s_m: float, heading: float) -> None:
    for lane in lanes("crossing_50"):
        s = s_m % lane.length_m
        x, y, along = lane.at(s)
        back = lane.project(x, y, along + heading)
        assert back.s_m == pytest.approx(s, abs=1e-6)
        assert back.d_perp_m == pytest.approx(0.0, abs=1e-6)
        assert abs((back.dheading_rad - heading + pi) % (2 * pi) - pi) < 1e-6


@given(st.floats(-60, 60), st.floats(-60, 60), st.floats(-pi, pi))
def test_the_index_finds_what_a_full_search_finds(x: float, y: float, heading: float) -> None:
    paths = lanes("crossing_50")
    found = MAP.near(x, y, heading)
    every = {lane.name: lane.project(x, y, heading) for lane in paths}
    assert {m.lane.name: m.placed for m in found} == {k: p for k, p in every.items() if p.d_perp_m <= 1.2}
    assert [score(m.placed) for m in found] == sorted(score(m.placed) for m in found)


MAP = LaneMap(lanes("crossing_50"), 1.2)


def test_only_installed_scenes_are_maps() -> None:
    assert {"crossing_30", "crossing_50", "crossing_70"} <= set(known_maps())
    for name in ("crossing_51", "", "../recordings/crossing_50", "crossing_50.json", "/etc/passwd"):
        with pytest.raises(ValueError, match="crossing_30"):
            lanes(name)


def test_what_cannot_be_a_lane() -> None:
    with pytest.raises(ValueError, match="two points"):
        LanePath("short", [(0.0, 0.0)])
    with pytest.raises(ValueError, match="equal points"):
        LanePath("twice", [(0.0, 0.0), (0.0, 0.0)])
    with pytest.raises(ValueError, match="reach"):
        LaneMap([CORNER], 0.0)
