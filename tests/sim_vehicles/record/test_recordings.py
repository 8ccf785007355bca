"""The committed recordings show what they are for; computed from motion and buildings, without SUMO."""

import json
from itertools import pairwise

import pytest

from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.record.facts import Facts, facts
from sim_vehicles.record.intersection import CONFLICT_S, STRAIGHT_M, Intersection
from sim_vehicles.record.write import check
from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.geometry import blocked
from sim_vehicles.world.scene import Scenario
from tests.sentences import Wording

SAID = Wording("record", "scenes")

SPEEDS = sorted(STRAIGHT_M)


@pytest.fixture(scope="module", params=SPEEDS)
def found(request: pytest.FixtureRequest) -> tuple[Intersection, Scenario, Facts]:
    crossing = Intersection(request.param)
    scenario = load_scenario(crossing.name)
    return crossing, scenario, facts(scenario.motion, scenario.scene)


Found = tuple[Intersection, Scenario, Facts]


def test_the_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in RECORDINGS.iterdir() if path.is_file()) < 2_000_000


def test_motion_is_fine_enough_and_its_units_are_right(found: Found) -> None:
    crossing, scenario, _ = found
    motion = scenario.motion
    assert not motion.skipped
    assert set(motion.tracks) == set("ABCDEFGX")
    assert (motion.start_s, motion.end_s) == (0, 16)
    for track in motion.tracks.values():
        for before, after in pairwise(track.states):
            assert 0 < after.t_s - before.t_s <= 0.0501
            moved = ((after.x_m - before.x_m) ** 2 + (after.y_m - before.y_m) ** 2) ** 0.5
            assert moved == pytest.approx((before.speed_mps + after.speed_mps) / 2 * 0.05, abs=0.12)
    for name in "AX":
        states = [state for state in motion.tracks[name].states if state.t_s <= CONFLICT_S]
        assert all(state.speed_mps == pytest.approx(crossing.speed_mps, abs=0.01) for state in states), "nobody brakes"


def test_a_and_x_collide_unless_a_brakes(found: Found) -> None:
    _, scenario, seen = found
    assert seen["collision_s"] is not None
    assert seen["least_gap_m"] == 0
    said = scenario.scene.raw["made"]["sumo_says_collision_s"]
    assert said == pytest.approx(seen["collision_s"], abs=0.3), "SUMO saw it as well"


def test_the_stations_perceive_x_before_a_does(found: Found) -> None:
    crossing, _, seen = found
    first, left = seen["first_perceived_s"], seen["first_perceived_left_m"]
    a, e, e_left, corner_left = first["A"], first["E"], left["E"], seen["a_sees_a_corner_left_m"]
    assert a is not None
    assert e is not None
    assert e_left is not None
    assert corner_left is not None
    for station in "BD":
        other = first[station]
        assert other is not None
        assert e <= other < a
    v = crossing.speed_mps
    assert corner_left < v * 0.2 + v * v / 14, "when A sees the first corner of X it is too late for 7 m/s2 after 0.2 s"
    by_the_rule_m = v * (0.1 + 0.2) + v * 0.3 / 2 - 7 * 0.3**2 / 24 + v * v / (2 * 7) + v  # D(100 ms) + 1 s
    assert 0 <= e_left - by_the_rule_m < 0.1 * v, "as late as the rule allows, to two steps of the recording"
    check(crossing, seen)


def test_a_scene_in_which_x_is_seen_too_late_is_refused(found: Found) -> None:
    crossing, _, seen = found
    with SAID.refuses(f"seen_too_late {crossing.name}"):
        check(crossing, {**seen, "first_perceived_left_m": {"E": crossing.first_sight_m - 0.01, "A": None}})


def test_the_houses_leave_the_roads_free(found: Found) -> None:
    crossing, scenario, _ = found
    for line in crossing.roads().values():
        for a, b in pairwise(line):
            assert not blocked(a, b, [polygon for polygon in scenario.scene.occluders if polygon])


def test_the_facts_in_the_scene_file_are_these(found: Found) -> None:
    crossing, scenario, seen = found
    raw = scenario.scene.raw
    assert raw["facts"] == json.loads(json.dumps(seen))
    assert raw["made"]["command"] == f"sim-vehicles record --speed {crossing.speed_kmh} --seed 1"
    assert raw["made"]["with"].startswith("Eclipse SUMO ")
