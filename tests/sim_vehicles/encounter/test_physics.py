"""The law of braking: its closed form against the formulas, small steps added up, and the braked track."""

from dataclasses import replace
from itertools import pairwise
from math import pi, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_vehicles.encounter.brake import AUTO, Brake
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.encounter.physics import KMH, impact_mps, moved, needed_m, stands_after_s
from sim_vehicles.world.motion import State, Track

AT_ONCE = replace(AUTO, build_up_s=0.0)
CM = 0.01
LATENCIES_S = (0.3, 0.4, 0.5, 0.7, 1.0)
# Without build-up, by hand from D = v (L + tau) + v^2 / (2 a). km/h: way needed at 300 ms, then the impact speed in
# km/h at each latency where just that way is left
TABLE = {
    30: (9.1, (0, 12, 17, 25, 30)),
    50: (20.7, (0, 16, 22, 32, 42)),
    70: (36.7, (0, 19, 27, 38, 50)),
}

speeds = st.floats(0.05, 40)
latencies = st.floats(0, 2)
brakes = st.builds(
    Brake,
    kind=st.just("driver"),
    deceleration_mps2=st.floats(2, 12),
    actuation_s=st.floats(0, 0.5),
    build_up_s=st.one_of(st.just(0.0), st.floats(1e-4, 2)),
    friction=st.floats(0.2, 1.2),
    reaction_s=st.floats(0, 2),
)


def straight(speed_mps: float) -> Track:
    """North from the origin at a constant speed, for as long as any brake here needs and longer."""
    return Track("A", "car", 4.0, 2.0, [State(t, 0.0, speed_mps * t, pi / 2, speed_mps) for t in map(float, range(61))])


@pytest.mark.parametrize("speed_kmh", sorted(TABLE))
def test_the_way_to_stand_and_the_impact_speed_by_latency(speed_kmh: int) -> None:
    way_m, impacts_kmh = TABLE[speed_kmh]
    v = speed_kmh / KMH
    needed = needed_m(v, 0.3, AT_ONCE)
    assert round(needed, 1) == way_m
    assert [round(impact_mps(v, needed, each, AT_ONCE) * KMH) for each in LATENCIES_S] == list(impacts_kmh)


def test_by_hand_with_build_up_and_where_it_stands_within_it() -> None:
    assert needed_m(10, 0.3, AUTO) == pytest.approx(10 * 0.5 + 1.5 - 7 * 0.09 / 24 + 100 / 14)
    slow = Brake("auto", 6.0, build_up_s=1.0)  # from 1 m/s: d = 6 u, so v = 1 - 3 u^2 and the way u - u^3
    assert stands_after_s(1.0, slow) == pytest.approx(1 / sqrt(3))
    assert needed_m(1.0, 0.0, slow) == pytest.approx(2 / 3 / sqrt(3))
    assert needed_m(3.0, 0.0, slow) == pytest.approx(6 / 3), "v = a t_b / 2: both forms are a t_b^2 / 3"
    u = 0.4
    assert impact_mps(1.0, u - u**3, 0.0, slow) == pytest.approx(1 - 3 * u**2)


def test_what_is_behind_the_reaction_is_hit_at_full_speed() -> None:
    late = replace(AUTO, reaction_s=0.5)
    assert impact_mps(10, 1.0, 0.0, late) == 10  # 7 m are driven before the brake bites
    assert impact_mps(10, -3.0, 0.0, AUTO) == 10  # it is there already


def test_the_road_limits_what_is_asked_for() -> None:
    ice = replace(AUTO, friction=0.1)
    assert ice.held_mps2 == pytest.approx(0.981) and AUTO.held_mps2 == 7
    assert needed_m(10, 0.1, ice) == needed_m(10, 0.1, replace(AUTO, deceleration_mps2=0.981))


@given(v=speeds, latency_s=latencies, brake=brakes)
def test_the_way_is_that_of_the_formula(v: float, latency_s: float, brake: Brake) -> None:
    a, t_b = brake.held_mps2, brake.build_up_s
    before = v * (latency_s + brake.actuation_s + brake.reaction_s)
    long = v * t_b / 2 - a * t_b**2 / 24 + v**2 / (2 * a)
    short = 2 / 3 * v * sqrt(2 * v * t_b / a)
    assert needed_m(v, latency_s, brake) == pytest.approx(before + (long if v >= a * t_b / 2 else short), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(v=speeds, brake=brakes, share=st.floats(0, 1))
def test_the_motion_is_what_adding_up_small_steps_comes_to(v: float, brake: Brake, share: float) -> None:
    """The deceleration min(u / t_b, 1) a, summed in steps; another algorithm, exact to the square of the step."""
    until_s, count = share * stands_after_s(v, brake), 4000
    risen_s = min(brake.build_up_s, until_s)  # no step has the kink within
    rising = [risen_s * i / count for i in range(count)]
    ends = rising + [risen_s + (until_s - risen_s) * i / count for i in range(count + 1)]
    speed, way = v, 0.0
    for from_s, to_s in pairwise(ends):
        u = (from_s + to_s) / 2
        risen = min(u / brake.build_up_s, 1.0) if brake.build_up_s else 1.0
        after = speed - risen * brake.held_mps2 * (to_s - from_s)
        way, speed = way + (speed + after) / 2 * (to_s - from_s), after
    now = moved(v, brake, until_s)
    assert now.way_m == pytest.approx(way, abs=1e-3)
    assert now.speed_mps == pytest.approx(speed, abs=1e-3)


@settings(max_examples=100, deadline=None)
@given(v=speeds, latency_s=latencies, brake=brakes, measured_s=st.floats(0, 3), share=st.floats(0, 1))
def test_loop_and_closed_form_are_equal_within_a_centimetre(
    v: float, latency_s: float, brake: Brake, measured_s: float, share: float
) -> None:
    """Where it stands, and how fast it is wherever it hits: v^2 to what a centimetre of braking is worth."""
    track = braked(straight(v), brake, measured_s + latency_s)
    needed = needed_m(v, latency_s, brake)
    assert track.states[-1].y_m - v * measured_s == pytest.approx(needed, abs=CM)
    left = share * needed
    lo_s, hi_s = measured_s, track.states[-1].t_s
    for _ in range(60):
        middle_s = (lo_s + hi_s) / 2
        state = track.at(middle_s)
        assert state is not None
        lo_s, hi_s = (middle_s, hi_s) if state.y_m - v * measured_s < left else (lo_s, middle_s)
    met = track.at(hi_s)
    assert met is not None
    assert met.speed_mps**2 == pytest.approx(impact_mps(v, left, latency_s, brake) ** 2, abs=2 * brake.held_mps2 * CM)


@given(v=speeds, latency_s=latencies, brake=brakes, more=st.floats(0, 1))
def test_what_is_as_far_as_needed_is_not_hit(v: float, latency_s: float, brake: Brake, more: float) -> None:
    assert impact_mps(v, needed_m(v, latency_s, brake) + more, latency_s, brake) == pytest.approx(0, abs=1e-5)
