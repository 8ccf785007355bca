"""What really happened between recorded vehicles, against motion whose outcome can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, cos, degrees, hypot, inf, pi, sin
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_vehicles.readers.formats import read_motion
from sim_vehicles.traffic import truth
from sim_vehicles.traffic.drivable_motion import MOST_SIDEWAYS_MPS2, OVER_S, UNSETTLED_S, drivable
from sim_vehicles.traffic.shared_ground import overlaps, sampled
from sim_vehicles.traffic.truth import Conflict, Encounter, Limits
from sim_vehicles.world.motion import Motion, State, Track, wrap
from tests.sim_vehicles.recorded_data import LANKERSHIM

LENGTH_M, WIDTH_M = 4.0, 2.0
STEP_S = Limits().step_s
COARSE_S = 2 * STEP_S + 1e-6  # one instant of each of the two
Place = tuple[float, float, float, float]  # x, y, heading, speed


def track(name: str, place: Callable[[float], Place], until_s: float = 10.0) -> Track:
    states = [State(k / 10, *place(k / 10)) for k in range(round(until_s * 10) + 1)]
    return Track(name, "car", LENGTH_M, WIDTH_M, states)


def straight(
    heading_rad: float, speed_mps: float, there_s: float, x_m: float = 0.0, y_m: float = 0.0
) -> Callable[[float], Place]:
    """Constant speed; the centre is at (x_m, y_m) at there_s."""

    def place(t_s: float) -> Place:
        way = speed_mps * (t_s - there_s)
        return x_m + way * cos(heading_rad), y_m + way * sin(heading_rad), heading_rad, speed_mps

    return place


def left_turn(speed_mps: float, there_s: float) -> Callable[[float], Place]:
    """Eastward along y = 0, a quarter circle of 6 m, northward along x = 0; the centre is at (0, 9) at there_s."""

    def place(t_s: float) -> Place:
        way = speed_mps * (t_s - there_s) + 3 + 3 * pi  # since the turn began
        if way < 0:
            return -6 + way, 0.0, 0.0, speed_mps
        if way < 3 * pi:
            angle = way / 6
            return -6 + 6 * sin(angle), 6 - 6 * cos(angle), angle, speed_mps
        return 0.0, 6 + way - 3 * pi, pi / 2, speed_mps

    return place


def met(one: Track, other: Track, limits: Limits | None = None) -> Encounter | None:
    a, b = (sampled(each, STEP_S)[0] for each in (one, other))
    return truth.encounter(a, b, overlaps(a, b), limits or Limits())


def conflicts(*tracks: Track) -> list[Conflict]:
    return truth.conflicts(Motion({one.id: one for one in tracks}, "made"))


@pytest.mark.parametrize(("behind_s", "pet_s"), [(0.9, 0.3), (1.6, 1.0), (2.0, 1.4), (3.0, 2.4)])
def test_crossing_paths_have_the_time_between_leaving_and_entering(behind_s: float, pet_s: float) -> None:
    """Both at 10 m/s: the first has left the common 2 m x 2 m when its centre is 3 m past the crossing, 0.3 s after it
    was there; the second enters when its centre is 3 m before. So PET is 0.6 s less than the centres are apart."""
    east, north = track("east", straight(0, 10, 4)), track("north", straight(pi / 2, 10, 4 + behind_s))
    found = met(east, north)
    assert found is not None
    assert (found.first, found.second) == ("east", "north")
    assert found.pet_s == pytest.approx(pet_s, abs=COARSE_S)
    assert found.at_s == pytest.approx(4 + behind_s - 0.3, abs=COARSE_S)
    assert degrees(found.angle_rad) == pytest.approx(90)
    kinds = [(one.ego, one.other, one.kind) for one in conflicts(east, north)]
    expected = [("east", "north", "crossing"), ("north", "east", "crossing")] if pet_s <= 1.5 else []
    assert kinds == expected


def test_boxes_that_touch_have_pet_0() -> None:
    found = met(track("a", straight(0, 10, 4)), track("b", straight(pi / 2, 10, 4.3)))
    assert found is not None
    assert found.pet_s == 0


def test_the_angle_decides_between_crossing_and_merging() -> None:
    """Paths at 25 degrees, or 25 from opposite, share ground within a second, yet that is no crossing conflict; at 35
    degrees it is."""
    east = track("a", straight(0, 10, 4))
    for angle_deg, egos in ((25, []), (35, ["a", "b"]), (145, ["a", "b"]), (155, [])):
        other = track("b", straight(angle_deg * pi / 180, 10, 5.5 if angle_deg < 90 else 4.3))
        found = conflicts(east, other)
        assert met(east, other) is not None
        assert [one.ego for one in found if one.kind == "crossing"] == egos


def test_the_least_ttc_is_where_the_ego_is_nearest_to_the_blow() -> None:
    """At 10 m/s each the boxes of 4 m x 2 m touch 3 m before the middle, 0.3 s before 4 s."""
    found = conflicts(track("a", straight(0, 10, 4)), track("b", straight(pi / 2, 10, 4)))
    crossing = [one for one in found if one.kind == "crossing" and one.ttc_s < inf]
    assert crossing
    assert all(one.ttc_at_s + one.ttc_s == pytest.approx(3.7, abs=COARSE_S) for one in crossing)


def test_following_at_a_steady_distance_is_no_conflict() -> None:
    """Centres 15 m apart, 11 m between the boxes: 1.1 s at 10 m/s."""
    leader, follower = track("leader", straight(0, 10, 2)), track("follower", straight(0, 10, 3.5))
    found = met(leader, follower)
    assert found is not None
    assert found.pet_s == pytest.approx(1.1, abs=COARSE_S)
    assert found.across_s == inf
    assert conflicts(leader, follower) == []


def test_following_round_a_bend_is_no_conflict() -> None:
    """The headings of the two differ by over 60 degrees in the bend, their paths do not."""
    assert conflicts(track("leader", left_turn(6, 4)), track("follower", left_turn(6, 5.2))) == []


def test_a_follower_that_closes_in_needs_half_the_square_of_the_speed_over_the_gap() -> None:
    """20 m/s behind 10 m/s, 12.5 m between the boxes: 100 / 25 = 4 m/s2, and 1.25 s to the touch."""

    def brakes(t_s: float) -> Place:
        rolled = min(max(t_s - 1, 0.0), 10 / 6)
        x = 20 * min(t_s, 1.0) + 20 * rolled - 3 * rolled**2 + 10 * max(t_s - 1 - 10 / 6, 0.0)
        return x, 0.0, 0.0, 20 - 6 * rolled

    leader = track("leader", straight(0, 10, 0, x_m=36.5))
    follower = track("follower", brakes)
    a, b = (sampled(one, STEP_S)[0] for one in (follower, leader))
    deceleration, ttc = truth.needed(a, b, overlaps(a, b), Limits())
    at_1s = round(
        1.0 / STEP_S
    )  # 20 m on, the leader 10 m on: 36.5 - 10 - 4 = 22.5 m: 100 / 45; places are those of instants, 1 m apart
    assert deceleration[at_1s] == pytest.approx(100 / 45, abs=0.15)
    assert ttc[at_1s] == pytest.approx(2.25, abs=2 * STEP_S)
    assert conflicts(leader, follower) == []
    closer = track("closer", lambda t_s: (brakes(t_s)[0] + 10.0, *brakes(t_s)[1:]))
    a = sampled(closer, STEP_S)[0]
    deceleration, ttc = truth.needed(a, b, overlaps(a, b), Limits())
    assert deceleration[at_1s] == pytest.approx(4.0, abs=0.15)
    assert ttc[at_1s] == pytest.approx(1.25, abs=2 * STEP_S)
    found = conflicts(leader, closer)
    assert [(one.ego, one.other, one.kind) for one in found] == [("closer", "leader", "closing")]
    assert found[0].from_s == pytest.approx(
        0.75, abs=0.1
    )  # 100 / (2 x 14.9 m): 2.4 m more, a quarter of a second sooner


def test_whoever_is_run_into_from_behind_has_nothing_to_brake_for() -> None:
    def starts(t_s: float) -> Place:
        return 1.5 * t_s * t_s, 0.0, 0.0, 3 * t_s

    assert conflicts(track("ahead", starts, 6), track("behind", lambda t: (starts(t)[0] - 6, *starts(t)[1:]), 6)) == []


def test_oncoming_in_the_next_lane_shares_no_ground() -> None:
    assert met(track("a", straight(0, 14, 4)), track("b", straight(pi, 14, 4, y_m=3.5))) is None


@pytest.mark.parametrize(("behind_s", "conflict"), [(1.5, True), (3.0, False)])
def test_turning_left_behind_oncoming_traffic(behind_s: float, conflict: bool) -> None:
    """Oncoming at 10 m/s along y = 9 has left the turner's 2 m when 3 m past it: after 0.3 s. The turner at 6 m/s
    enters when its centre is 3 m before: 0.5 s before it is there. PET is 0.8 s less than the centres are apart."""
    oncoming = track("oncoming", straight(pi, 10, 5, y_m=9))
    turner = track("turner", left_turn(6, 5 + behind_s))
    found = met(oncoming, turner)
    assert found is not None
    assert (found.first, found.second) == ("oncoming", "turner")
    assert found.pet_s == pytest.approx(behind_s - 0.8, abs=COARSE_S)
    assert degrees(found.angle_rad) == pytest.approx(90, abs=25)
    assert bool(conflicts(oncoming, turner)) == conflict


def test_a_gap_in_a_recording_is_not_bridged() -> None:
    states = [State(t, 10 * t, 0.0, 0.0, 10.0) for t in (0.0, 0.5, 1.0, 3.0, 3.5)]
    courses = sampled(Track("gap", "car", LENGTH_M, WIDTH_M, states), STEP_S)
    assert [(one.first * STEP_S, len(one)) for one in courses] == [(0.0, 21), (3.0, 11)]


CONFLICT = Conflict("a", "b", "crossing", 5.0, 5.0)


@pytest.mark.parametrize(
    ("at_s", "known_until_s", "judgement"),
    [
        (1.0, 5.0, "true"),  # four seconds before
        (4.9, 5.0, "true"),
        (5.0, 99.0, "false"),  # no sooner than the encounter
        (5.0, 9.0, "undecidable"),
        (-4.0, 99.0, "false"),  # nine seconds before: not about this
    ],
)
def test_a_warning_is_judged_by_what_followed(at_s: float, known_until_s: float, judgement: str) -> None:
    assert truth.judged(at_s, [CONFLICT], known_until_s, Limits()) == judgement


@settings(max_examples=40, deadline=None)
@given(st.floats(-pi, pi), st.floats(-50, 50), st.floats(-50, 50), st.floats(20, 160), st.floats(-2, 2))
def test_neither_order_nor_place_matters(turn: float, x_m: float, y_m: float, angle_deg: float, late_s: float) -> None:
    one = track("a", straight(0, 8, 3), 6)
    other = track("b", straight(angle_deg * pi / 180, 11, 3 + late_s), 6)
    a, b = (sampled(each, STEP_S)[0] for each in (one, other))
    shared = overlaps(a, b)
    assert np.array_equal(shared.swapped(), overlaps(b, a))

    def moved(state: State) -> State:
        x, y = state.x_m, state.y_m
        there = (x_m + x * cos(turn) - y * sin(turn), y_m + x * sin(turn) + y * cos(turn))
        return State(state.t_s, *there, state.heading_rad + turn, state.speed_mps)

    c, d = (
        sampled(Track(each.id, "car", LENGTH_M, WIDTH_M, [moved(s) for s in each.states]), STEP_S)[0]
        for each in (one, other)
    )
    differing = {*zip(*shared, strict=True)} ^ {*zip(*overlaps(c, d), strict=True)}
    assert len(differing) <= 4  # boxes that just touch, by rounding
    assert hypot(float(d.x_m[0] - c.x_m[0]), float(d.y_m[0] - c.y_m[0])) == pytest.approx(
        hypot(float(b.x_m[0] - a.x_m[0]), float(b.y_m[0] - a.y_m[0]))
    )


def test_a_recorded_swing_that_no_car_can_drive_is_no_crossing() -> None:
    """2168 goes from 14 m/s to 4 and back to 15 within 0.8 s, and turns by 85 degrees and back: over 2 g each way. Its
    label slipped to the next lane, where 2166 follows 0.6 s behind."""
    path = LANKERSHIM / "USA_Lanker-2_19_T-1.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    motion = read_motion(path)
    found = met(motion.tracks["2166"], motion.tracks["2168"])
    assert found is not None
    assert (found.first, found.second) == ("2168", "2166")
    assert found.pet_s == pytest.approx(0.6, abs=STEP_S)
    assert found.across_s == inf
    assert not [one for one in truth.conflicts(motion) if "2168" in (one.ego, one.other)]


def swings(at_s: float, by_rad: float) -> Callable[[float], Place]:
    """10 m/s eastward, 11 m ahead of `straight(0, 10, 4)`. Within 0.2 s the heading is turned, and 0.2 s later back."""

    def place(t_s: float) -> Place:
        share = max(0.0, 1 - abs(t_s - at_s) / 0.2)
        return 10 * (t_s - 4) + 11, 0.0, share * by_rad, 10.0

    return place


@pytest.mark.parametrize("by_rad", [0.7, -1.5])
def test_a_leader_whose_heading_swings_is_followed_and_not_crossed(by_rad: float) -> None:
    """10 m/s and 3.5 rad/s are 3.6 g."""
    leader, follower = track("leader", swings(5, by_rad)), track("follower", straight(0, 10, 4))
    found = met(leader, follower)
    assert found is not None
    assert found.pet_s < Limits().pet_s
    assert found.across_s == inf
    course = sampled(leader, STEP_S)[0]
    driven = drivable(course, STEP_S)
    away = np.abs((course.first + np.arange(len(course))) * STEP_S - 5) > 0.2 + OVER_S / 2 + UNSETTLED_S + STEP_S
    assert driven[away].all()
    assert not driven[~away][3:-3].any()


@given(st.floats(1, 30), st.floats(-MOST_SIDEWAYS_MPS2 + 0.1, MOST_SIDEWAYS_MPS2 - 0.1))
def test_every_turn_within_what_tyres_give_is_drivable(speed_mps: float, sideways_mps2: float) -> None:
    yaw_rate = sideways_mps2 / speed_mps

    def place(t_s: float) -> Place:
        return 0.0, 0.0, (yaw_rate * t_s + pi) % (2 * pi) - pi, speed_mps

    if abs(yaw_rate) < pi / 0.2:  # a faster one is not what is recorded at 10 Hz
        assert drivable(sampled(track("a", place, 3), STEP_S)[0], STEP_S).all()


def test_one_whose_tail_would_be_struck_at_its_speed_has_a_ttc_and_nothing_to_brake_for() -> None:
    """At 6 m/s the centre would be 0.8 m past the crossing when the other's front comes, at 4.7 s. From 2 s on it
    speeds up and is gone by then."""

    def place(t_s: float) -> Place:
        late = max(t_s - 2, 0.0)
        return 2.6 + 6 * (t_s - 5) + late * late, 0.0, 0.0, 6 + 2 * late

    first, second = track("first", place, 8), track("second", straight(pi / 2, 10, 5), 8)
    a, b = (sampled(one, STEP_S)[0] for one in (first, second))
    deceleration, ttc = truth.needed(a, b, overlaps(a, b), Limits())
    at_2s = round(2 / STEP_S)
    assert ttc[at_2s] == pytest.approx(2.7, abs=COARSE_S)
    assert (deceleration == 0).all()
    assert truth.needed(b, a, overlaps(b, a), Limits())[1].min() == inf
    assert {one.ego: one.ttc_s < 2.7 for one in conflicts(first, second)} == {"first": True, "second": False}


@pytest.mark.parametrize("spin_rps", [3.0, -4.0])
def test_cars_that_spin_after_a_blow_have_crossed(spin_rps: float) -> None:
    """Both at 10 m/s to a right-angled blow at 5 s, then each turns on and on."""

    def driven(name: str, x: float, y: float, heading: float, spin: float) -> Track:
        states = []
        for k in range(80):
            t = k / 10
            turned = max(0.0, t - 5.0) * spin
            along = 10 * min(t, 5.0) + 3 * max(0.0, t - 5.0)
            states.append(State(t, x + along * cos(heading), y + along * sin(heading), wrap(heading + turned), 10.0))
        return Track(name, "car", 4.5, 1.8, states)

    found = met(driven("a", -50, 0, 0.0, spin_rps), driven("b", 0, -50, pi / 2, -spin_rps))
    assert found is not None and found.across_s < 0.2


def test_noise_of_headings_leaves_a_crossing(seed: int) -> None:
    draw = Random(seed)
    noisy = [
        Track(name, "car", 4.5, 1.8, [
            State(k / 10, x + 1.5 * k * c, y + 1.5 * k * s, atan2(s, c) + draw.gauss(0, 0.04), 15.0)
            for k in range(80)
        ])
        for name, x, y, c, s in (("a", -50.0, 0.0, 1.0, 0.0), ("b", 0.0, -52.0, 0.0, 1.0))
    ]  # fmt: skip
    found = met(*noisy)
    assert found is not None and found.across_s < Limits().pet_s
