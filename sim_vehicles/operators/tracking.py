"""O10 to O13: which measurements are of the same vehicle, and what they say together.

A vehicle is perceived by several stations, several times per burst; stations do not share names for what they perceive,
so measurements are told apart by place and time alone. A repeat (same station, object and measured_ms) is the same
evidence: it keeps its first copy's `entry`, goes to the same track, changes no estimate and is not counted; it does
lead to a result, as every tuple does. Measurements come slightly out of order; each operator says what that does to it.

Every state is kept for a second of ITS time, at most 256 of a kind (`Recent`). Numbers given out start at 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, log, pi, sin, sqrt
from typing import NamedTuple

from node_agent.sdk import operator
from protos.vehicle_pb2 import Encounter, Gated
from sim_vehicles.operators.models.ctrv import State, advance, motion_of, state_of
from sim_vehicles.operators.models.ekf import Array, Ekf, Measured, Spread, larger_axis
from sim_vehicles.operators.models.its_time import since_ms
from sim_vehicles.operators.models.recent import KEEP_MS, Recent
from sim_vehicles.operators.place import REVERSING_MPS, SLOW_MPS
from sim_vehicles.world.motion import wrap

ACCELERATION_GAIN = 0.5  # of a new measurement of the acceleration: a pedal is not held still
GATE = 9.21  # chi-square, 2 degrees of freedom, 99 %
MOST_GATED = 16
MAX_SPEED_MPS = 70.0  # faster ones do not pass O2
BEST_QUALITY = 15
NUMBERS = 0xFFFFFFFF
Key = tuple[int, int, int]  # station, object, measured_ms


class Entry(NamedTuple):
    """A measurement. reach_m: what it may continue lies no farther from it, along either axis; variance_m2: of its
    position."""

    number: int
    state: State
    variance_m2: float
    x_m: float
    reach_m: float


def deviation_m(best_m: float, quality: int) -> float:
    """Standard deviation of a measured position: `best_m` at perception quality 15, twice as much at 0."""
    return best_m * (2.0 - min(quality, BEST_QUALITY) / BEST_QUALITY)


@operator("vehicle.gate", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Gate:
    """O10: which earlier measurements a new one may continue; fills entry and gated (nearest first, at most 16).

    Each measurement of the last second moves by CTRV to the new one's instant (back, where the new one is the older
    one), with its yaw rate and acceleration where its station says them. Its position there has a variance along and
    one across its heading [m2]:

        along:  sd^2 + new sd^2 + (speed_sd dt)^2 + (acceleration_sd dt^2 / 2)^2
        across: sd^2 + new sd^2 + (v heading_sd dt)^2 + (lateral_sd dt^2 / 2)^2

    sd, new sd: of the two measured positions, `position_sd_m` for one of perception quality 15 and up to twice as much
    for less. The new one is inside if the Mahalanobis distance d2 = along^2 / var_along + across^2 / var_across is
    below 9.21: chi-square, 2 degrees of freedom, 99 %. Nearest is the least d2 + log_spread, log_spread being
    ln(var_along var_across): the likeliest (Blackman, Popoli, "Design and analysis of modern tracking systems", 1999).
    The object's own name and station play no part. A repeat keeps its first copy's entry and is not gated with itself.
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
        self._position_sd_m = position_sd_m
        self._speed = speed_sd_mps**2
        self._heading = heading_sd_rad**2
        self._acceleration = acceleration_sd_mps2**2 / 4.0
        self._lateral = lateral_sd_mps2**2 / 4.0
        widest = 2.0 * self._variance_m2(0)
        self._widest = sqrt(GATE * max(self._variances(widest, MAX_SPEED_MPS, KEEP_MS / 1000.0)))
        self._entries: Recent[Key, Entry] = Recent()
        self._given = 0

    def __call__(self, encounter: Encounter) -> Encounter:
        now_ms = encounter.measured_ms
        self._entries.forget(now_ms)
        key = (encounter.station, encounter.object_id, now_ms)
        known = self._entries.get(key)
        new = self._entry(encounter)
        inside = sorted(self._inside(new, known), key=_likelihood)[:MOST_GATED]
        if known is None:
            self._given = self._given % NUMBERS + 1
            known = new._replace(number=self._given)
            self._entries.put(key, now_ms, known)
        result = Encounter()
        result.CopyFrom(encounter)
        result.entry = known.number
        del result.gated[:]
        result.gated.extend(inside)
        return result

    def _inside(self, new: Entry, itself: Entry | None) -> Iterable[Gated]:
        x, y, now = new.x_m, new.state[1], self._entries.now
        for at, entry in self._entries.instants():
            reach_m = entry.reach_m
            # Most cannot be inside: spare the rest.
            if -reach_m <= x - entry.x_m <= reach_m and abs(y - entry.state[1]) <= reach_m and entry is not itself:
                dt = (now - at) / 1000.0
                gated = self._gated(entry, x, y, dt, entry.variance_m2 + new.variance_m2)
                if gated.distance2 < GATE:
                    yield gated

    def _gated(self, entry: Entry, x: float, y: float, dt: float, variance_m2: float) -> Gated:
        """Mahalanobis distance, squared, of a place from an entry `dt` seconds on, and the spread there."""
        there_x, there_y, heading, _, _, _ = advance(*entry.state, dt)
        along_var, across_var = self._variances(variance_m2, entry.state[3], dt)
        c, s = cos(heading), sin(heading)
        dx, dy = x - there_x, y - there_y
        d2 = (c * dx + s * dy) ** 2 / along_var + (c * dy - s * dx) ** 2 / across_var
        return Gated(entry=entry.number, distance2=d2, log_spread=log(along_var * across_var))

    def _entry(self, encounter: Encounter) -> Entry:
        state = state_of(encounter.measured)
        most_s = KEEP_MS / 1000.0
        reach_m = (state[3] + abs(state[5]) * most_s) * most_s + self._widest
        return Entry(0, state, self._variance_m2(encounter.quality), state[0], reach_m)

    def _variance_m2(self, quality: int) -> float:
        return deviation_m(self._position_sd_m, quality) ** 2

    def _variances(self, position_m2: float, speed: float, dt: float) -> tuple[float, float]:
        dt2 = dt * dt
        along = position_m2 + dt2 * (self._speed + dt2 * self._acceleration)
        return along, position_m2 + dt2 * (speed * speed * self._heading + dt2 * self._lateral)


def _likelihood(one: Gated) -> tuple[float, int]:
    """Orders by what is likeliest, the least first; of equal ones the older entry."""
    return one.distance2 + one.log_spread, one.entry


@operator("vehicle.associate", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Associate:
    """O11: nearest neighbour: the track of the nearest gated entry, else a new track; fills track.

    Nearest by the gate's order, distance2 + log_spread; entries whose own measurement never came here are passed over.
    A measurement that comes late still finds its track, since the gate looks both ways in time. A repeat keeps its
    track. (Blackman, Popoli 1999.)
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
        for gated in sorted(encounter.gated, key=_likelihood):
            track = self._track_of.get(gated.entry)
            if track is not None:
                return track
        self._given = self._given % NUMBERS + 1
        return self._given


class Track:
    """A filter, the ITS time of its state, and the acceleration that the vehicle's messages say, smoothed [m/s2]."""

    def __init__(self, measured: Measured, noise: Array, measured_ms: int, spread: Spread) -> None:
        self.ekf = Ekf(measured, noise, spread)
        self.at_ms = measured_ms
        self.acceleration_mps2 = 0.0
        self._knows_acceleration = False

    def take(self, measured: Measured, noise: Array, measured_ms: int, most_lateral_mps2: float) -> None:
        """A measurement; then the yaw rate is at most what the acceleration across allows at the track's speed."""
        dt = since_ms(measured_ms, self.at_ms) / 1000.0
        if dt < 0.0:
            self.ekf.correct(*self.ekf.brought_on(measured, noise, -dt, self.acceleration_mps2))
        else:
            self.ekf.move(dt, self.acceleration_mps2)
            self.at_ms = measured_ms
            self.ekf.correct(measured, noise)
        self.limit(most_lateral_mps2)

    def limit(self, most_lateral_mps2: float) -> None:
        """Cuts the yaw rate to what the acceleration across allows."""
        most = most_lateral_mps2 / max(abs(float(self.ekf.x[3])), SLOW_MPS)
        self.ekf.x[4] = min(max(float(self.ekf.x[4]), -most), most)

    def push(self, acceleration_mps2: float) -> None:
        """A measured acceleration."""
        gain = ACCELERATION_GAIN if self._knows_acceleration else 1.0
        self.acceleration_mps2 += gain * (acceleration_mps2 - self.acceleration_mps2)
        self._knows_acceleration = True


@operator("vehicle.filter", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Filter:
    """O12: an extended Kalman filter on CTRV per track; betters `object`, fills position_sd_m. See `ekf`.

    It takes `measured` (place, heading, speed as they were at measured_ms), so what was extrapolated is never measured
    again. A yaw rate that the message says is measured as well; its acceleration, smoothed with gain 0.5, moves the
    track's speed. A measurement older than the track's state is first brought on to the state's instant with the
    track's yaw rate, and its noise grows by the process noise on the way: close to what keeping it in order would give,
    without a history. A repeat changes nothing.

    After each measurement the yaw rate is cut to `most_lateral_mps2` over the speed: a heading that jumps is else taken
    for a turn that no vehicle can drive, overshoots, and is carried on to now. (State constraints in Kalman filters:
    Simon 2010.) The limit is above what O14 takes for a turn, so what was cut there counts as noise.

    `object` is then the track's state at the now of O8 (age_s after the measurement), so it stays the same instant as
    `ego_now`; where O9 found a lane, with the lane's heading. position_sd_m [m] is the larger axis there.

    Standard deviations of a measurement: position_sd_m (at perception quality 15, twice as much at 0), heading_sd_rad,
    speed_sd_mps, gyro_sd_rps; of the vehicle's unforeseen acceleration and yaw acceleration: acceleration_sd_mps2,
    yaw_acceleration_sd_rps2.
    """

    def __init__(
        self,
        position_sd_m: float = Spread.position_m,
        heading_sd_rad: float = Spread.heading_rad,
        speed_sd_mps: float = Spread.speed_mps,
        gyro_sd_rps: float = Spread.gyro_rps,
        acceleration_sd_mps2: float = Spread.acceleration_mps2,
        yaw_acceleration_sd_rps2: float = Spread.yaw_acceleration_rps2,
        most_lateral_mps2: float = 4.0,
    ) -> None:
        if not most_lateral_mps2 > 0.0:
            raise ValueError(f"most_lateral_mps2 is {most_lateral_mps2}; it must be above 0")
        self._most_lateral_mps2 = most_lateral_mps2
        self._spread = Spread(
            position_sd_m, heading_sd_rad, speed_sd_mps, gyro_sd_rps, acceleration_sd_mps2, yaw_acceleration_sd_rps2
        )
        self._noise = [
            self._spread.measurement(deviation_m(position_sd_m, quality)) for quality in range(BEST_QUALITY + 1)
        ]
        self._tracks: Recent[int, Track] = Recent()
        self._taken: Recent[int, bool] = Recent()

    def __call__(self, encounter: Encounter) -> Encounter:
        track = self._updated(encounter)
        now_s = since_ms(encounter.measured_ms, track.at_ms) / 1000.0 + encounter.age_s
        state, covariance = track.ekf.predicted(now_s, track.acceleration_mps2)
        x, y, heading, speed, yaw_rate = state.tolist()
        acceleration = track.acceleration_mps2
        if speed < -REVERSING_MPS:
            heading, speed, acceleration = wrap(heading + pi), -speed, -acceleration
        if encounter.lane:
            heading = encounter.object.heading_rad
        result = Encounter()
        result.CopyFrom(encounter)
        result.object.CopyFrom(motion_of((x, y, heading, max(0.0, speed), yaw_rate, acceleration)))
        result.position_sd_m = larger_axis(covariance)
        return result

    def _updated(self, encounter: Encounter) -> Track:
        at_ms = encounter.measured_ms
        self._tracks.forget(at_ms)
        self._taken.forget(at_ms)
        measured, noise = _measured(encounter), self._noise[min(encounter.quality, BEST_QUALITY)]
        track = self._tracks.get(encounter.track)
        if track is None:
            track = Track(measured, noise, at_ms, self._spread)
            track.limit(self._most_lateral_mps2)
        elif not self._taken.get(encounter.entry):
            track.take(measured, noise, at_ms, self._most_lateral_mps2)
        if encounter.HasField("acceleration_mps2") and not self._taken.get(encounter.entry):
            track.push(encounter.measured.acceleration_mps2)
        self._tracks.put(encounter.track, track.at_ms, track)
        self._taken.put(encounter.entry, at_ms, True)
        return track


def _measured(encounter: Encounter) -> Measured:
    x, y, heading, speed, yaw_rate, _ = state_of(encounter.measured)
    return (x, y, heading, speed, yaw_rate) if encounter.HasField("yaw_rate_rps") else (x, y, heading, speed)


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
        hits = self._hits(track)
        confirmed = self._confirmed.get(track) or hits >= self._m or encounter.quality >= self._quality
        if confirmed:
            self._confirmed.put(track, at_ms, True)
        result = Encounter()
        result.CopyFrom(encounter)
        result.hits = hits
        result.confirmed = confirmed
        return result

    def _hits(self, track: int) -> int:
        counted = [at for at, of in self._counted.instants() if of == track]
        newest = max(counted, default=0)
        return sum(newest - at < self._window_ms for at in counted)
