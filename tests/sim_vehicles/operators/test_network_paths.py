"""Ways on over a network of lanes, against all ways by recursion."""

from __future__ import annotations

from itertools import pairwise
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.operators.models.network_paths import AHEAD_M, MOST_WAYS, paths_from
from sim_vehicles.world.lane_network import Lane, LaneNetwork
from tests.sim_vehicles.maps.crossing_files import COMMONROAD


def length(lane: Lane) -> float:
    return sum(hypot(bx - ax, by - ay) for (ax, ay), (bx, by) in pairwise(lane.line))


@st.composite
def networks(draw: st.DrawFn) -> LaneNetwork:
    """Up to eight lanes between points of a grid, each leading into up to three that begin where it ends."""
    ends = draw(st.lists(st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2), min_size=1, max_size=8))
    lines = [[(30.0 * x, 30.0 * y) for x, y in pair] for pair in ends if pair[0] != pair[1]]
    lines = lines or [[(0.0, 0.0), (30.0, 0.0)]]
    following = [[str(k) for k, other in enumerate(lines) if other[0] == line[-1]][:3] for line in lines]
    return LaneNetwork(
        Lane(str(k), tuple(line), tuple(after)) for k, (line, after) in enumerate(zip(lines, following, strict=True))
    )


def all_ways(network: LaneNetwork, way: tuple[str, ...], ahead_m: float) -> list[tuple[str, ...]]:
    further = [name for name in network.lanes[way[-1]].following if name not in way]
    if ahead_m >= AHEAD_M or not further:
        return [way]
    return [
        found for name in further for found in all_ways(network, (*way, name), ahead_m + length(network.lanes[name]))
    ]


@given(networks())
def test_the_ways_from_a_lane_are_all_ways_or_the_beginnings_of_all(network: LaneNetwork) -> None:
    found: dict[str, list[tuple[str, ...]]] = {name: [] for name in network.lanes}
    for path in (path for name in network.lanes for path in paths_from(network, name)):
        names = tuple(path.name.split(">"))
        found[names[0]].append(names)
        lanes = [network.lanes[name] for name in names]
        assert (path.x_m[0], path.y_m[0]) == lanes[0].line[0]
        most_m = length(lanes[0]) + min(AHEAD_M, sum(map(length, lanes[1:])))
        assert path.length_m == pytest.approx(most_m)
    for name, ways in found.items():
        every = all_ways(network, (name,), 0.0)
        assert len(set(ways)) == len(ways) <= MOST_WAYS
        if len(every) <= MOST_WAYS:
            assert set(ways) == set(every)
        else:
            assert all(any(each[: len(way)] == way for way in ways) for each in every), "no branch is left out"


def test_a_lane_of_a_crossing_goes_on_by_each_way() -> None:
    by_name = {path.name: path for path in paths_from(read_map(COMMONROAD), "1")}
    assert set(by_name) == {"1>2>4", "1>3>5"}
    assert by_name["1>2>4"].turn_rad == pytest.approx(0.0)
    assert by_name["1>3>5"].turn_rad == pytest.approx(1.571, abs=0.02), "to the left by a right angle"


def test_what_follows_is_cut_off() -> None:
    network = LaneNetwork([Lane("a", ((0.0, 0.0), (10.0, 0.0)), ("b",)), Lane("b", ((10.0, 0.0), (500.0, 0.0)))])
    (path,) = paths_from(network, "a")
    assert (path.x_m[-1], path.y_m[-1]) == (10.0 + AHEAD_M, 0.0)
