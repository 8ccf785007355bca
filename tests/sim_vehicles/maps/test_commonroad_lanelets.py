"""Lanelets of CommonRoad: middle lines, widths, successors, and who may drive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import cos, dist, hypot, sin
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.errors import BadInputError
from sim_vehicles.maps.bounds import middle, shares
from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.world.geometry import Point
from tests.sentences import refused
from tests.sim_vehicles.maps.crossing_files import COMMONROAD, line_of, read_text


def bound(name: str, points: Sequence[Point]) -> str:
    inner = "".join(f"<point><x>{x}</x><y>{y}</y></point>" for x, y in points)
    return f"<{name}>{inner}</{name}>"


def scenario(*lanelets: str) -> str:
    return '<commonRoad commonRoadVersion="2020a">\n' + "\n".join(lanelets) + "\n</commonRoad>"


def lanelet(name: str, left: Sequence[Point], right: Sequence[Point], more: str = "") -> str:
    return f'<lanelet id="{name}">{bound("leftBound", left)}{bound("rightBound", right)}{more}</lanelet>'


LEFT, RIGHT = [(0.0, 3.0), (10.0, 3.0)], [(0.0, 0.0), (10.0, 0.0)]


def test_the_middle_line_has_the_corners_of_both_bounds() -> None:
    found = middle([(0, 3), (4, 3), (10, 3)], [(0, 0), (5, 0), (10, 0)])
    assert list(found.line) == [pytest.approx(point) for point in ((0, 1.5), (4, 1.5), (5, 1.5), (10, 1.5))]
    assert found.width_m == pytest.approx(3.0)


@given(
    st.lists(st.floats(-0.15, 0.15), min_size=2, max_size=30), st.floats(2.0, 5.0),
    st.lists(st.floats(0.0, 1.0), max_size=20),
)  # fmt: skip
def test_between_two_parallels_the_middle_line_is_the_curve(
    bends: list[float], width_m: float, cuts: list[float]
) -> None:
    """A curve in steps of 2 m, turning by at most 0.15 rad each. Cuts: more points on the right bound alone."""
    x = y = heading = 0.0
    left, right, curve = [], [], []
    for bend in [*bends, 0.0]:
        side_x, side_y = -sin(heading) * width_m / 2, cos(heading) * width_m / 2
        curve.append((x, y))
        left.append((x + side_x, y + side_y))
        right.append((x - side_x, y - side_y))
        x, y, heading = x + 2 * cos(heading), y + 2 * sin(heading), heading + bend
    found = middle(left, _with_cuts(right, cuts))
    assert found.line[0] == pytest.approx(curve[0]) and found.line[-1] == pytest.approx(curve[-1])
    away_m = max(min(dist(point, other) for other in _dense(curve)) for point in found.line)
    assert away_m < 0.75, "inside and outside of a bend share out their lengths alike but for its changes"
    assert found.width_m == pytest.approx(width_m, rel=0.3)


def _with_cuts(line: list[Point], cuts: list[float]) -> list[Point]:
    at = shares(line)
    points = list(zip(at, line, strict=True))
    for cut in cuts:
        for (low, (ax, ay)), (high, (bx, by)) in pairwise(zip(at, line, strict=True)):
            if low < cut < high:
                share = (cut - low) / (high - low)
                points.append((cut, (ax + share * (bx - ax), ay + share * (by - ay))))
    return [point for _, point in sorted(points)]


def _dense(line: list[Point]) -> list[Point]:
    return [
        (ax + k / 10 * (bx - ax), ay + k / 10 * (by - ay)) for (ax, ay), (bx, by) in pairwise(line) for k in range(11)
    ]


def test_a_lane_leads_into_its_successors_that_are_driven() -> None:
    lanes = read_map(COMMONROAD).lanes
    assert {name: lane.following for name, lane in lanes.items()} == {
        "1": ("2", "3"), "2": ("4",), "3": ("5",), "4": (), "5": (),
    }  # fmt: skip
    assert lanes["1"].width_m == 3.5 and lanes["5"].width_m == 4.0


@pytest.mark.parametrize(
    ("more", "driven"),
    [
        ("", True),
        ("<laneletType>urban</laneletType>", True),
        ("<laneletType>urban</laneletType><laneletType>crosswalk</laneletType>", False),
        ("<laneletType>bicycleLane</laneletType>", False),
        ("<userOneWay>bicycle</userOneWay>", False),
        ("<userOneWay>bicycle</userOneWay><userOneWay>bus</userOneWay>", True),
        ("<userOneWay>vehicle</userOneWay><userBidirectional>pedestrian</userBidirectional>", True),
    ],
)
def test_lanelets_of_bicycles_and_on_foot_are_left_out(more: str, driven: bool, tmp_path: Path) -> None:
    text = scenario(lanelet("1", LEFT, RIGHT), lanelet("2", LEFT, RIGHT, more))
    assert ("2" in read_text(tmp_path, text).lanes) is driven


def test_a_lanelet_of_no_length_is_passed_over(tmp_path: Path) -> None:
    point = [(10.0, 3.0), (10.0, 3.0)], [(10.0, 0.0), (10.0, 0.0)]
    far = [(x + 10, y) for x, y in LEFT], [(x + 10, y) for x, y in RIGHT]
    network = read_text(
        tmp_path,
        scenario(
            lanelet("1", LEFT, RIGHT, '<successor ref="2"/>'),
            lanelet("2", *point, more='<successor ref="3"/><successor ref="2"/>'),
            lanelet("3", *far),
        ),
    )
    assert {name: lane.following for name, lane in network.lanes.items()} == {"1": ("3",), "3": ()}


def test_points_that_repeat_count_once(tmp_path: Path) -> None:
    left, right = [(0, 3), (0, 3), (5, 3), (5.001, 3), (10, 3)], [(0, 0), (0.002, 0), (10, 0), (10, 0)]
    line = line_of(read_text(tmp_path, scenario(lanelet("1", left, right))), "1")
    assert line[0] == (0.0, 1.5) and line[-1] == (10.0, 1.5)
    assert all(hypot(bx - ax, by - ay) >= 0.05 for (ax, ay), (bx, by) in pairwise(line))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (lanelet("1", LEFT, [(0, 0)]), "map:2 not_complete rightBound"),
        (lanelet("", LEFT, RIGHT), "map:2 not_complete id"),
        (lanelet("1", LEFT, RIGHT) + "\n" + lanelet("1", LEFT, RIGHT), "map:3 given_twice 1"),
        (lanelet("1", LEFT, RIGHT).replace("10.0", "nan", 1), "map:2 no_number x"),
        (lanelet("1", LEFT, RIGHT).replace("<y>3.0</y>", "", 1), "map:2 not_complete"),
        (lanelet("1", LEFT, [(0, 0), (1e8, 0)]), "map:2 out_of_range 1"),
    ],
)
def test_a_lanelet_that_is_not_whole_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    with refused(fault, BadInputError):
        read_text(tmp_path, scenario(text))
