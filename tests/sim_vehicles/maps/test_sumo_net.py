"""SUMO's networks: ways through junctions, and who may drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.maps.map_formats import read_map
from tests.sentences import refused
from tests.sim_vehicles.maps.crossing_files import SUMO, read_text

LANE = '<lane id="a_0" index="0" shape="0,0 9,0" width="3"/>'


def net(*lines: str) -> str:
    return "\n".join(["<net>", *lines, "</net>"])


def test_lanes_lead_through_junctions() -> None:
    """Past a lane inside that has no length, and past what goes by another lane inside."""
    lanes = read_map(SUMO).lanes
    assert {name: lane.following for name, lane in lanes.items()} == {
        ":C_0_0": ("north_0",), ":C_1_0": (":C_2_0",), ":C_2_0": ("west_0",), "far_0": (), "north_0": (),
        "south_1": (":C_0_0", ":C_1_0"), "west_0": ("far_0",),
    }  # fmt: skip
    assert lanes["south_1"].width_m == 3.5 and lanes["far_0"].width_m is None
    assert lanes["south_1"].line == ((1.75, -50.0), (1.75, -30.0), (1.75, -8.0)), "heights are left out"


def test_without_lanes_inside_junctions_edges_lead_into_edges(tmp_path: Path) -> None:
    other = LANE.replace("a_0", "b_0").replace("0,0 9,0", "9,0 19,0")
    joint = '<connection from="a" to="b" fromLane="0" toLane="0" via=":gone_0_0"/>'
    network = read_text(tmp_path, net(f'<edge id="a">{LANE}</edge>', f'<edge id="b">{other}</edge>', joint))
    assert network.lanes["a_0"].following == ("b_0",)


@pytest.mark.parametrize(
    ("permission", "driven"),
    [
        ("", True),
        ('allow="all"', True),
        ('allow="bus bicycle"', True),
        ('allow="pedestrian bicycle"', False),
        ('allow="rail tram"', False),
        ('disallow="all"', False),
        ('disallow="pedestrian tram"', True),
        (
            'disallow="passenger private taxi bus coach delivery truck trailer emergency authority army vip hov'
            ' motorcycle moped evehicle custom1 custom2"',
            False,
        ),
    ],
)
def test_lanes_without_motor_vehicles_are_left_out(permission: str, driven: bool, tmp_path: Path) -> None:
    other = f'<edge id="b"><lane id="b_0" index="0" shape="0,5 9,5" {permission}/></edge>'
    assert ("b_0" in read_text(tmp_path, net(f'<edge id="a">{LANE}</edge>', other)).lanes) is driven


@pytest.mark.parametrize(
    ("lane", "fault"),
    [
        (LANE.replace("9,0", "9"), "map:2 no_number a_0"),
        (LANE.replace("9,0", "inf,0"), "map:2 no_number a_0"),
        (LANE.replace("9,0", "1e9,0"), "map:2 out_of_range a_0"),
        (LANE.replace('"3"', '"wide"'), "map:2 no_number a_0"),
        ('<lane id="a_0" index="0"/>', "map:2 not_complete"),
        ('<lane index="0" shape="0,0 9,0"/>', "map:2 not_complete"),
        (LANE + LANE, "map:2 given_twice a_0"),
        ('<lane id="a_0" index="0" shape="1,1 1,1"/>', "map no_lanes"),
    ],
)
def test_a_lane_that_is_not_whole_is_refused(lane: str, fault: str, tmp_path: Path) -> None:
    with refused(fault, BadInputError):
        read_text(tmp_path, net(f'<edge id="a">{lane}</edge>'))
