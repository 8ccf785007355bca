"""When stations send CAM and CPM, against cases worked out by hand."""

from itertools import pairwise
from math import radians

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Cam
from sim_vehicles.v2v.etsi import CamRule, CpmRule, changed
from sim_vehicles.v2v.radio import of_itself
from sim_vehicles.v2v.stations import CAM, CPM, generated, tuples
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sense import NO_NOISE, Senses

MS = 1_000_000
KMH = 1 / 3.6
STILL = State(0, 0, 0, 0, 0)


def cams(speed_mps: float, until_ms: int) -> list[int]:
    """When a vehicle on a straight road sends CAMs, in ms."""
    rule = CamRule()
    return [ms for ms in range(0, until_ms, 100) if rule.due(ms * MS, State(0, speed_mps * ms / 1000, 0, 0, speed_mps))]


def test_at_50_kmh_on_a_straight_road() -> None:
    """13.9 m/s: more than 4 m after 288 ms, so at every third check: 3.33 CAMs per second."""
    assert cams(50 * KMH, 3000) == list(range(0, 3000, 300))


@pytest.mark.parametrize(("kmh", "every_ms"), [(0, 1000), (5, 1000), (30, 500), (70, 300), (72.1, 200), (130, 200)])
def test_other_speeds(kmh: float, every_ms: int) -> None:
    """Time for more than 4 m: 2880, 480, 206, 199.7, 111 ms; no less often than once per second."""
    assert cams(kmh * KMH, 6000) == list(range(0, 6000, every_ms))


def test_what_counts_as_a_change() -> None:
    for near, far in (
        ({"x_m": 4.0}, {"x_m": 4.001}),
        ({"x_m": 2.4, "y_m": 3.2}, {"x_m": 2.5, "y_m": 3.2}),
        ({"speed_mps": 0.5}, {"speed_mps": 0.501}),
        ({"heading_rad": radians(3.99)}, {"heading_rad": radians(-4.01)}),
    ):
        assert not changed(STILL, STILL._replace(**near)), near
        assert changed(STILL, STILL._replace(**far)), far
    west = STILL._replace(heading_rad=radians(179))
    assert not changed(west, STILL._replace(heading_rad=radians(-179)))
    assert changed(west, STILL._replace(heading_rad=radians(-176.9)))


@pytest.mark.parametrize("change", [{"x_m": 5.0}, {"speed_mps": 0.6}, {"heading_rad": radians(5)}])
def test_a_change_is_sent_at_once_and_its_interval_is_kept_three_times(change: dict[str, float]) -> None:
    """First CAM at 0, the change at 200 ms; then by time after 200 ms three times, then once per second again."""
    rule, after = CamRule(), STILL._replace(**change)
    sent = [ms for ms in range(0, 3000, 100) if rule.due(ms * MS, STILL if ms < 200 else after)]
    assert sent == [0, 200, 400, 600, 800, 1800, 2800]


def test_a_new_change_starts_the_count_again() -> None:
    rule = CamRule()
    places = {0: 0.0, 200: 5.0, 500: 10.0}  # the second change 100 ms after a CAM by time
    x_m, sent = 0.0, list[int]()
    for ms in range(0, 2500, 100):
        x_m = places.get(ms, x_m)
        if rule.due(ms * MS, STILL._replace(x_m=x_m)):
            sent.append(ms)
    assert sent == [0, 200, 400, 500, 600, 700, 800, 1800]


def test_never_sooner_than_100_ms() -> None:
    rule = CamRule()
    assert [ms for ms in range(0, 500, 20) if rule.due(ms * MS, STILL._replace(x_m=ms * 10))] == [0, 100, 200, 300, 400]


steps = st.lists(st.tuples(st.floats(-6, 6), st.floats(0, 40), st.floats(-3.2, 3.2)), min_size=2, max_size=60)


@given(steps)
def test_cams_are_100_to_1000_ms_apart(moves: list[tuple[float, float, float]]) -> None:
    rule, x_m, sent = CamRule(), 0.0, list[tuple[int, State]]()
    for i, (step_m, speed, heading) in enumerate(moves):
        x_m += step_m
        state = State(0, x_m, 0, heading, speed)
        before = sent[-1] if sent else None
        if rule.due(i * 100 * MS, state):
            sent.append((i * 100, state))
        elif before is not None:
            assert not changed(before[1], state)
    gaps = [late - early for (early, _), (late, _) in pairwise(sent)]
    assert all(100 <= gap <= 1000 for gap in gaps)
    assert len(moves) * 100 - sent[-1][0] <= 1000


def test_a_cpm_has_what_is_new_or_has_changed() -> None:
    rule = CpmRule()
    seen = {"p": STILL, "q": STILL._replace(speed_mps=10)}

    def due(ms: int, **now: State) -> list[str] | None:
        seen.update(now)
        return rule.due(ms * MS, seen)

    assert due(0) == ["p", "q"], "new"
    assert due(50, r=STILL) is None, "not before 100 ms"
    assert due(100) == ["r"]
    assert due(200, q=State(0, 4.0, 0, 0, 10)) is None, "4 m are not more than 4 m"
    assert due(300, q=State(0, 4.1, 0, 0, 10)) == ["q"]
    assert due(400, q=State(0, 8.0, 0, 0, 10.6)) == ["q"], "faster by 0.6 m/s"
    assert due(500, q=State(0, 8.1, 0, radians(4.1), 10.6)) == ["q"]
    assert due(900) is None
    assert due(1000) == ["p"], "in none for 1 s"
    assert due(1100) == ["r"]
    assert due(1200) is None
    assert due(1500) == ["q"]


def test_a_cpm_without_objects_after_1_s() -> None:
    rule = CpmRule()
    assert [rule.due(ms * MS, {}) for ms in (0, 500, 900, 1000)] == [[], None, None, []]


def test_an_object_that_comes_back_is_new_only_after_1_s() -> None:
    rule = CpmRule()
    assert rule.due(0, {"p": STILL}) == ["p"]
    assert rule.due(500 * MS, {}) is None
    assert rule.due(600 * MS, {"p": STILL}) is None
    assert rule.due(1000 * MS, {}) == []
    assert rule.due(1100 * MS, {"p": STILL}) == ["p"]


def test_the_interval_of_cpms_is_100_to_1000_ms() -> None:
    rule = CpmRule(300 * MS)
    far = [STILL._replace(x_m=10.0 * i) for i in range(10)]
    assert [i for i in range(10) if rule.due(i * 100 * MS, {"p": far[i]})] == [0, 3, 6, 9]
    for interval_ns in (50 * MS, 2000 * MS):
        with pytest.raises(ValueError, match="100 to 1000 ms"):
            CpmRule(interval_ns)


def road() -> Scenario:
    """Ego going east; P follows 30 m behind it at 50 km/h; Q stands, Q2 beside it."""
    tracks = {}
    for name, x_m, y_m, speed in (("ego", 0, 0, 50 * KMH), ("p", -30, 0, 50 * KMH), ("q", 60, 4, 0), ("q2", 60, 8, 0)):
        states = [State(i / 10, x_m + speed * i / 10, y_m, 0, speed) for i in range(101)]
        tracks[name] = Track(name, "car", 4.5, 1.8, states)
    return Scenario(Motion(tracks, "road"), Scene("road", "ego", ("p", "q"), range_m=500))


def test_stations_keep_to_the_rules_each_at_its_own_phase() -> None:
    senses = Senses(road(), 1, NO_NOISE)
    found = generated(senses, 3000 * MS, 8000 * MS)
    assert found == sorted(found) == generated(Senses(road(), 1), 3000 * MS, 8000 * MS)
    assert found != generated(Senses(road(), 2), 3000 * MS, 8000 * MS)
    gaps = {}
    for station, kind in (("p", CAM), ("q", CAM), ("p", CPM), ("q", CPM)):
        at_ms = [one.at_ns / MS for one in found if (one.station, one.kind) == (station, kind)]
        assert len({ms % 100 for ms in at_ms}) == 1
        gaps[station, kind] = {late - early for early, late in pairwise(at_ms)}
    assert gaps["p", CAM] == {300}
    assert gaps["q", CAM] == {1000}
    assert min(gaps["q", CPM]) >= 100
    assert {one.station for one in found} == {"p", "q"}, "the ego does not hear itself"
    for one in found:
        assert (50 * MS <= one.at_ns - one.measured_ns < 100 * MS) == (one.kind == CPM)
    times = [one.at_ns // MS for one in found if one.station == "q" and "ego" in one.objects]
    assert {late - early for early, late in pairwise(times)} == {300}, "the ego moves 4 m in 288 ms"


def test_a_cam_reaches_the_query_as_an_object_at_its_own_place() -> None:
    senses = Senses(road(), 1, NO_NOISE)
    message = next(one for one in generated(senses, 3000 * MS, 8000 * MS) if (one.kind, one.station) == (CAM, "p"))
    (sent,) = tuples(senses, message)
    assert (sent.station, sent.sent_ns, sent.measured_ns) == ("p", message.at_ns, message.at_ns)
    value = sent.value
    assert value.station == value.object.object_id == senses.numbers["p"]
    assert value.generation_ms == message.at_ns // MS
    assert (value.object.x_cm, value.object.y_cm, value.object.measurement_delta_ms) == (0, 0, 0)
    assert (value.object.vx_cms, value.object.vy_cms, value.object.heading_ddeg) == (1389, 0, 900)
    assert (value.object.quality, value.object.length_dm, value.object.width_dm) == (15, 45, 18)
    assert value.latitude_e7 == 350_000_000
    assert value.longitude_e7 == senses.cpm(message.at_ns, message.at_ns, "p", "q").longitude_e7


def test_a_cam_going_north_west() -> None:
    seen = of_itself(Cam(station=3, speed_cms=1000, heading_ddeg=3150)).object
    assert (seen.vx_cms, seen.vy_cms) == (-707, 707)


def test_a_cpm_reaches_the_query_as_one_tuple_per_object() -> None:
    senses = Senses(road(), 1, NO_NOISE)
    found = [one for one in generated(senses, 3000 * MS, 8000 * MS) if one.kind == CPM and len(one.objects) > 1]
    sent = list(tuples(senses, found[0]))
    assert [senses.numbers[name] for name in found[0].objects] == [one.value.object.object_id for one in sent]
    assert {(one.sent_ns, one.measured_ns, one.message) for one in sent} == {
        (found[0].at_ns, found[0].measured_ns, "cpm")
    }
