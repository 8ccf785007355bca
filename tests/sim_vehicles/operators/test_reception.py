from math import cos, hypot, isfinite, pi, sin

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from node_agent.sdk import At
from protos.vehicle_pb2 import Cpm, Ego, Encounter, Motion, PerceivedObject
from sim_vehicles.operators.models.its_time import age_s, since_ms
from sim_vehicles.operators.reception import Attach, Closing, Decode

MS = 1_000_000


def at(age_ms: float, width_ms: float = 0.0) -> At:
    now = 10**12
    return At(now, (now - int((age_ms + width_ms) * MS), now - int((age_ms - width_ms) * MS)), now + 10**9)


def cpm(**fields: int) -> Cpm:
    """E sees a car 30 m east and 40 m north of it, that drives west at 12 m/s."""
    message = Cpm(station=7, generation_ms=1000, latitude_e7=350_000_000, longitude_e7=1_370_000_000)
    seen = {"object_id": 9, "measurement_delta_ms": 50, "x_cm": 3000, "y_cm": 4000, "vx_cms": -1200, "vy_cms": 0}
    seen |= {"heading_ddeg": 2700, "length_dm": 47, "width_dm": 19, "age_ms": 300, "quality": 11, "classification": 5}
    for name, value in fields.items():
        if name in seen or name in ("acceleration_dms2", "yaw_rate_cdegs"):
            seen[name] = value
        else:
            setattr(message, name, value)
    message.object.CopyFrom(PerceivedObject(**seen))
    return message


def test_times() -> None:
    assert [since_ms(5, 65530), since_ms(65530, 5), since_ms(32768, 0), since_ms(7, 7)] == [11, -11, -32768, 0]
    assert age_s(at(120)) == pytest.approx(0.120)
    assert age_s(at(120, 40)) == pytest.approx(0.120), "the middle of the interval"
    assert age_s(at(-5)) == 0.0, "never below 0"


def test_decode_gives_si_units() -> None:
    result = Decode()(cpm(), at=at(120))
    assert result is not None
    expected = Encounter(
        station=7,
        object_id=9,
        measured_ms=950,
        latitude_e7=350_000_000,
        longitude_e7=1_370_000_000,
        east_m=30.0,
        north_m=40.0,
        vx_mps=-12.0,
        heading_rad=-pi,
        length_m=4.7,
        width_m=1.9,
        quality=11,
        classification=5,
    )
    assert result.heading_rad == pytest.approx(-pi), "270 degrees from north is west"
    result.heading_rad = expected.heading_rad
    assert result == expected


def test_decode_wraps_time() -> None:
    result = Decode()(cpm(generation_ms=20), at=at(120))
    assert result is not None
    assert result.measured_ms == 65506


def test_what_is_not_given_is_a_car() -> None:
    result = Decode()(cpm(length_dm=0, width_dm=256, heading_ddeg=3601, vx_cms=0, vy_cms=500), at=at(120))
    assert result is not None
    assert (result.length_m, result.width_m) == (4.5, 1.8)
    assert result.heading_rad == pytest.approx(pi / 2), "no heading: the velocity's"


@pytest.mark.parametrize(
    ("field", "largest", "beyond"),
    [
        ("generation_ms", 65535, 65536),
        ("latitude_e7", 900_000_000, 900_000_001),
        ("longitude_e7", -1_800_000_000, -1_800_000_001),
        ("object_id", 65535, 65536),
        ("measurement_delta_ms", 1000, 1001),
        ("measurement_delta_ms", 0, -1),
        ("x_cm", -131_070, -131_071),
        ("y_cm", 131_070, 2**31 - 1),
        ("vx_cms", 7000, 7001),  # 70 m/s, and just above
        ("vy_cms", -6895, -6897),  # with vx = -12: 69.99 and 70.01 m/s
        ("heading_ddeg", 3601, 3602),
        ("length_dm", 1023, 1024),
        ("width_dm", 256, 257),
        ("age_ms", 2047, 2048),
        ("quality", 15, 16),
        ("classification", 255, 256),
    ],
)
def test_ranges(field: str, largest: int, beyond: int) -> None:
    assert Decode()(cpm(**{field: largest}), at=at(120)) is not None
    assert Decode()(cpm(**{field: beyond}), at=at(120)) is None


def test_age_must_be_within_a_second() -> None:
    assert Decode()(cpm(), at=at(1000)) is not None
    assert Decode()(cpm(), at=at(1001)) is None
    assert Decode()(cpm(), at=at(-1)) is None, "not measured yet"
    assert Decode()(cpm(), at=at(-1, 3)) is not None, "as far as the clocks can tell"
    assert Decode(max_age_s=0.1)(cpm(), at=at(120)) is None


def test_a_message_without_an_object_is_dropped() -> None:
    assert Decode()(Cpm(), at=at(0)) is None
    assert Decode()(Cpm(station=7, generation_ms=3), at=at(0)) is None


def _any(message: type[Cpm] | type[PerceivedObject]) -> st.SearchStrategy[dict[str, int]]:
    kinds = {
        FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1),
        FieldDescriptor.TYPE_SINT32: st.integers(-(2**31), 2**31 - 1),
    }
    small = {FieldDescriptor.TYPE_UINT32: st.integers(0, 20), FieldDescriptor.TYPE_SINT32: st.integers(-20, 20)}
    return st.fixed_dictionaries(
        {f.name: small[f.type] | kinds[f.type] for f in message.DESCRIPTOR.fields if f.type in kinds}
    )


def test_acceleration_and_yaw_rate_are_those_of_the_message() -> None:
    result = Decode()(cpm(acceleration_dms2=-35, yaw_rate_cdegs=1500), at=at(0))
    assert result is not None
    assert result.acceleration_mps2 == pytest.approx(-3.5)
    assert result.yaw_rate_rps == pytest.approx(pi / 12)


@pytest.mark.parametrize("fields", [{}, {"acceleration_dms2": 161, "yaw_rate_cdegs": 32_767}])
def test_what_the_message_does_not_say_of_its_motion_is_absent(fields: dict[str, int]) -> None:
    result = Decode()(cpm(**fields), at=at(0))
    assert result is not None
    assert not result.HasField("acceleration_mps2")
    assert not result.HasField("yaw_rate_rps")


@pytest.mark.parametrize(
    "fields", [{"acceleration_dms2": 162}, {"acceleration_dms2": -161}, {"yaw_rate_cdegs": -32_768}]
)
def test_a_motion_that_cannot_be_is_dropped(fields: dict[str, int]) -> None:
    assert Decode()(cpm(**fields), at=at(0)) is None


@given(_any(Cpm), _any(PerceivedObject), st.floats(-2000, 2000))
def test_any_integers_are_dropped_or_possible(head: dict[str, int], seen: dict[str, int], age_ms: float) -> None:
    message = Cpm(**head, object=PerceivedObject(**seen))
    before = message.SerializeToString()
    result = Decode()(message, at=at(age_ms))
    assert message.SerializeToString() == before
    if result is not None:
        assert hypot(result.vx_mps, result.vy_mps) <= 70.0
        assert 0 < result.length_m <= 102.1
        assert -pi <= result.heading_rad <= pi


def encounter(dx: float, dy: float, vx: float, vy: float, measured_ms: int = 1000) -> Encounter:
    return Encounter(
        station=7,
        object_id=9,
        measured_ms=measured_ms,
        latitude_e7=350_000_000,
        longitude_e7=1_370_000_000,
        east_m=dx,
        north_m=dy,
        vx_mps=vx,
        vy_mps=vy,
    )


def ego(speed: float = 10.0, heading: float = pi / 2, generation_ms: int = 1000, **motion: float) -> Ego:
    """At the origin, to the north."""
    return Ego(station=1, generation_ms=generation_ms, motion=Motion(speed_mps=speed, heading_rad=heading, **motion))


def test_closing_head_on() -> None:
    # 100 m ahead, both at 10 m/s towards one another, 0.1 s later: 100 - 2 * 10 * 0.1 = 98 m, closing at 20 m/s
    result = Closing()(encounter(0, 100, 0, -10), ego=ego(), at=at(100))
    assert result is not None
    assert (result.range_m, result.closing_mps) == pytest.approx((98.0, 20.0))


def test_closing_at_a_crossing() -> None:
    # ego north at 10, object 30 m east and 40 m north, west at 5: dp = (30, 40), dv = (-5, -10), |dp| = 50,
    # dp.dv = -150 - 400 = -550: closing 11 m/s; closest in 550 / 125 = 4.4 s
    result = Closing()(encounter(30, 40, -5, 0), ego=ego(), at=at(0))
    assert result is not None
    assert (result.range_m, result.closing_mps) == pytest.approx((50.0, 11.0))
    assert Closing(horizon_s=4.5)(encounter(30, 40, -5, 0), ego=ego(), at=at(0)) is not None
    assert Closing(horizon_s=4.3)(encounter(30, 40, -5, 0), ego=ego(), at=at(0)) is None
    assert Closing(min_closing_mps=10.9)(encounter(30, 40, -5, 0), ego=ego(), at=at(0)) is not None
    assert Closing(min_closing_mps=11.1)(encounter(30, 40, -5, 0), ego=ego(), at=at(0)) is None


def test_the_ego_is_moved_from_its_own_instant() -> None:
    # the ego's state is 300 ms older than the measurement, which is 100 ms old: 400 ms at 10 m/s are 4 m nearer
    result = Closing()(encounter(0, 60, 0, 0), ego=ego(generation_ms=700), at=at(100))
    assert result is not None
    assert result.range_m == pytest.approx(56.0)
    # braking with 5 m/s2: 10 * 0.4 - 5 * 0.16 / 2 = 3.6 m, and 8 m/s left
    result = Closing()(encounter(0, 60, 0, 0), ego=ego(generation_ms=700, acceleration_mps2=-5), at=at(100))
    assert result is not None
    assert (result.range_m, result.closing_mps) == pytest.approx((56.4, 8.0))


@pytest.mark.parametrize(
    ("what", "which"),
    [
        ("ahead, as fast", encounter(0, 50, 0, 10)),
        ("ahead, faster", encounter(0, 50, 0, 15)),
        ("behind, slower", encounter(0, -50, 0, 5)),
        ("beside, away", encounter(10, -5, 5, 0)),
        ("far ahead: 10 s", encounter(0, 100, 0, 0)),
        ("so near that it is the ego itself", encounter(0, 2.9, 0, 0)),
        ("at the ego's own place", encounter(0, 0, 0, 0)),
        ("slowly", encounter(0, 3.5, 0, 9.51)),
    ],
)
def test_who_does_not_close_in_is_filtered(what: str, which: Encounter) -> None:
    assert Closing()(which, ego=ego(), at=at(0)) is None, what


def test_two_that_stand_do_not_close_in() -> None:
    assert Closing()(encounter(0, 10, 0, 0), ego=ego(0.0), at=at(0)) is None


def test_without_a_usable_ego_nothing_passes() -> None:
    near = encounter(0, 50, 0, 0)
    assert Closing()(near, ego=None, at=at(0)) is None
    assert Closing()(near, ego=ego(generation_ms=64600), at=at(0)) is not None, "2 s old, a little less"
    assert Closing()(near, ego=ego(generation_ms=64000), at=at(0)) is None, "2.5 s old"
    assert Closing()(near, ego=ego(generation_ms=1050), at=at(0)) is not None, "newer than the tuple's now"
    near.object_id = 1
    assert Closing()(near, ego=ego(), at=at(0)) is None, "the ego itself, seen by another"
    assert Closing()(encounter(0, 50, 0, 0), ego=Ego(station=1, generation_ms=1000), at=at(0)) is None, (
        "no motion: it stands"
    )


@given(st.floats(-pi, pi), st.floats(-80, 80), st.floats(-80, 80), st.floats(-30, 30), st.floats(-30, 30))
def test_closing_does_not_depend_on_the_compass(turn: float, dx: float, dy: float, vx: float, vy: float) -> None:
    """Turning the whole scene round the ego changes nothing; thresholds a hair apart allow for rounding."""
    c, s = cos(turn), sin(turn)
    turned = encounter(c * dx - s * dy, s * dx + c * dy, c * vx - s * vy, s * vx + c * vy)
    strict = Closing(0.5 + 1e-6, 8.0 - 1e-6, 3.0 + 1e-6)
    one = strict(encounter(dx, dy, vx, vy), ego=ego(), at=at(100))
    if one is not None:
        other = Closing()(turned, ego=ego(heading=pi / 2 + turn), at=at(100))
        assert other is not None
        assert (one.range_m, one.closing_mps) == pytest.approx((other.range_m, other.closing_mps), abs=1e-6)


def test_attach_tells_both_ages() -> None:
    before = encounter(0, 100, 0, -10)
    kept = before.SerializeToString()
    result = Attach()(before, ego=ego(generation_ms=700), at=at(120))
    assert result is not None
    assert result.ego == ego(generation_ms=700)
    assert (result.age_s, result.ego_age_s) == pytest.approx((0.120, 0.420))
    assert before.SerializeToString() == kept, "the input is left as it was"
    assert Attach()(before, ego=None, at=at(120)) is None


def test_attach_across_the_wrap_of_time() -> None:
    result = Attach()(encounter(0, 9, 0, 0, measured_ms=10), ego=ego(generation_ms=65500), at=at(50))
    assert result is not None
    assert result.ego_age_s == pytest.approx(0.096)


def test_an_empty_encounter_does_no_harm() -> None:
    result = Attach()(Encounter(), ego=Ego(), at=at(0))
    assert result is not None
    assert isfinite(result.ego_age_s)
    assert Closing()(Encounter(object_id=1), ego=Ego(), at=at(0)) is None


@pytest.mark.parametrize("wrong", [{"min_range_m": 0.0}, {"horizon_s": -1.0}, {"latitude": 90.0}, {"longitude": 181.0}])
def test_wrong_parameters(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"above 0|origin"):
        Closing(**wrong)
    with pytest.raises(ValueError, match="above 0"):
        Decode(max_speed_mps=0.0)
    with pytest.raises(ValueError, match="vehicle"):
        Decode(length_m=0.0)
