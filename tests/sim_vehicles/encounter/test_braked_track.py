"""A vehicle that is told to brake: its track before, during and after, on straight and bent paths."""

from itertools import pairwise
from math import cos, hypot, pi, sin

import pytest

from sim_vehicles.encounter.brake import AUTO, NONE, Brake
from sim_vehicles.encounter.braked_track import STEP_S, braked
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.world.motion import MAX_GAP_S, State, Track

BRAKING_M = 10 * 0.3 / 2 - 7 * 0.3**2 / 24 + 100 / 14  # from 10 m/s, at 7 m/s2 that build up in 0.3 s


def straight(speed_mps: float, end_s: float = 12.0, step_s: float = 0.05) -> Track:
    """North along x = 0 from the origin."""
    count = round(end_s / step_s)
    states = [State(i * step_s, 0.0, speed_mps * i * step_s, pi / 2, speed_mps) for i in range(count + 1)]
    return Track("A", "car", 4.0, 2.0, states)


def circle(speed_mps: float, radius_m: float, end_s: float = 12.0) -> Track:
    """Counter-clockwise round the origin from (radius, 0), a record every 50 ms."""
    states = []
    for i in range(round(end_s / 0.05) + 1):
        angle = speed_mps * i * 0.05 / radius_m
        x_m, y_m = radius_m * cos(angle), radius_m * sin(angle)
        states.append(State(i * 0.05, x_m, y_m, (angle + pi / 2 + pi) % (2 * pi) - pi, speed_mps))
    return Track("A", "car", 4.0, 2.0, states)


def test_the_motion_before_the_brake_bites_is_the_recorded_one_and_the_track_is_fine_after_it() -> None:
    recorded = straight(10)
    track = braked(recorded, AUTO, 3.012)
    assert [state for state in track.states if state.t_s < 3.212] == [s for s in recorded.states if s.t_s < 3.212]
    stands_s = 3.212 + 0.3 / 2 + 10 / 7
    times = [state.t_s for state in track.states]
    assert all(b - a > 0 for a, b in pairwise(times))
    assert all(b - a <= STEP_S + 1e-9 for a, b in pairwise(times) if 3.212 <= a < stands_s - 1e-9)
    assert all(b - a < MAX_GAP_S for a, b in pairwise(times)), "it has not vanished while it stands"
    assert times[-1] == 12.0
    last = track.at(12.0)
    assert last is not None
    assert (last.speed_mps, last.y_m) == (0, pytest.approx(32.12 + BRAKING_M))
    now = track.at(3.6)
    assert now is not None
    assert now.acceleration_mps2 == pytest.approx(-7)


def test_on_a_bend_the_path_is_kept_and_its_arc_length_is_what_brakes() -> None:
    recorded = circle(10, 20)
    track = braked(recorded, AUTO, 2.0)
    stood = track.states[-1]
    way_m = 22.0 + BRAKING_M
    assert hypot(stood.x_m, stood.y_m) == pytest.approx(20, abs=0.01)
    assert stood.x_m == pytest.approx(20 * cos(way_m / 20), abs=0.02)
    assert stood.y_m == pytest.approx(20 * sin(way_m / 20), abs=0.02)
    assert stood.heading_rad == pytest.approx((way_m / 20 + pi / 2 + pi) % (2 * pi) - pi, abs=0.01)
    way = DrivenPath(track).way_m(12.0)
    assert way is not None
    assert DrivenPath(recorded).way_m(2.9) == pytest.approx(29.0, abs=0.01)
    assert way == pytest.approx(way_m, abs=0.01), "arc lengths of both tracks can be compared"


def test_a_path_that_is_longer_than_the_recording_goes_on_straight() -> None:
    recorded = straight(10, end_s=5.0)
    stops = Track(
        "A", "car", 4.0, 2.0, [*recorded.states, *(State(5.0 + i / 2, 0, 50, pi / 2, 0) for i in range(1, 9))]
    )
    track = braked(stops, Brake("auto", 7.0), 4.9)  # it would have stopped harder than its brake
    assert track.states[-1].y_m == pytest.approx(49 + BRAKING_M)


@pytest.mark.parametrize("commanded_s", [-1.0, 11.9, 30.0])
def test_without_a_state_when_the_brake_bites_nothing_changes(commanded_s: float) -> None:
    recorded = straight(10)
    assert braked(recorded, AUTO, commanded_s) is recorded


def test_no_brake_changes_nothing() -> None:
    recorded = straight(10)
    assert braked(recorded, NONE, 3.0) is recorded


def test_a_standing_vehicle_stays() -> None:
    track = braked(straight(0.0), AUTO, 3.0)
    assert {(state.x_m, state.y_m, state.speed_mps) for state in track.states} == {(0.0, 0.0, 0.0)}
