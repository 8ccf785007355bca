"""A vehicle that is told to brake: its motion against the closed form, on straight and bent paths."""

from itertools import pairwise
from math import cos, hypot, pi, sin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_vehicles.encounter.brake import AUTO, DRIVER, NONE, STEP_S, Brake, braked, parse_brake
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.world.motion import MAX_GAP_S, State, Track
from tests.sentences import Wording

SAID = Wording("replay", "brake")


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


@settings(max_examples=30, deadline=None)
@given(
    v=st.floats(1, 25),
    a=st.floats(3, 9),
    reaction_s=st.floats(0, 1.5),
    commanded_s=st.floats(0.1, 3.0),
    t_s=st.floats(0, 12),
)
def test_braking_follows_the_closed_form(v: float, a: float, reaction_s: float, commanded_s: float, t_s: float) -> None:
    track = braked(straight(v), Brake("auto", a, reaction_s), commanded_s)
    begins_s = commanded_s + reaction_s
    braking_s = min(max(0.0, t_s - begins_s), v / a)
    expected_m = v * min(t_s, begins_s) + v * braking_s - a * braking_s**2 / 2
    state = track.at(t_s)
    assert state is not None
    assert state.y_m == pytest.approx(expected_m, abs=2e-3)  # far below a centimetre
    assert state.speed_mps == pytest.approx(v - a * braking_s, abs=0.02)
    assert state.x_m == pytest.approx(0, abs=1e-9)


def test_the_motion_before_the_brake_bites_is_the_recorded_one_and_the_track_is_fine_after_it() -> None:
    recorded = straight(10)
    track = braked(recorded, AUTO, 3.012)
    assert [state for state in track.states if state.t_s < 3.212] == [s for s in recorded.states if s.t_s < 3.212]
    stands_s = 3.212 + 10 / 7
    times = [state.t_s for state in track.states]
    assert all(b - a > 0 for a, b in pairwise(times))
    assert all(b - a <= STEP_S + 1e-9 for a, b in pairwise(times) if 3.212 <= a < stands_s - 1e-9)
    assert all(b - a < MAX_GAP_S for a, b in pairwise(times)), "it has not vanished while it stands"
    assert times[-1] == 12.0
    last = track.at(12.0)
    assert last is not None
    assert (last.speed_mps, last.y_m) == (0, pytest.approx(32.12 + 100 / 14))
    now = track.at(3.5)
    assert now is not None
    assert now.acceleration_mps2 == pytest.approx(-7)


def test_on_a_bend_the_path_is_kept_and_its_arc_length_is_what_brakes() -> None:
    recorded = circle(10, 20)
    track = braked(recorded, AUTO, 2.0)
    stood = track.states[-1]
    way_m = 22.0 + 100 / 14
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
    track = braked(stops, Brake("auto", 7.0, 0.0), 4.9)  # it would have stopped harder than its brake
    assert track.states[-1].y_m == pytest.approx(49 + 100 / 14)


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


def test_ways_to_brake_as_a_user_writes_them() -> None:
    assert parse_brake("auto") == AUTO == Brake("auto", 7.0, 0.2)
    assert parse_brake("driver") == DRIVER == Brake("driver", 6.0, 1.0)
    assert parse_brake("none") == NONE
    assert parse_brake("auto:5.5,150ms") == Brake("auto", 5.5, 0.15)
    assert parse_brake("driver:6,1.5s") == Brake("driver", 6.0, 1.5)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "unknown_word"), ("hard", "unknown_word"), ("auto:", "wrong_form"), ("auto:7", "wrong_form"),
        ("auto:x,1s", "no_number"), ("auto:0,1s", "out_of_range"),
        ("auto:nan,1s", "out_of_range"), ("auto:99,1s", "out_of_range"),
        ("auto:7,1", "no_unit"),
        ("auto:7,1h", "no_unit"), ("auto:7,11s", "out_of_range"), ("none:7,0.2s", "wrong_form"),
    ],
)  # fmt: skip
def test_a_brake_that_cannot_be_is_refused_with_its_mend(text: str, code: str) -> None:
    with SAID.refuses(f"{code} --brake"):
        parse_brake(text)
