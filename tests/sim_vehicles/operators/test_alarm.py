"""O19 to O21 against hand-computed cases and properties."""

from math import exp, inf, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Encounter, Motion, Warning, Zone
from sim_vehicles.operators.alarm import MOST_MS, SERIOUS_MPS2, Hysteresis, Risk, Warn, normal
from sim_vehicles.operators.models.recent import MOST

KMH = 1 / 3.6


def conflict(
    pet: float, drac: float, ego_mps: float = 10.0, object_mps: float = 10.0, object_in: float = 10.0
) -> Encounter:
    """The ego to the north, the object to the west."""
    return Encounter(
        ego_now=Motion(speed_mps=ego_mps, heading_rad=pi / 2),
        object=Motion(speed_mps=object_mps, heading_rad=pi),
        zone=Zone(ego_in_m=10, ego_out_m=16, object_in_m=object_in, object_out_m=object_in + 6, share=1.0),
        pet_s=pet,
        drac_mps2=drac,
    )


def risk(of: Encounter, **with_: float) -> float:
    return Risk(**with_)(of).risk


# -- O19


def test_the_normal_distribution() -> None:
    assert normal(0) == 0.5
    assert normal(1) == pytest.approx(0.841345, abs=1e-6)
    assert normal(-1.96) == pytest.approx(0.024998, abs=1e-6)
    assert (normal(-inf), normal(inf)) == (0, 1)


def test_risk_by_hand() -> None:
    # At 10 m/s each at a right angle: |dv| = 14.142 m/s, half of it 7.071, severity 1 - exp(-(7.071 / 20)^2) = 0.1175.
    # The object would need 100 / (2 (27 - 2)) = 2 m/s2 to stop: not at its ease. The ego's 1.675 is half of 3.35.
    # p = Phi(0.05 / 0.05) = 0.841345. risk = 0.841345 (1 - 0.8825 x 0.5) = 0.470.
    severity = 1 - exp(-0.125)
    assert risk(conflict(-0.05, 1.675, object_in=27)) == pytest.approx(0.841345 * (1 - (1 - severity) / 2), abs=1e-6)
    # Twice as far away (1 m/s2 would do) its half weighs half: urgency 0.25.
    assert risk(conflict(-0.05, 1.675, object_in=52)) == pytest.approx(0.841345 * (1 - (1 - severity) * 0.75), abs=1e-6)
    # Both fully urgent: what is left is the probability to meet.
    assert risk(conflict(-0.1, 4.0)) == pytest.approx(normal(2.0))
    assert risk(conflict(-0.1, 4.0), sigma_t_s=0.1) == pytest.approx(normal(1.0))
    assert risk(conflict(-inf, inf, object_in=-1)) == 1.0


def test_risk_is_that_of_the_ways_that_cross_and_of_a_track_that_is_not_sure() -> None:
    of = conflict(-0.1, 4.0)
    of.zone.share = 0.5
    assert Risk()(of).risk == pytest.approx(0.5 * normal(2.0))
    of.zone.share, of.position_sd_m = 1.0, 1.2  # 0.12 s at 10 m/s; with 0.05 s: 0.13 s
    assert Risk()(of).risk == pytest.approx(normal(0.1 / 0.13))


def test_no_zone_and_no_meeting_are_no_risk() -> None:
    assert risk(Encounter(pet_s=inf)) == 0
    assert risk(conflict(inf, 0.0)) == 0
    assert risk(conflict(1.0, 0.0)) < 1e-6


def test_who_can_still_wait_at_ease_gives_no_alarm() -> None:
    # Creeping up to the line at 2 m/s, 6 m before it: 4 / (2 (6 - 0.4)) = 0.36 m/s2 would do.
    assert risk(conflict(-2.0, 3.0, ego_mps=14, object_mps=2, object_in=6)) < 0.3


CONFLICTS = st.builds(
    conflict,
    st.floats(-5, 5) | st.sampled_from([inf, -inf]),
    st.floats(0, 20) | st.just(inf),
    st.floats(0, 40),
    st.floats(0, 40),
    st.floats(-5, 60),
)


@given(CONFLICTS)
def test_risk_is_between_0_and_1_and_no_more_than_the_probability_to_meet(of: Encounter) -> None:
    assert 0 <= risk(of) <= normal(-of.pet_s / 0.05) <= 1


@given(CONFLICTS, st.floats(0, 2), st.floats(0, 5))
def test_risk_grows_with_overlap_and_with_the_braking_needed(of: Encounter, earlier: float, more: float) -> None:
    worse = Encounter()
    worse.CopyFrom(of)
    worse.pet_s -= earlier
    worse.drac_mps2 += more
    assert risk(worse) >= risk(of) - 1e-12


# -- O20


class Alarm:
    """Feeds O20 with measurements of one track, 100 ms apart."""

    def __init__(self, **with_: float) -> None:
        self.operator = Hysteresis(**with_)
        self.at_ms = 65_000  # wraps on the way

    def __call__(
        self,
        risk: float,
        drac: float = 0.0,
        confirmed: bool = True,
        track: int = 1,
        step_ms: int = 100,
        station: int = 1,
        turns_rps: float = 0.0,
        lane: str = "",
    ) -> bool:
        self.at_ms = (self.at_ms + step_ms) % 65536
        given_ = Encounter(station=station, object_id=7, measured_ms=self.at_ms, track=track, confirmed=confirmed)
        given_.risk, given_.drac_mps2, given_.object.yaw_rate_rps, given_.lane = risk, drac, turns_rps, lane
        return bool(self.operator(given_).on)


def test_on_at_the_second_high_risk_in_a_row() -> None:
    alarm = Alarm()
    assert [alarm(r) for r in (0.8, 0.79, 0.8, 0.8, 0.5)] == [False, False, False, True, True]


def test_on_at_once_where_the_conflict_is_serious() -> None:
    assert Alarm()(0.8, SERIOUS_MPS2)
    assert not Alarm()(0.8, SERIOUS_MPS2 - 0.01)
    assert not Alarm()(0.79, 9.0)


def test_a_course_in_a_turn_must_last_for_three_tenths_of_a_second() -> None:
    alarm = Alarm()
    assert [alarm(0.9, 5.9, turns_rps=0.3) for _ in range(4)] == [False, False, False, True]
    broken = Alarm()
    assert not any(broken(r, 5.9, turns_rps=-0.3) for r in (0.9, 0.9, 0.9, 0.7, 0.9, 0.9, 0.9))
    seldom = Alarm()
    assert [seldom(0.9, turns_rps=0.3, step_ms=400) for _ in range(2)] == [False, True]


def test_a_course_in_a_turn_that_leaves_no_time_needs_two_looks() -> None:
    alarm = Alarm()
    assert [alarm(0.9, drac, turns_rps=0.3) for drac in (inf, 5.9, 6.0)] == [False, False, True]


def test_a_turn_along_a_lane_is_as_sure_as_straight_on() -> None:
    assert Alarm()(0.9, SERIOUS_MPS2, turns_rps=0.3, lane="south-west")
    assert Alarm()(0.9, SERIOUS_MPS2, turns_rps=0.09)


def test_off_after_half_a_second_below() -> None:
    alarm = Alarm()
    assert alarm(0.9, 5)
    # Below 0.3 since the first 0.2; 0.5 s later it goes off. Exactly 0.3 in between begins it anew.
    assert [alarm(r) for r in (0.2, 0.2, 0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2)] == [True] * 8 + [False]
    assert [alarm(0.9), alarm(0.9)] == [False, True]  # and again


def test_an_unconfirmed_track_never_turns_on_and_does_not_count() -> None:
    alarm = Alarm()
    assert not any(alarm(1.0, inf, confirmed=False) for _ in range(10))
    assert [alarm(0.9), alarm(0.9, confirmed=False), alarm(0.9), alarm(0.9)] == [False, False, False, True]


def test_a_repeat_counts_once() -> None:
    alarm = Alarm()
    # Two stations' messages, repeated in turn: the second station's is the second evidence.
    got = [alarm(0.9, step_ms=0, station=station) for station in (1, 1, 1)]
    assert got == [False, False, False]
    assert alarm(0.9, step_ms=0, station=2)
    low = Alarm()
    low(0.9, 5)
    assert all(low(0.1, step_ms=0) for _ in range(20))


def test_tracks_are_told_apart() -> None:
    alarm = Alarm()
    assert [alarm(0.9, track=t) for t in (1, 2, 1, 2)] == [False, False, True, True]
    without = Alarm()
    assert [without(0.9, track=0, station=s) for s in (1, 2, 1, 2)] == [False, False, True, True]


def test_who_is_not_heard_of_for_a_second_is_forgotten() -> None:
    alarm = Alarm()
    assert alarm(0.9, 5)
    assert alarm(0.5, step_ms=1000)
    assert not alarm(0.5, step_ms=1001)


def test_the_table_is_bounded() -> None:
    alarm = Alarm()
    assert alarm(0.9, 5, track=1)
    for track in range(2, MOST + 2):
        alarm(0.1, track=track, step_ms=0, station=track)
    assert len(alarm.operator._alarms) == MOST
    assert not alarm(0.5, track=1)  # pushed out by the others


@given(st.lists(st.tuples(st.floats(0, 0.7999), st.floats(0, 50), st.integers(0, 400)), max_size=30))
def test_never_on_below_the_threshold(course: list[tuple[float, float, int]]) -> None:
    alarm = Alarm()
    assert not any(alarm(risk_, drac, step_ms=step) for risk_, drac, step in course)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 5), st.booleans(), st.integers(0, 300)), max_size=40))
def test_on_needs_evidence_and_off_needs_time(course: list[tuple[float, float, bool, int]]) -> None:
    alarm, was, since_ms = Alarm(), False, 0
    for number, (risk_, drac, confirmed, step) in enumerate(course):
        is_ = alarm(risk_, drac, confirmed, step_ms=step, station=number)
        since_ms = since_ms + step if risk_ < 0.3 and number and course[number - 1][0] < 0.3 else 0
        if is_ and not was:
            assert confirmed and risk_ >= 0.8
        if was and not is_:
            assert risk_ < 0.3 and since_ms >= 500
        was = is_


# -- O21


def warned(on: bool, speed: float, way: float | None) -> Warning:
    given_ = Encounter(
        station=3, object_id=9, measured_ms=1234, track=5, risk=0.8765, on=on, ego_now=Motion(speed_mps=speed)
    )  # fmt: skip
    if way is not None:
        given_.zone.CopyFrom(Zone(ego_in_m=way, ego_out_m=way + 6))
    return Warn()(given_)


def test_a_warning_by_hand() -> None:
    # 14 m/s, 28 m: 2 s; less 0.2 s until anything acts and 14 / (2 x 7) = 1 s of braking time: 0.8 s.
    one = warned(True, 14, 28)
    assert (one.level, one.slack_ms, one.distance_cm, one.risk_permille) == (1, 800, 2800, 876)
    assert (one.cause, one.sub_cause) == (97, 2)
    assert (one.object_id, one.station, one.measured_ms, one.track) == (9, 3, 1234, 5)
    # 21 m: 1.5 s, slack 0.3 s: brake now.
    assert (warned(True, 14, 21).level, warned(True, 14, 21).slack_ms) == (2, 300)
    # 10.5 m: 0.75 s, braking should have begun 0.45 s ago.
    assert (warned(True, 14, 10.5).level, warned(True, 14, 10.5).slack_ms) == (2, -450)


def test_level_0_where_the_alarm_is_off_and_the_greatest_slack_where_there_is_none() -> None:
    assert warned(False, 14, 10).level == 0
    assert (warned(True, 14, None).level, warned(True, 14, None).slack_ms, warned(True, 14, None).distance_cm) == (
        1,
        MOST_MS,
        -1,
    )
    assert warned(True, 0, 10).slack_ms == MOST_MS
    assert warned(True, 1e-9, 10).slack_ms == MOST_MS
    assert warned(True, 14, -2).distance_cm == 0


@given(st.floats(0.5, 60), st.floats(0, 300))
def test_braking_begun_when_the_slack_ends_stops_at_the_zone(speed: float, way: float) -> None:
    slack_s = warned(True, speed, way).slack_ms / 1000
    # speed x (slack + t_act) + v2 / (2 a) = way; slack is told to the millisecond
    assert speed * (slack_s + 0.2) + speed**2 / 14 == pytest.approx(way, abs=0.0006 * speed)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Risk(sigma_t_s=0),
        lambda: Risk(dv_ref_mps=-1),
        lambda: Risk(t_act_s=-1),
        lambda: Hysteresis(on_risk=0.2, off_risk=0.3),
        lambda: Hysteresis(off_s=-1),
        lambda: Warn(brake_mps2=0),
    ],
)
def test_impossible_parameters_are_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


def test_severity_of_two_cars_at_fifty() -> None:
    # No urgency at all: risk is p times severity. dv = 50 km/h x sqrt(2) / 2 = 9.82 m/s: 1 - exp(-(9.82/20)^2) = 0.214.
    speed = 50 * KMH
    given_ = conflict(-1.0, 0.0, speed, speed)
    assert risk(given_) == pytest.approx(1 - exp(-((speed * sqrt(2) / 2 / 20) ** 2)))
    assert risk(given_) == pytest.approx(0.214, abs=1e-3)


def slow(
    ttc_s: float = 2.5, pet_s: float = -1.0, share: float = 1.0, speed_mps: float = 2.0, ego_mps: float = 7.0
) -> float:
    """The risk of a meeting before which the ego could stop with 1 m/s2."""
    given_ = Encounter(pet_s=pet_s, ttc_s=ttc_s, drac_mps2=1.0, position_sd_m=0.2)
    given_.zone.CopyFrom(Zone(ego_in_m=8, ego_out_m=14, object_in_m=4, object_out_m=10, share=share))
    given_.ego_now.speed_mps, given_.object.speed_mps = ego_mps, speed_mps
    return float(Risk()(given_).risk)


def test_where_one_is_slow_time_decides() -> None:
    assert slow() > 0.99
    assert slow(share=0.95) == pytest.approx(0.95, abs=0.01)
    for otherwise in (slow(ttc_s=2.7), slow(pet_s=-0.9), slow(share=0.94), slow(speed_mps=2.6), slow(ego_mps=8)):
        assert otherwise < 0.5


def test_who_has_all_but_stopped_in_the_zone_has_a_slack_that_fits() -> None:
    given_ = Encounter(on=True)
    given_.zone.CopyFrom(Zone(ego_in_m=-2, ego_out_m=4, object_in_m=1, object_out_m=9, share=1))
    given_.ego_now.speed_mps = 1e-17
    assert Warn()(given_).slack_ms == -(2**31 - 1)
