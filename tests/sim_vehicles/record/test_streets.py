"""The committed recordings of city traffic are what they are said to be; computed without SUMO."""

import json
from itertools import pairwise
from math import atan2, hypot
from random import Random

import pytest

from sim_vehicles.cli.record_streets import STATIONS
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.record.street_traffic import CLOSE, LASTS_S, STEP_S, mean_near
from sim_vehicles.record.streets import BLOCKS, LENGTH_M, WIDTH_M, name, wander
from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.geometry import blocked, box, inside
from sim_vehicles.world.motion import wrap
from sim_vehicles.world.scene import Scenario


@pytest.fixture(scope="module", params=STATIONS)
def found(request: pytest.FixtureRequest) -> tuple[int, Scenario]:
    return request.param, load_scenario(f"streets_{request.param}")


Found = tuple[int, Scenario]


def test_the_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in RECORDINGS.glob("streets_*")) < 1_600_000


def test_so_many_are_near_the_middle_all_the_time(found: Found) -> None:
    near, scenario = found
    assert mean_near(scenario.motion) == pytest.approx(near, rel=CLOSE)
    for track in scenario.motion.tracks.values():
        assert [state.t_s for state in track.states] == [i * STEP_S for i in range(round(LASTS_S / STEP_S) + 1)]
    facts = scenario.scene.raw["facts"]
    assert facts["vehicles"] == len(scenario.motion.tracks)
    assert facts["near"] == round(mean_near(scenario.motion), 1)
    speeds = [state.speed_mps for track in scenario.motion.tracks.values() for state in track.states]
    assert facts["speed_mps"] == round(sum(speeds) / len(speeds), 2)
    assert sorted([scenario.scene.ego, *scenario.scene.stations]) == sorted(scenario.motion.tracks)


def test_between_two_records_vehicles_go_where_they_head(found: Found) -> None:
    """In a bend they turn by up to 45 degrees from one record to the next; the way between is the mean heading's."""
    _, scenario = found
    off, turns = [], []
    for track in scenario.motion.tracks.values():
        for a, b in pairwise(track.states):
            turn = wrap(b.heading_rad - a.heading_rad)
            turns.append(abs(turn))
            way = (b.x_m - a.x_m, b.y_m - a.y_m)
            assert hypot(*way) == pytest.approx((a.speed_mps + b.speed_mps) / 2 * STEP_S, abs=1.0)
            if hypot(*way) > 1:
                off.append(abs(wrap(atan2(way[1], way[0]) - a.heading_rad - turn / 2)))
    assert max(turns) < 0.8
    assert max(off) < 0.35


def test_nobody_drives_through_a_house(found: Found) -> None:
    _, scenario = found
    for track in scenario.motion.tracks.values():
        for state in track.states[::9]:
            corners = box(state.x_m, state.y_m, state.heading_rad, LENGTH_M, WIDTH_M)
            near = [
                one for one in scenario.scene.occluders if hypot(one[0][0] - state.x_m, one[0][1] - state.y_m) < 150
            ]
            assert not any(inside(corner, house) for corner in corners for house in near)


def test_the_houses_leave_the_streets_free(found: Found) -> None:
    _, scenario = found
    for road in scenario.scene.raw["roads"]:
        a, b = road["line"]
        assert not blocked(tuple(a), tuple(b), scenario.scene.occluders)


def test_the_scene_says_how_it_was_made(found: Found) -> None:
    near, scenario = found
    made = scenario.scene.raw["made"]
    assert made["command"] == f"sim-vehicles record-streets --stations {near} --seed 1"
    assert made["with"].startswith("Eclipse SUMO ")
    text = (RECORDINGS / f"streets_{near}.json").read_text(encoding="utf-8")
    assert text == json.dumps(scenario.scene.raw, indent=1) + "\n"


def test_a_route_goes_from_street_to_street_and_never_back() -> None:
    routes = [wander(Random(seed), 60).split() for seed in range(5)]
    junctions = {name((x, y)) for x in range(BLOCKS + 1) for y in range(BLOCKS + 1)}
    for route in routes:
        assert len(route) == 60
        for street, after in pairwise(route):
            assert street[2:] == after[:2]
            assert after[2:] != street[:2]
            assert {street[:2], street[2:]} <= junctions
    assert routes[0] == wander(Random(0), 60).split()
    assert routes[0] != routes[1]
