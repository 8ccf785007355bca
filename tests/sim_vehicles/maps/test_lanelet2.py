"""Lanelet2 maps: which way bounds run, places, one way and both, and who may drive."""

from __future__ import annotations

from itertools import pairwise
from math import cos, sin
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim_vehicles.errors import BadInputError
from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.maps.utm import Geodetic, utm
from sim_vehicles.world.geometry import Point
from tests.sentences import refused
from tests.sim_vehicles.maps.crossing_files import LANELET2, line_of, read_text

LEFT, RIGHT = [(0.0, 3.0), (10.0, 3.0)], [(0.0, 0.0), (10.0, 0.0)]


def osm(left: list[Point], right: list[Point], tags: dict[str, str] | None = None) -> str:
    """A map of one lanelet, the nodes' places as tags."""
    places = [*left, *right]
    nodes = [
        f'<node id="{k}"><tag k="local_x" v="{x}"/><tag k="local_y" v="{y}"/></node>' for k, (x, y) in enumerate(places)
    ]
    ways = [
        f'<way id="{name}">{"".join(f"<nd ref={chr(34)}{k}{chr(34)}/>" for k in ids)}</way>'
        for name, ids in (("a", range(len(left))), ("b", range(len(left), len(places))))
    ]
    said = "".join(f'<tag k="{k}" v="{v}"/>' for k, v in {"type": "lanelet", **(tags or {})}.items())
    members = '<member type="way" ref="a" role="left"/><member type="way" ref="b" role="right"/>'
    return "\n".join(["<osm>", *nodes, *ways, f'<relation id="1">{members}{said}</relation>', "</osm>"])


def test_lanelets_follow_where_both_their_ends_are_shared() -> None:
    lanes = read_map(LANELET2).lanes
    assert {name: lane.following for name, lane in lanes.items()} == {
        "31": ("32", "33"), "32": ("34",), "33": ("35",), "34": (), "34:back": (), "35": (),
    }  # fmt: skip
    assert lanes["34:back"].line == lanes["34"].line[::-1]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=25), st.floats(2.0, 6.0), st.booleans(), st.booleans(),
    st.floats(-3.1, 3.1),
)  # fmt: skip
def test_a_lane_runs_with_its_left_bound_on_the_left(
    tmp_path: Path, bends: list[float], width_m: float, turn_left: bool, turn_right: bool, heading: float
) -> None:
    """A curve whose steps of 3 m turn by 0.3 rad at most, in all by less than 3 rad; both ways run as they like."""
    x = y = whole = 0.0
    left, right, headings = [], [], []
    for bend in [*bends, 0.0]:
        side_x, side_y = -sin(heading) * width_m / 2, cos(heading) * width_m / 2
        left.append((x + side_x, y + side_y))
        right.append((x - side_x, y - side_y))
        headings.append(heading)
        turn = bend if abs(whole + bend) <= 3.0 else 0.0
        whole += turn
        x, y, heading = x + 3 * cos(heading), y + 3 * sin(heading), heading + turn
    text = osm(left[::-1] if turn_left else left, right[::-1] if turn_right else right)
    line = line_of(read_text(tmp_path, text), "1")
    middles = [((ax + bx) / 2, (ay + by) / 2) for (ax, ay), (bx, by) in zip(left, right, strict=True)]
    assert line[0] == pytest.approx(middles[0], abs=0.01) and line[-1] == pytest.approx(middles[-1], abs=0.01)
    for (ax, ay), (bx, by) in pairwise(line):
        nearest = min(range(len(middles)), key=lambda k: (middles[k][0] - ax) ** 2 + (middles[k][1] - ay) ** 2)
        assert (bx - ax) * cos(headings[nearest]) + (by - ay) * sin(headings[nearest]) > 0.0


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ({}, {"1"}),
        ({"subtype": "road", "one_way": "yes"}, {"1"}),
        ({"subtype": "road", "one_way": "no"}, {"1", "1:back"}),
        ({"subtype": "road", "one_way": "yes", "one_way:vehicle": "no"}, {"1", "1:back"}),
        ({"subtype": "bus_lane"}, {"1"}),
        ({"subtype": "walkway", "participant:vehicle": "yes"}, {"1"}),
        ({"subtype": "walkway", "participant:vehicle:bus": "yes"}, {"1"}),
        ({"subtype": "walkway"}, set()),
        ({"subtype": "bicycle_lane"}, set()),
        ({"subtype": "road", "participant:vehicle": "no"}, set()),
        ({"subtype": "road", "participant:pedestrian": "yes"}, set()),
    ],
)
def test_tags_say_who_drives_and_which_way(tags: dict[str, str], names: set[str], tmp_path: Path) -> None:
    if not names:
        with refused("map no_lanes", BadInputError):
            read_text(tmp_path, osm(LEFT, RIGHT, tags))
    else:
        assert set(read_text(tmp_path, osm(LEFT, RIGHT, tags)).lanes) == names


def geodetic(text: str, *places: tuple[float, float]) -> str:
    """The same map with latitudes and longitudes in place of the tags."""
    lines = text.split("\n")
    lines[1 : 1 + len(places)] = [f'<node id="{k}" lat="{lat}" lon="{lon}"/>' for k, (lat, lon) in enumerate(places)]
    return "\n".join(lines)


CORNERS = ((49.0001, 8.4), (49.0001, 8.401), (49.0, 8.4), (49.0, 8.401))  # LEFT and then RIGHT


def test_latitudes_and_longitudes_are_utm_relative_to_the_origin(tmp_path: Path) -> None:
    path = tmp_path / "map"
    path.write_text(geodetic(osm(LEFT, RIGHT), *CORNERS))
    line = line_of(read_map(path, Geodetic(49.0, 8.4)), "1")
    x0, y0 = utm(Geodetic(49.0, 8.4), 32)
    ends = [[utm(Geodetic(*CORNERS[k]), 32) for k in pair] for pair in ((0, 2), (1, 3))]
    expected = [((ax + bx) / 2 - x0, (ay + by) / 2 - y0) for (ax, ay), (bx, by) in ends]
    assert [line[0], line[-1]] == [pytest.approx(point, abs=0.001) for point in expected]
    assert line[-1][0] == pytest.approx(73.1, abs=0.1), "0.001 degrees of longitude at 49 degrees north"


def test_without_an_origin_a_map_far_from_zero_is_refused(tmp_path: Path) -> None:
    """INTERACTION's is 0, 0, in zone 31."""
    far = [(lat, lon + 20) for lat, lon in CORNERS]
    with refused("map:2 no_place 0", BadInputError):
        read_text(tmp_path, geodetic(osm(LEFT, RIGHT), *far))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('<nd ref="0"/>', '<nd ref="9"/>', "map:6 not_complete 9"),
        ('<nd ref="0"/>', "", "map:8 not_complete left"),
        ('ref="b"', 'ref="c"', "map:8 not_complete right"),
        ('role="right"', 'role="left"', "map:8 not_complete left"),
        ('v="3.0"', 'v="three"', "map:2 no_place 0"),
        ('<tag k="local_y" v="3.0"/>', "", "map:2 no_place 0"),
    ],
)
def test_a_map_that_is_not_whole_is_refused(old: str, new: str, fault: str, tmp_path: Path) -> None:
    text = osm(LEFT, RIGHT)
    assert old in text
    with refused(fault, BadInputError):
        read_text(tmp_path, text.replace(old, new, 1))
