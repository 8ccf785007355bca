from math import cos, hypot, isfinite, log, pi, sin
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Encounter, Gated, Motion
from sim_vehicles.operators.models.ctrv import advance, motion_of, state_of
from sim_vehicles.operators.models.ekf import Array, Ekf, Spread, larger_axis, step
from sim_vehicles.operators.models.recent import KEEP_MS, MOST, Recent
from sim_vehicles.operators.tracking import Associate, Confirm, Filter, Gate
from sim_vehicles.world.motion import wrap


def seen(
    x: float,
    y: float,
    ms: int,
    speed: float = 10.0,
    heading: float = 0.0,
    station: int = 7,
    name: int = 9,
    **rest: float,
) -> Encounter:
    motion = Motion(x_m=x, y_m=y, speed_mps=speed, heading_rad=heading)
    rest.setdefault("quality", 15)
    return Encounter(station=station, object_id=name, measured_ms=ms % 65536, measured=motion, object=motion, **rest)  # type: ignore[arg-type]


class Tracker:
    """O10 to O13 one after the other."""

    def __init__(self) -> None:
        self.parts = (Gate(), Associate(), Filter(), Confirm())

    def __call__(self, encounter: Encounter) -> Encounter:
        for part in self.parts:
            kept = encounter.SerializeToString()
            result = part(encounter)
            assert encounter.SerializeToString() == kept, "the input is left as it was"
            encounter = result
        return encounter


# ---------------------------------------------------------------- O10


def test_gate_distance_is_mahalanobis() -> None:
    gate = Gate()
    gate(seen(0.0, 0.0, 1000))
    result = gate(seen(5.6, 0.3, 1500))
    # 0.5 s at 10 m/s: predicted (5, 0), off by 0.6 along and 0.3 across.
    # along: 2 * 0.09 + (0.5 * 0.5)^2 + (2 * 0.25 / 2)^2 = 0.18 + 0.0625 + 0.0625 = 0.305
    # across: 0.18 + (10 * 0.02 * 0.5)^2 + (1.5 * 0.25 / 2)^2 = 0.18 + 0.01 + 0.03515625 = 0.22515625
    # d2 = 0.36 / 0.305 + 0.09 / 0.22515625 = 1.180328 + 0.399722
    assert [one.entry for one in result.gated] == [1]
    assert result.gated[0].distance2 == pytest.approx(1.580050, abs=1e-6)
    assert result.entry == 2


def test_gate_ends_at_the_99_percent_ellipse() -> None:
    # at one instant both variances are 0.18: the gate's radius is sqrt(9.21 * 0.18) = 1.28755 m
    for off, inside in ((1.287, 1), (1.288, 0)):
        for x, y in ((off, 0.0), (0.0, -off)):
            gate = Gate()
            gate(seen(0.0, 0.0, 1000))
            assert len(gate(seen(x, y, 1000, station=8)).gated) == inside


def test_what_is_seen_badly_is_gated_wider() -> None:
    """Quality 0: 0.6 m. Both variances are 0.09 + 0.36 = 0.45: the gate's radius is sqrt(9.21 * 0.45) = 2.0358 m."""
    for off, inside in ((2.035, 1), (2.036, 0)):
        gate = Gate()
        gate(seen(0.0, 0.0, 1000))
        found = gate(seen(off, 0.0, 1000, station=8, quality=0)).gated
        assert len(found) == inside
        assert all(one.log_spread == pytest.approx(2 * log(0.45)) for one in found)


def test_a_turn_that_the_message_says_is_in_the_gate() -> None:
    """A quarter of a turn in 0.8 s at 5 m/s: 3.18 m ahead and 3.18 m to the left."""
    gate, straight = Gate(), Gate()
    turning = seen(0.0, 0.0, 1000, speed=5.0)
    straight(turning)
    turning.measured.yaw_rate_rps = pi / 2 / 0.8
    gate(turning)
    there = seen(8 / pi, 8 / pi, 1800, speed=5.0, heading=pi / 2)
    assert gate(there).gated[0].distance2 == pytest.approx(0.0, abs=1e-9)
    assert len(straight(there).gated) == 0


def test_gate_looks_back_for_a_late_measurement() -> None:
    gate = Gate()
    gate(seen(10.0, 0.0, 2000))
    assert [one.entry for one in gate(seen(9.0, 0.0, 1900, station=8)).gated] == [1]


def test_a_repeat_keeps_its_entry() -> None:
    gate = Gate()
    first = gate(seen(0.0, 0.0, 1000))
    other = gate(seen(0.1, 0.0, 1000, station=8))
    again = gate(seen(0.0, 0.0, 1000))
    assert (first.entry, other.entry, again.entry) == (1, 2, 1)
    assert [one.entry for one in again.gated] == [2], "never with itself"


def test_gate_forgets() -> None:
    gate = Gate()
    gate(seen(0.0, 0.0, 65000, speed=0.0))
    assert len(gate(seen(0.0, 0.0, 65000 + 1000, speed=0.0)).gated) == 1, "a second ago, across the wrap of time"
    assert len(gate(seen(0.0, 0.0, 65000 + 2001, speed=0.0)).gated) == 0, "a millisecond more"
    assert len(gate(seen(0.0, 0.0, 65000 - 10000, speed=0.0)).gated) == 0, "a recording that starts again"


def test_the_gate_lists_the_nearest() -> None:
    gate = Gate()
    for i in range(40):
        result = gate(seen(0.01 * i, 0.0, 1000, station=i))
    assert [one.entry for one in result.gated] == list(range(39, 39 - 16, -1))


@given(
    st.floats(-pi, pi), st.floats(0, 40), st.floats(-3, 3), st.floats(-3, 3), st.integers(-900, 900), st.floats(-pi, pi)
)
def test_gate_does_not_depend_on_the_compass(
    turn: float, speed: float, dx: float, dy: float, later_ms: int, heading: float
) -> None:
    c, s = cos(turn), sin(turn)
    there = speed * later_ms / 1000
    x, y = there * cos(heading) + dx, there * sin(heading) + dy
    plain, turned = Gate(), Gate()
    plain(seen(0.0, 0.0, 1000, speed, heading))
    turned(seen(0.0, 0.0, 1000, speed, heading + turn))
    one = plain(seen(x, y, 1000 + later_ms, speed, heading, station=8)).gated
    other = turned(seen(c * x - s * y, s * x + c * y, 1000 + later_ms, speed, heading + turn, station=8)).gated
    for a, b in ((one, other), (other, one)):
        assert len(b) == 1 or not a or a[0].distance2 > 9.21 - 1e-6
    if one and other:
        assert one[0].distance2 == pytest.approx(other[0].distance2, abs=1e-6)


# ---------------------------------------------------------------- O11


def gated(entry: int, *others: tuple[int, float], ms: int = 1000) -> Encounter:
    return Encounter(entry=entry, measured_ms=ms, gated=[Gated(entry=e, distance2=d2) for e, d2 in others])


def test_nearest_neighbour() -> None:
    one = Associate()
    assert one(gated(1)).track == 1
    assert one(gated(2)).track == 2
    assert one(gated(3, (1, 4.0), (2, 0.5))).track == 2, "the nearer one's"
    assert one(gated(4, (99, 0.1), (1, 4.0))).track == 1, "what never came here is passed over"
    assert one(gated(5, (99, 0.1))).track == 3
    assert one(gated(3)).track == 2, "a repeat keeps its track"
    assert one(gated(6, (1, 1.0), (2, 1.0))).track == 1, "equally near: the earlier one"


def test_of_two_as_near_the_surer_one_is_likelier() -> None:
    one = Associate()
    one(gated(1))
    one(gated(2))
    encounter = gated(3, (1, 1.0), (2, 1.5))
    encounter.gated[0].log_spread = 1.0
    assert one(encounter).track == 2


def test_association_forgets() -> None:
    one = Associate()
    one(gated(1, ms=1000))
    assert one(gated(2, (1, 0.1), ms=2001)).track == 2


# ---------------------------------------------------------------- O12


def reference_step(x: Array, dt: float) -> Array:
    """CTRV as in a textbook, with its special case; shares nothing with the product."""
    px, py, heading, v, w = x
    if abs(w) < 1e-9:
        return np.array([px + v * dt * cos(heading), py + v * dt * sin(heading), heading, v, w])
    return np.array(
        [
            px + v / w * (sin(heading + w * dt) - sin(heading)),
            py + v / w * (cos(heading) - cos(heading + w * dt)),
            heading + w * dt,
            v,
            w,
        ]
    )


def numeric_jacobian(x: Array, dt: float) -> Array:
    columns = []
    for i in range(5):
        h = np.zeros(5)
        h[i] = 1e-4
        columns.append((reference_step(x + h, dt) - reference_step(x - h, dt)) / 2e-4)
    return np.array(columns).T


class Reference:
    """The same filter in plain matrices: numeric Jacobian, explicit inverse, (I - KH) P. z: four, or five values."""

    def __init__(self, z: Array, s: Spread) -> None:
        self.n = len(z)
        deviations = (s.position_m, s.position_m, s.heading_rad, s.speed_mps, s.gyro_rps)
        self.r = np.diag([one**2 for one in deviations[: self.n]])
        self.x = np.append(z, np.zeros(5 - self.n))
        self.p = np.diag([*np.diag(self.r), s.yaw_rate_rps**2][:5])
        self.s = s

    def take(self, z: Array, dt: float) -> None:
        f = numeric_jacobian(self.x, dt)
        heading = self.x[2]
        g = np.array([[dt**2 / 2 * cos(heading), 0], [dt**2 / 2 * sin(heading), 0], [0, dt**2 / 2], [dt, 0], [0, dt]])
        q = g @ np.diag([self.s.acceleration_mps2**2, self.s.yaw_acceleration_rps2**2]) @ g.T
        self.x, self.p = reference_step(self.x, dt), f @ self.p @ f.T + q
        h = np.eye(self.n, 5)
        y = z - h @ self.x
        y[2] = np.arctan2(sin(y[2]), cos(y[2]))
        k = self.p @ h.T @ np.linalg.inv(h @ self.p @ h.T + self.r)
        self.x, self.p = self.x + k @ y, (np.eye(5) - k @ h) @ self.p


def drive(seed: int, yaw_rate: float, steps: int, dt: float, spread: Spread) -> list[tuple[Array, Array]]:
    """Truth and measurement per step, of a vehicle that does what the process noise says."""
    draw = Random(seed)
    x = np.array([3.0, -4.0, draw.uniform(-pi, pi), 12.0, yaw_rate])
    found = []
    for _ in range(steps):
        sd = (spread.position_m, spread.position_m, spread.heading_rad, spread.speed_mps, spread.gyro_rps)
        found.append((x, np.array([x[i] + draw.gauss(0, sd[i]) for i in range(5)])))
        a, b = draw.gauss(0, spread.acceleration_mps2), draw.gauss(0, spread.yaw_acceleration_rps2)
        push = np.array([dt * dt / 2 * a * cos(x[2]), dt * dt / 2 * a * sin(x[2]), dt * dt / 2 * b, dt * a, dt * b])
        x = reference_step(x, dt) + push
    return found


def noise(spread: Spread) -> Array:
    return spread.measurement(spread.position_m)


@pytest.mark.parametrize("measured", [4, 5])
@pytest.mark.parametrize("yaw_rate", [0.0, 0.3, -0.8])
def test_filter_agrees_with_plain_matrices(yaw_rate: float, measured: int) -> None:
    spread = Spread()
    rows = [z[:measured] for _, z in drive(3, yaw_rate, 40, 0.1, spread)]
    ekf, reference = Ekf(tuple(rows[0].tolist()), noise(spread), spread), Reference(rows[0], spread)
    for z in rows[1:]:
        ekf.move(0.1)
        ekf.correct(tuple(z.tolist()), noise(spread))
        reference.take(z, 0.1)
        difference = ekf.x - reference.x
        difference[2] = wrap(float(difference[2]))
        assert np.abs(difference).max() < 1e-6
        assert np.abs(ekf.p - reference.p).max() < 1e-6


@pytest.mark.parametrize("measured", [4, 5])
@pytest.mark.parametrize("yaw_rate", [0.0, 0.3])
def test_filter_is_consistent(yaw_rate: float, measured: int) -> None:
    """Mean of the normalised estimation error squared: 5 for five states. 40 runs of 30 steps, the first 10 left out.

    The mean over 800 strongly correlated values; over 40 independent runs alone its 95 % interval would be
    5 +- 2 sqrt(2 * 5 / 40) = 4 to 6.
    """
    spread = Spread(yaw_acceleration_rps2=0.2)
    errors = []
    for seed in range(40):
        rows = [(truth, tuple(z[:measured].tolist())) for truth, z in drive(seed, yaw_rate, 30, 0.1, spread)]
        ekf = Ekf(rows[0][1], noise(spread), spread)
        for i, (truth, z) in enumerate(rows[1:]):
            ekf.move(0.1)
            ekf.correct(z, noise(spread))
            if i >= 10:
                off = ekf.x - truth
                off[2] = wrap(float(off[2]))
                errors.append(float(off @ np.linalg.solve(ekf.p, off)))
    assert 4.0 < sum(errors) / len(errors) < 6.0


def test_filter_is_better_than_its_measurements() -> None:
    spread = Spread()
    rows = [(truth, tuple(z[:4].tolist())) for truth, z in drive(11, 0.2, 200, 0.1, spread)]
    ekf = Ekf(rows[0][1], noise(spread), spread)
    raw, filtered = 0.0, 0.0
    for truth, z in rows[1:]:
        ekf.move(0.1)
        ekf.correct(z, noise(spread))
        raw += hypot(z[0] - truth[0], z[1] - truth[1]) ** 2
        filtered += hypot(ekf.x[0] - truth[0], ekf.x[1] - truth[1]) ** 2
    assert filtered < 0.6 * raw


@given(st.floats(-pi, pi), st.floats(0, 60), st.floats(-2, 2), st.floats(-12, 8), st.floats(-1, 1))
def test_an_acceleration_moves_the_filter_as_the_model_does(
    heading: float, speed: float, yaw_rate: float, acceleration: float, dt: float
) -> None:
    assume(speed + acceleration * dt > 1e-3)
    assume(speed > 1e-3)
    x, _ = step(np.array([1.0, 2.0, heading, speed, yaw_rate]), dt, acceleration)
    there = advance(1.0, 2.0, heading, speed, yaw_rate, acceleration, dt)
    assert x.tolist() == pytest.approx(there[:5], abs=1e-9)


def test_braking_stops_and_does_not_reverse() -> None:
    x, _ = step(np.array([0.0, 0.0, 0.0, 2.0, 0.0]), 1.0, -8.0)
    assert x[3] == 0.0
    assert x[0] == pytest.approx(1.0)


@given(st.floats(-pi, pi), st.floats(-5, 60), st.floats(-2, 2), st.floats(-1, 1))
def test_jacobian(heading: float, speed: float, yaw_rate: float, dt: float) -> None:
    x = np.array([1.0, 2.0, heading, speed, yaw_rate if abs(yaw_rate) > 1e-3 else 0.0])
    expected = numeric_jacobian(x, dt)
    if x[4] != 0.0:  # beside 0 the textbook formula cancels
        assert np.abs(step(x, dt)[1] - expected).max() < 1e-3
        assert np.abs(step(x, dt)[0][:2] - reference_step(x, dt)[:2]).max() < 1e-6


@given(st.floats(-pi, pi), st.floats(10, 60), st.floats(-2, 2), st.floats(-0.9, 0.9), st.floats(-8, 8))
def test_jacobian_with_an_acceleration(heading: float, speed: float, yaw_rate: float, dt: float, push: float) -> None:
    """As differences of the step itself; the vehicle does not come to stand."""
    x = np.array([1.0, 2.0, heading, speed, yaw_rate])
    for column in range(5):
        tiny = np.zeros(5)
        tiny[column] = 1e-5
        ahead, behind = step(x + tiny, dt, push)[0], step(x - tiny, dt, push)[0]
        slope = (ahead - behind) / 2e-5
        slope[2] = wrap(ahead[2] - behind[2]) / 2e-5
        assert np.abs(slope - step(x, dt, push)[1][:, column]).max() < 1e-4


def test_estimate_is_told_for_now() -> None:
    one = Filter()
    # one measurement, 0.2 s old: 10 m/s * 0.2 s further. Variance along 0.09 + 0.2^2 * 0.3^2 + (2 * 0.02)^2 = 0.0952;
    # across 0.09 + (10 * 0.2 * 0.03)^2 and of the yaw rate (10 * 0.04 / 2 * 0.3)^2 = 0.0036: 0.0972, the larger one
    result = one(seen(5.0, 1.0, 1000, age_s=0.2, track=4, entry=1))
    assert (result.object.x_m, result.object.y_m, result.object.speed_mps) == pytest.approx((7.0, 1.0, 10.0))
    assert result.position_sd_m == pytest.approx(0.0972**0.5, abs=1e-6)


def test_what_the_message_says_of_its_motion_is_taken() -> None:
    """A turn of 0.3 rad/s and a braking of 2 m/s2, in the first measurement as later on."""
    one = Filter()
    for i in range(4):
        row = seen(0.0, 0.0, 1000, track=1, entry=1, yaw_rate_rps=0.3, acceleration_mps2=-2.0, age_s=0.5)
        row.measured.CopyFrom(motion_of(advance(0.0, 0.0, 0.0, 10.0, 0.3, -2.0, 0.3 * i)))
        row.measured_ms, row.entry = 1000 + 300 * i, i + 1
        found = one(row).object
        assert list(state_of(found)) == pytest.approx(advance(0.0, 0.0, 0.0, 10.0, 0.3, -2.0, 0.3 * i + 0.5), abs=1e-6)


def test_where_a_lane_was_found_its_heading_stays() -> None:
    encounter = seen(5.0, 1.0, 1000, track=4, entry=1, lane="east-west")  # type: ignore[arg-type]
    encounter.object.heading_rad = 0.07
    assert Filter()(encounter).object.heading_rad == 0.07


def test_a_repeat_changes_no_estimate() -> None:
    once, twice = Filter(), Filter()
    for one in (once, twice):
        one(seen(0.0, 0.0, 1000, track=1, entry=1))
        one(seen(1.2, 0.1, 1100, track=1, entry=2))
    for _ in range(5):
        twice(seen(1.2, 0.1, 1100, track=1, entry=2))
        twice(seen(0.0, 0.0, 1000, track=1, entry=1))
    last = seen(2.0, 0.0, 1200, track=1, entry=3)
    assert once(last) == twice(last)


def test_a_late_measurement_counts_nearly_as_in_order() -> None:
    rows = [seen(1.0 * i, 0.0, 1000 + 100 * i, track=1, entry=i + 1) for i in range(8)]
    rows[5].measured.y_m = 0.6
    ordered, late, without = Filter(), Filter(), Filter()
    in_order = [ordered(row) for row in rows][-1]
    swapped = [late(rows[i]) for i in (0, 1, 2, 3, 4, 6, 5, 7)][-1]
    lost = [without(rows[i]) for i in (0, 1, 2, 3, 4, 6, 7)][-1]
    assert in_order.object.y_m > 0.05
    assert abs(swapped.object.y_m - in_order.object.y_m) < 0.5 * abs(lost.object.y_m - in_order.object.y_m)


def test_two_stations_are_better_than_one() -> None:
    alone, both = Filter(), Filter()
    for i in range(5):
        one = alone(seen(i, 0.0, 1000 + 100 * i, track=1, entry=2 * i))
        both(seen(i, 0.0, 1000 + 100 * i, track=1, entry=2 * i))
        two = both(seen(i, 0.0, 1000 + 100 * i, track=1, entry=2 * i + 1, station=8))
    assert two.position_sd_m < 0.85 * one.position_sd_m


def test_a_reversing_vehicle_is_told_in_the_direction_it_goes() -> None:
    one = Filter()
    for i in range(6):  # first forwards to the east at 1 m/s, then backwards: heading pi
        one(seen(0.1 * i, 0.0, 1000 + 100 * i, 1.0, 0.0, track=1, entry=i + 1))
    for i in range(6):
        result = one(seen(0.5 - 0.2 * i, 0.0, 1600 + 100 * i, 2.0, pi, track=1, entry=i + 7))
    assert abs(wrap(result.object.heading_rad - pi)) < 0.1
    assert result.object.speed_mps == pytest.approx(2.0, abs=0.3)


def test_filters_are_forgotten() -> None:
    one = Filter()
    one(seen(0.0, 0.0, 1000, track=1, entry=1))
    assert one(seen(500.0, 0.0, 2001, track=1, entry=2)).object.x_m == pytest.approx(500.0)


def test_larger_axis() -> None:
    # [[2, 1], [1, 2]] has eigenvalues 3 and 1
    assert larger_axis(np.array([[2.0, 1.0], [1.0, 2.0]])) == pytest.approx(3**0.5)


# ---------------------------------------------------------------- O13


def hit(entry: int, ms: int, track: int = 1, quality: int = 6) -> Encounter:
    return Encounter(entry=entry, measured_ms=ms, track=track, quality=quality)


def test_two_of_six_cycles() -> None:
    one = Confirm()
    assert [(r.hits, r.confirmed) for r in (one(hit(1, 1000)), one(hit(2, 1600)), one(hit(3, 2199)))] == [
        (1, False),
        (1, False),  # 600 ms apart: not within six cycles of 100 ms
        (2, True),  # 599 ms
    ]


def test_quality_alone_confirms() -> None:
    one = Confirm()
    assert one(hit(1, 1000, quality=10)).confirmed
    assert not one(hit(2, 1000, track=2, quality=9)).confirmed
    assert one(hit(3, 1900)).confirmed, "it stays so"
    assert not one(hit(4, 2901)).confirmed, "until nothing has come for a second"


def test_repeats_do_not_confirm() -> None:
    one = Confirm()
    for _ in range(5):
        result = one(hit(1, 1000))
    assert (result.hits, result.confirmed) == (1, False)
    assert one(hit(2, 1000)).confirmed, "another station at the same instant does"


def test_late_measurements_count() -> None:
    one = Confirm()
    one(hit(1, 1500))
    result = one(hit(2, 1000))
    assert (result.hits, result.confirmed) == (2, True)


@pytest.mark.parametrize("wrong", [{"m": 0}, {"n": 0}, {"cycle_ms": 0}, {"n": 11}])
def test_wrong_parameters(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Confirm(**wrong)
    with pytest.raises(ValueError, match="above 0"):
        Gate(position_sd_m=0.0)
    with pytest.raises(ValueError, match="deviation"):
        Filter(speed_sd_mps=0.0)


# ---------------------------------------------------------------- together


def test_two_vehicles_side_by_side_and_several_stations() -> None:
    """Two lanes, 3.2 m apart, three stations with 0.1 m noise, bursts of 0, 50 and 100 ms every 500 ms, repeats, and
    names that differ between stations: two tracks, and an estimate better than one measurement."""
    draw = Random(5)
    track, off = Tracker(), []
    found: dict[int, set[int]] = {}
    for burst in range(10):
        for delay in (100, 50, 0):
            ms = 60000 + 500 * burst - delay
            for station in (7, 8, 9):
                for lane in (0, 1):
                    x, y = 12.0 * (ms - 60000) / 1000 + lane, 3.2 * lane
                    measured = seen(
                        x + draw.gauss(0, 0.1), y + draw.gauss(0, 0.1), ms, 12.0, 0.0, station, 100 * station + lane
                    )
                    result = track(measured)
                    assert track(measured).track == result.track
                    found.setdefault(lane, set()).add(result.track)
                    if burst > 1:
                        off.append(hypot(result.object.x_m - x, result.object.y_m - y))
                        assert result.confirmed
    assert found == {0: {1}, 1: {2}}
    assert sum(off) / len(off) < 0.1


def test_memory_is_bounded() -> None:
    track = Tracker()
    for i in range(3 * MOST):
        result = track(seen(20.0 * i, 0.0, 1000 + i // 3, station=i))
    assert result.track == 3 * MOST
    gate, associate, filter_, confirm = track.parts
    tables = (gate._entries, associate._track_of, filter_._tracks, filter_._taken, confirm._counted, confirm._confirmed)
    assert max(len(table) for table in tables) == MOST


def test_recent() -> None:
    held: Recent[str, int] = Recent()
    held.put("a", 65000, 1)
    held.put("b", 500, 2)
    held.forget(65000 + KEEP_MS)
    assert [(held.now - at, value) for at, value in held.instants()] == [(KEEP_MS, 1), (-36, 2)]
    held.forget(65000 + KEEP_MS + 1)
    assert [held.get("a"), held.get("b")] == [None, 2]


@given(
    st.lists(
        st.tuples(
            st.floats(-1e7, 1e7), st.floats(-1e7, 1e7), st.integers(0, 2**32 - 1), st.floats(0, 70), st.floats(-4, 4)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_anything_gives_finite_estimates(rows: list[tuple[float, float, int, float, float]]) -> None:
    track = Tracker()
    for x, y, ms, speed, heading in rows:
        result = track(seen(x, y, ms, speed, heading))
        motion = result.object
        assert all(isfinite(one) for one in (motion.x_m, motion.y_m, motion.heading_rad, result.position_sd_m))
        assert 0.0 <= motion.speed_mps < 1e3
    track(Encounter())
