from math import cos, hypot, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.operators.models.ctrv import SERIES_BELOW, State, advance, motion_of, state_of

states = st.tuples(
    st.floats(-1000, 1000),
    st.floats(-1000, 1000),
    st.floats(-pi, pi),
    st.floats(0, 70),
    st.floats(-2, 2),
    st.floats(-10, 5),
)
spans = st.floats(0, 4)


def near(one: State, other: State, tolerance: float = 1e-6) -> bool:
    turn = (one[2] - other[2] + pi) % (2 * pi) - pi
    rest = zip(one[:2] + one[3:], other[:2] + other[3:], strict=True)
    return abs(turn) < tolerance and all(abs(a - b) < tolerance for a, b in rest)


def stepped(state: State, dt: float, steps: int) -> tuple[float, float]:
    """Midpoint rule over v(t) (cos, sin) of the heading: a computation that shares nothing with the closed form."""
    x, y, heading, speed, yaw_rate, acceleration = state
    for i in range(steps):
        t = dt * (i + 0.5) / steps
        v = max(0.0, speed + acceleration * t)
        x += v * cos(heading + yaw_rate * t) * dt / steps
        y += v * sin(heading + yaw_rate * t) * dt / steps
    return x, y


def test_a_straight_line_with_acceleration() -> None:
    # north at 10 m/s with 2 m/s2 for 3 s: 10 * 3 + 2 * 9 / 2 = 39 m, 16 m/s
    assert near(advance(1.0, 2.0, pi / 2, 10.0, 0.0, 2.0, 3.0), (1.0, 41.0, pi / 2, 16.0, 0.0, 2.0))


def test_a_quarter_circle() -> None:
    # 10 m/s at pi/10 rad/s: radius 100/pi m; 5 s turn it by 90 degrees, from east to north, one radius to each side
    radius = 100 / pi
    assert near(advance(0.0, 0.0, 0.0, 10.0, pi / 10, 0.0, 5.0), (radius, radius, pi / 2, 10.0, pi / 10, 0.0))


def test_braking_ends_at_a_standstill() -> None:
    # 14 m/s with -7 m/s2 stands after 2 s and 14 * 2 - 7 * 4 / 2 = 14 m, and turns no further than in those 2 s
    assert near(advance(0.0, 0.0, 0.0, 14.0, 0.0, -7.0, 10.0), (14.0, 0.0, 0.0, 0.0, 0.0, -7.0))
    assert advance(0.0, 0.0, 0.0, 14.0, 0.1, -7.0, 10.0)[2] == pytest.approx(0.2)


def test_who_stands_stays_and_does_not_turn() -> None:
    assert advance(3.0, 4.0, 1.0, 0.0, 0.5, 0.0, 2.0) == (3.0, 4.0, 1.0, 0.0, 0.5, 0.0)
    assert advance(3.0, 4.0, 1.0, -2.0, 0.0, 0.0, 2.0) == (3.0, 4.0, 1.0, 0.0, 0.0, 0.0), "a negative speed counts as 0"


def test_who_stands_can_start() -> None:
    assert near(advance(0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 3.0), (9.0, 0.0, 0.0, 6.0, 0.0, 2.0))


def test_back_in_time() -> None:
    assert near(advance(39.0, 0.0, 0.0, 16.0, 0.0, 2.0, -3.0), (0.0, 0.0, 0.0, 10.0, 0.0, 2.0))
    # 4 m/s reached with 2 m/s2: stood 2 s ago, 4 m behind, and before that as well
    assert near(advance(4.0, 0.0, 0.0, 4.0, 0.0, 2.0, -5.0), (0.0, 0.0, 0.0, 0.0, 0.0, 2.0))


@given(states, spans, spans)
def test_composed_steps_are_one_step(state: State, first: float, second: float) -> None:
    assert near(advance(*advance(*state, first), second), advance(*state, first + second))


@given(states, spans)
def test_agrees_with_numeric_integration(state: State, dt: float) -> None:
    end = advance(*state, dt)
    assert hypot(end[0] - (by := stepped(state, dt, 200))[0], end[1] - by[1]) < 2e-2
    assert end[3] >= 0.0


@pytest.mark.parametrize("h", [SERIES_BELOW, -SERIES_BELOW])
def test_series_and_closed_form_meet(h: float) -> None:
    below = advance(0.0, 0.0, 0.3, 50.0, h * (1 - 1e-12), 3.0, 1.0)
    above = advance(0.0, 0.0, 0.3, 50.0, h * (1 + 1e-12), 3.0, 1.0)
    assert near(below, above, 1e-10)


@given(states)
def test_messages_hold_the_six_numbers(state: State) -> None:
    assert state_of(motion_of(state)) == state
