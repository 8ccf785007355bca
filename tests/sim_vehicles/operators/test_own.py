from math import hypot, pi, radians

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Ego, Sensor
from sim_vehicles.operators.models.ctrv import state_of
from sim_vehicles.operators.own import Localise

I32 = st.integers(-(2**31), 2**31 - 1)
U32 = st.integers(0, 2**32 - 1)


def sensor(ms: int, x_m: float, y_m: float, speed: float = 10.0, compass_deg: float = 90.0, **rest: int) -> Sensor:
    return Sensor(
        station=rest.pop("station", 1),
        generation_ms=ms,
        x_cm=round(x_m * 100),
        y_cm=round(y_m * 100),
        speed_cms=round(speed * 100),
        heading_ddeg=round(compass_deg * 10),
        **rest,
    )


def told(result: Ego | None) -> tuple[float, ...]:
    assert result is not None
    return state_of(result.motion)


def test_the_first_measurement_is_taken_as_it_is() -> None:
    result = Localise()(sensor(500, 1.0, -2.0, 13.89, 0.0, yaw_rate_cdegs=1000, acceleration_dms2=-12))
    assert result is not None
    # compass 0 is north: pi/2; 1000 * 0.01 degree/s = 10 degree/s; -12 * 0.1 m/s2
    assert told(result) == pytest.approx((1.0, -2.0, pi / 2, 13.89, radians(10), -1.2))
    assert (result.station, result.generation_ms, result.length_m, result.width_m) == (1, 500, 4.5, 1.8)


def test_dead_reckoning_is_blended_with_gnss() -> None:
    one = Localise(gain=0.25)
    one(sensor(0, 0.0, 0.0))
    # east at 10 m/s: 1 m in 100 ms. GNSS says (1.4, 0.8) and compass 86 degrees, which is 4 degrees to the left.
    # 1 + 0.25 * 0.4 = 1.1; 0.25 * 0.8 = 0.2; 0.25 * 4 degrees = 1 degree
    assert told(one(sensor(100, 1.4, 0.8, 11.0, 86.0)))[:4] == pytest.approx((1.1, 0.2, radians(1.0), 11.0))


def test_gain_says_whom_to_believe() -> None:
    gnss, odometry = Localise(gain=1.0), Localise(gain=0.0)
    for one in (gnss, odometry):
        one(sensor(0, 0.0, 0.0))
    assert told(gnss(sensor(100, 1.4, 0.8)))[:2] == pytest.approx((1.4, 0.8))
    assert told(odometry(sensor(100, 1.4, 0.8)))[:2] == pytest.approx((1.0, 0.0))


def test_blending_lessens_noise_of_gnss() -> None:
    """White noise of 1 m on a straight line: a gain g leaves a variance of g / (2 - g), here 1/7."""
    from random import Random

    draw = Random(7)
    one, squares = Localise(gain=0.25), []
    for i in range(2000):
        x, y, *_ = told(one(sensor(i * 50 % 65536, i * 0.5 + draw.gauss(0, 1), draw.gauss(0, 1))))
        squares.append(y * y + (x - i * 0.5) ** 2)
    assert sum(squares[100:]) / len(squares[100:]) / 2 == pytest.approx(1 / 7, rel=0.15)


def test_time_wraps() -> None:
    one = Localise(gain=0.0)
    one(sensor(65500, 0.0, 0.0))
    assert told(one(sensor(64, 5.0, 5.0)))[:2] == pytest.approx((1.0, 0.0)), "100 ms later"


def test_an_older_or_repeated_measurement_changes_nothing() -> None:
    one = Localise()
    one(sensor(1000, 0.0, 0.0))
    newest = one(sensor(1100, 1.0, 0.0))
    assert one(sensor(1050, 50.0, 50.0)) == newest
    assert one(sensor(1100, 50.0, 50.0)) == newest
    assert told(one(sensor(1200, 2.0, 0.0)))[0] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "then",
    [
        sensor(2101, 5.0, 5.0),  # over a second later
        sensor(65000, 5.0, 5.0),  # 1.5 s before: a recording that starts again
        sensor(1100, 5.0, 5.0, station=2),
        sensor(1100, 30.0, 5.0),  # 29 m off
    ],
)
def test_without_a_usable_predecessor_it_starts_again(then: Sensor) -> None:
    one = Localise()
    one(sensor(1000, 0.0, 0.0))
    assert told(one(then))[:2] == pytest.approx((then.x_cm / 100, then.y_cm / 100))


def test_what_cannot_be_is_dead_reckoned() -> None:
    one = Localise(gain=0.0)
    assert one(sensor(0, 0.0, 0.0, 300.0)) is None, "no speed, and nothing to reckon from"
    assert one(sensor(0, 0.0, 0.0, 10.0, 360.1)) is None, "heading unavailable"
    one(sensor(0, 0.0, 0.0))
    odd = sensor(100, 0.0, 0.0, 300.0, 360.1, yaw_rate_cdegs=32767, acceleration_dms2=161)
    assert told(one(odd)) == pytest.approx((1.0, 0.0, 0.0, 10.0, 0.0, 0.0))


def test_reversing_is_a_motion_the_other_way() -> None:
    one = Localise(gain=0.5)
    one(sensor(0, 0.0, 0.0, 0.0))
    x, _, heading, speed, _, pull = told(one(sensor(100, -0.1, 0.0, -1.0, 90.0, acceleration_dms2=-10)))
    assert (abs(heading), speed, pull) == pytest.approx((pi, 1.0, 1.0)), "nose to the east, going west, ever faster"
    assert told(one(sensor(200, -0.2, 0.0, -1.0)))[0] < x


def test_standing_still_stays() -> None:
    one = Localise()
    for i in range(30):
        result = one(sensor(i * 100, 3.0, 4.0, 0.0, 45.0, yaw_rate_cdegs=50))
    assert told(result)[:4] == pytest.approx((3.0, 4.0, pi / 4, 0.0))


@given(
    st.lists(st.tuples(I32, I32, I32, U32, I32, I32, U32), min_size=1, max_size=6),
    st.floats(0, 1),
)
def test_any_integers_give_finite_states(rows: list[tuple[int, ...]], gain: float) -> None:
    one = Localise(gain)
    for x, y, v, heading, yaw, pull, ms in rows:
        result = one(
            Sensor(
                x_cm=x,
                y_cm=y,
                speed_cms=v,
                heading_ddeg=heading,
                yaw_rate_cdegs=yaw,
                acceleration_dms2=pull,
                generation_ms=ms,
            )
        )
        if result is not None:
            assert hypot(*told(result)) < 1e9
            assert 0.0 <= result.motion.speed_mps <= 70.0


@pytest.mark.parametrize("wrong", [{"gain": 1.1}, {"gain": -0.1}, {"length_m": 0.0}, {"width_m": 61.0}])
def test_wrong_parameters(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"gain|vehicle"):
        Localise(**wrong)
