"""O10 to O13: which measurements are of the same vehicle, and what they say together.

A vehicle is perceived by several stations, several times per burst; stations do not share names for what they perceive,
so measurements are told apart by place and time alone. A repeat (same station, object and measured_ms) is the same
evidence: it keeps its first copy's `entry`, goes to the same track, changes no estimate and is not counted; it does
lead to a result, as every tuple does. Measurements come slightly out of order; each operator says what that does to it.

Every state is kept for a second of ITS time, at most 256 of a kind (`Recent`). Numbers given out start at 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, pi, sin, sqrt
from typing import NamedTuple

from node_agent.sdk import operator
from protos.vehicle_pb2 import Encounter, Gated
from sim_vehicles.operators.models.ctrv import State, advance, motion_of, state_of
from sim_vehicles.operators.models.ekf import Ekf, Four, Spread, larger_axis
from sim_vehicles.operators.models.its_time import since_ms
from sim_vehicles.operators.models.recent import KEEP_MS, Recent
from sim_vehicles.operators.place import REVERSING_MPS
from sim_vehicles.world.motion import wrap

SLOW_MPS = 1.0  # the limit of a yaw rate at a lower speed is that at this one: a speed near 0 is mostly noise
GATE = 9.21  # chi-square, 2 degrees of freedom, 99 %
MOST_GATED = 16
MAX_SPEED_MPS = 70.0  # faster ones do not pass O2
NUMBERS = 0xFFFFFFFF
Key = tuple[int, int, int]  # station, object, measured_ms


class Entry(NamedTuple):
    number: int
    state: State
    measured_ms: int


@operator("vehicle.gate", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Gate:
    """O10: which earlier measurements a new one may continue; fills entry and gated (nearest first, at most 16).

    Each measurement of the last second moves by CTRV to the new one's instant (back, where the new one is the older
    one). Its position there has a variance along and one across its heading [m2]:

        along:  2 position^2 + (speed_sd dt)^2 + (acceleration_sd dt^2 / 2)^2
        across: 2 position^2 + (v heading_sd dt)^2 + (lateral_sd dt^2 / 2)^2

    (2: both measurements have an error). The new one is inside if the Mahalanobis distance
    d2 = along^2 / var_along + across^2 / var_across is below 9.21: chi-square, 2 degrees of freedom, 99 % (Blackman,
    Popoli, "Design and analysis of modern tracking systems", 1999). The object's own name and station play no part.
    A repeat keeps its first copy's entry and is not gated with itself.
    """

    def __init__(
        self,
        position_sd_m: float = 0.3,
        speed_sd_mps: float = 0.5,
        heading_sd_rad: float = 0.02,
        acceleration_sd_mps2: float = 2.0,
        lateral_sd_mps2: float = 1.5,
    ) -> None:
        if position_sd_m <= 0.0:
            raise ValueError(f"position_sd_m is {position_sd_m}; it must be above 0")
        self._position = 2.0 * position_sd_m**2
        self._speed = speed_sd_mps**2
        self._heading = heading_sd_rad**2
        self._acceleration = acceleration_sd_mps2**2 / 4.0
        self._lateral = lateral_sd_mps2**2 / 4.0
        self._widest = sqrt(GATE * max(self._variances(MAX_SPEED_MPS, KEEP_MS / 1000.0)))
        self._entries: Recent[Key, Entry] = Recent()
        self._given = 0

    def __call__(self, encounter: Encounter) -> Encounter:
        now_ms = encounter.measured_ms
        self._entries.forget(now_ms)
        key = (encounter.station, encounter.object_id, now_ms)
        known = self._entries.get(key)
        state = state_of(encounter.measured)
        inside = sorted(self._inside(state, now_ms, known))[:MOST_GATED]
        if known is None:
            self._given = self._given % NUMBERS + 1
            known = Entry(self._given, state, now_ms)
            self._entries.put(key, now_ms, known)
        result = Encounter()
        result.CopyFrom(encounter)
        result.entry = known.number
        del result.gated[:]
        result.gated.extend(Gated(entry=number, distance2=d2) for d2, number in inside)
        return result

    def _inside(self, state: State, now_ms: int, itself: Entry | None) -> Iterable[tuple[float, int]]:
        x, y = state[0], state[1]
        for _, _, entry in self._entries:
            if entry is itself:
                continue
            dt = since_ms(now_ms, entry.measured_ms) / 1000.0
            dx, dy = x - entry.state[0], y - entry.state[1]
            reach = entry.state[3] * abs(dt) + self._widest
            if dx * dx + dy * dy <= reach * reach:  # else it cannot be inside: spare the rest
                d2 = self.distance2(entry.state, x, y, dt)
                if d2 < GATE:
                    yield d2, entry.number

    def distance2(self, state: State, x: float, y: float, dt: float) -> float:
        """Mahalanobis distance, squared, of a place from a state `dt` seconds on."""
        there_x, there_y, heading, _, _, _ = advance(*state, dt)
        along_var, across_var = self._variances(state[3], dt)
        c, s = cos(heading), sin(heading)
        dx, dy = x - there_x, y - there_y
        return float((c * dx + s * dy) ** 2 / along_var + (c * dy - s * dx) ** 2 / across_var)

    def _variances(self, speed: float, dt: float) -> tuple[float, float]:
        dt2 = dt * dt
        along = self._position + dt2 * (self._speed + dt2 * self._acceleration)
        return along, self._position + dt2 * (speed * speed * self._heading + dt2 * self._lateral)


@operator("vehicle.associate", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Associate:
    """O11: nearest neighbour: the track of the nearest gated entry, else a new track; fills track.

    Nearest by Mahalanobis distance; entries whose own measurement never came here are passed over. A measurement that
    comes late still finds its track, since the gate looks both ways in time. A repeat keeps its track. (Blackman,
    Popoli 1999.)
    """

    def __init__(self) -> None:
        self._track_of: Recent[int, int] = Recent()
        self._given = 0

    def __call__(self, encounter: Encounter) -> Encounter:
        self._track_of.forget(encounter.measured_ms)
        track = self._track_of.get(encounter.entry)
        if track is None:
            track = self._nearest(encounter)
            self._track_of.put(encounter.entry, encounter.measured_ms, track)
        result = Encounter()
        result.CopyFrom(encounter)
        result.track = track
        return result

    def _nearest(self, encounter: Encounter) -> int:
        for gated in sorted(encounter.gated, key=lambda one: (one.distance2, one.entry)):
            track = self._track_of.get(gated.entry)
            if track is not None:
                return track
        self._given = self._given % NUMBERS + 1
        return self._given


class Track:
    """A filter and the ITS time of its state."""

    def __init__(self, measured: Four, measured_ms: int, spread: Spread) -> None:
        self.ekf = Ekf(measured, spread)
        self.at_ms = measured_ms

    def take(self, measured: Four, measured_ms: int, most_lateral_mps2: float) -> None:
        """A measurement; then the yaw rate is at most what the acceleration across allows at the track's speed."""
        dt = since_ms(measured_ms, self.at_ms) / 1000.0
        if dt < 0.0:
            self.ekf.correct(*self.ekf.brought_on(measured, -dt))
        else:
            self.ekf.move(dt)
            self.at_ms = measured_ms
            self.ekf.correct(measured)
        most = most_lateral_mps2 / max(abs(float(self.ekf.x[3])), SLOW_MPS)
        self.ekf.x[4] = min(max(float(self.ekf.x[4]), -most), most)


@operator("vehicle.filter", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Filter:
    """O12: an extended Kalman filter on CTRV per track; betters `object`, fills position_sd_m. See `ekf`.

    It takes `measured` (place, heading, speed as they were at measured_ms), so what was extrapolated is never measured
    again. A measurement older than the track's state is first brought on to the state's instant with the track's yaw
    rate, and its noise grows by the process noise on the way: close to what keeping it in order would give, without a
    history. A repeat changes nothing.

    After each measurement the yaw rate is cut to `most_lateral_mps2` over the speed: a heading that jumps is else taken
    for a turn that no vehicle can drive, overshoots, and is carried on to now. (State constraints in Kalman filters:
    Simon 2010.) The limit is above what O14 takes for a turn, so what was cut there counts as noise.

    `object` is then the track's state at the now of O8 (age_s after the measurement), so it stays the same instant as
    `ego_now`; where O9 found a lane, with the lane's heading. position_sd_m [m] is the larger axis there.

    Standard deviations of a measurement: position_sd_m, heading_sd_rad, speed_sd_mps; of the vehicle's unforeseen
    acceleration and yaw acceleration: acceleration_sd_mps2, yaw_acceleration_sd_rps2.
    """

    def __init__(
        self,
        position_sd_m: float = Spread.position_m,
        heading_sd_rad: float = Spread.heading_rad,
        speed_sd_mps: float = Spread.speed_mps,
        acceleration_sd_mps2: float = Spread.acceleration_mps2,
        yaw_acceleration_sd_rps2: float = Spread.yaw_acceleration_rps2,
        most_lateral_mps2: float = 4.0,
    ) -> None:
        if not most_lateral_mps2 > 0.0:
            raise ValueError(f"most_lateral_mps2 is {most_lateral_mps2}; it must be above 0")
        self._most_lateral_mps2 = most_lateral_mps2
        self._spread = Spread(
            position_sd_m, heading_sd_rad, speed_sd_mps, acceleration_sd_mps2, yaw_acceleration_sd_rps2
        )
        self._tracks: Recent[int, Track] = Recent()
        self._taken: Recent[int, bool] = Recent()

    def __call__(self, encounter: Encounter) -> Encounter:
        track = self._updated(encounter)
        now_s = since_ms(encounter.measured_ms, track.at_ms) / 1000.0 + encounter.age_s
        state, covariance = track.ekf.predicted(now_s)
        x, y, heading, speed, yaw_rate = state.tolist()
        if speed < -REVERSING_MPS:
            heading, speed = wrap(heading + pi), -speed
        if encounter.lane:
            heading = encounter.object.heading_rad
        result = Encounter()
        result.CopyFrom(encounter)
        result.object.CopyFrom(motion_of((x, y, heading, max(0.0, speed), yaw_rate, 0.0)))
        result.position_sd_m = larger_axis(covariance)
        return result

    def _updated(self, encounter: Encounter) -> Track:
        at_ms = encounter.measured_ms
        self._tracks.forget(at_ms)
        self._taken.forget(at_ms)
        x, y, heading, speed, _, _ = state_of(encounter.measured)
        track = self._tracks.get(encounter.track)
        if track is None:
            track = Track((x, y, heading, speed), at_ms, self._spread)
        elif not self._taken.get(encounter.entry):
            track.take((x, y, heading, speed), at_ms, self._most_lateral_mps2)
        self._tracks.put(encounter.track, track.at_ms, track)
        self._taken.put(encounter.entry, at_ms, True)
        return track


@operator("vehicle.confirm", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Confirm:
    """O13: whether a track is a vehicle; fills hits and confirmed.

    Confirmed by M of N (Blackman, Popoli 1999): at least `m` measurements within the last `n` cycles of `cycle_ms`,
    counted back from the track's newest one (100 ms is the shortest period of a CPM); or by one measurement of
    perception quality >= `quality`. Once confirmed it stays so until nothing has come for 1 s; then it is forgotten.
    Measurements of several stations at one instant count each; a repeat does not. A late one counts if it lies within.
    """

    def __init__(self, m: int = 2, n: int = 6, cycle_ms: int = 100, quality: int = 10) -> None:
        if m < 1 or n < 1 or cycle_ms < 1 or n * cycle_ms > KEEP_MS:
            raise ValueError(f"{m} of {n} cycles of {cycle_ms} ms; each at least 1, and n cycles at most {KEEP_MS} ms")
        self._m = m
        self._window_ms = n * cycle_ms
        self._quality = quality
        self._counted: Recent[int, int] = Recent()  # entry: its track
        self._confirmed: Recent[int, bool] = Recent()  # by track

    def __call__(self, encounter: Encounter) -> Encounter:
        at_ms, track = encounter.measured_ms, encounter.track
        self._counted.forget(at_ms)
        self._confirmed.forget(at_ms)
        if self._counted.get(encounter.entry) is None:
            self._counted.put(encounter.entry, at_ms, track)
        hits = self._hits(track, at_ms)
        confirmed = self._confirmed.get(track) or hits >= self._m or encounter.quality >= self._quality
        if confirmed:
            self._confirmed.put(track, at_ms, True)
        result = Encounter()
        result.CopyFrom(encounter)
        result.hits = hits
        result.confirmed = confirmed
        return result

    def _hits(self, track: int, at_ms: int) -> int:
        ages = [since_ms(at_ms, measured_ms) for _, measured_ms, of in self._counted if of == track]
        newest = min(ages, default=0)
        return sum(age - newest < self._window_ms for age in ages)
