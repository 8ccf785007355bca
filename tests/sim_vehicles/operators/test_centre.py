"""O6 and O5 against hand-computed cases and properties."""

from math import cos, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Advice, Ego, Hazard, Motion
from sim_vehicles.operators.centre import NEVER_MS, Advise, Distance

HAZARD = Hazard(id=4, x_cm=3000, y_cm=4000, cause=9, sub_cause=2)


def ego(x: float = 0.0, y: float = 0.0, heading: float = 0.0, speed: float = 10.0) -> Ego:
    return Ego(motion=Motion(x_m=x, y_m=y, heading_rad=heading, speed_mps=speed))


def advised(metres: float, closing: float = 10.0, **with_: float) -> Advice:
    return Advise(**with_)(Advice(id=4, distance_cm=round(100 * metres), closing_cms=round(100 * closing)))


def test_distance_and_speed_towards_it() -> None:
    one = Distance()(HAZARD, ego=ego())  # 30 m east, 40 m north: 50 m; eastwards 10 m/s x 30 / 50 = 6 m/s nearer
    assert (one.id, one.cause, one.sub_cause) == (4, 9, 2)
    assert (one.distance_cm, one.closing_cms) == (5000, 600)
    away = Distance()(HAZARD, ego=ego(heading=pi))
    assert (away.distance_cm, away.closing_cms) == (5000, -600)


def test_before_the_ego_is_known_the_distance_is_minus_one() -> None:
    one = Distance()(HAZARD, ego=None)
    assert (one.id, one.distance_cm, one.closing_cms) == (4, -1, 0)
    told = Advise()(one)
    assert (told.distance_cm, told.time_ms, told.speed_cms) == (-1, NEVER_MS, 3610)


def test_at_the_hazard_itself() -> None:
    one = Distance()(HAZARD, ego=ego(30, 40))
    assert (one.distance_cm, one.closing_cms) == (0, 0)
    assert (Advise()(one).speed_cms, Advise()(one).time_ms) == (0, NEVER_MS)


def test_time_and_advised_speed_by_hand() -> None:
    # 120 m at 10 m/s: 12 s. sqrt(2 x 2 x (120 - 20)) = 20 m/s.
    assert (advised(120).time_ms, advised(120).speed_cms) == (12_000, 2000)
    assert advised(45).speed_cms == 1000  # sqrt(4 x 25)
    assert advised(20).speed_cms == advised(5).speed_cms == 0
    assert advised(2000).speed_cms == 3610  # sqrt(7920) = 89 m/s: capped
    assert advised(2000, most_mps=13.9).speed_cms == 1390


def test_no_time_and_no_limit_on_the_way_away() -> None:
    assert (advised(30, -5).time_ms, advised(30, -5).speed_cms) == (NEVER_MS, 3610)
    assert (advised(30, 0).time_ms, advised(30, 0).speed_cms) == (NEVER_MS, 632)  # who stands is told for when it goes


def test_the_input_stays_as_it_was() -> None:
    given_ = Advice(id=1, distance_cm=10_000, closing_cms=500)
    assert Advise()(given_).time_ms == 20_000
    assert (given_.time_ms, given_.speed_cms) == (0, 0)


@given(st.floats(20, 5000), st.floats(0.01, 50))
def test_from_the_advised_speed_a_braking_at_ease_stops_before_it(metres: float, closing: float) -> None:
    speed = advised(metres, closing).speed_cms / 100
    assert 0 <= speed <= 36.1
    assert speed * speed / (2 * 2) <= metres - 20 + 0.2  # rounding: 0.5 cm of way, 0.5 cm/s of speed


@given(st.floats(-pi, pi), st.floats(0.1, 60), st.floats(-400, 400), st.floats(-400, 400))
def test_distance_does_not_depend_on_where_the_scene_lies(turn: float, speed: float, x: float, y: float) -> None:
    px, py = x + 30 * cos(turn) - 40 * sin(turn), y + 30 * sin(turn) + 40 * cos(turn)
    moved = Hazard(id=4, x_cm=round(100 * px), y_cm=round(100 * py))
    here, there = Distance()(HAZARD, ego=ego(speed=speed)), Distance()(moved, ego=ego(x, y, turn, speed))
    assert there.distance_cm == pytest.approx(here.distance_cm, abs=2)
    assert there.closing_cms == pytest.approx(here.closing_cms, abs=2 + 0.05 * speed)


def test_impossible_parameters_are_refused() -> None:
    for bad in ({"brake_mps2": 0.0}, {"stop_m": -1.0}, {"most_mps": 0.0}):
        with pytest.raises(ValueError):
            Advise(**bad)
