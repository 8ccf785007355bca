"""O1: where the ego vehicle is, from its own sensors."""

from __future__ import annotations

from collections import deque
from math import dist, hypot, pi, radians

from node_agent.sdk import operator
from protos.vehicle_pb2 import Ego, Sensor
from sim_vehicles.operators.models.ctrv import State, advance, motion_of
from sim_vehicles.operators.models.its_time import since_ms
from sim_vehicles.operators.models.trail import LEAST_M, bend_of
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import wrap

GAP_S = 1.0  # no dead reckoning over more than this
JUMP_M = 10.0  # dead reckoning that far off is worth nothing: start again
APART_M = 1.0  # places that are remembered of the own path
PLACES = round(2 * LEAST_M / APART_M)
MAX_SPEED_CMS = 7000
HEADING_DDEG, YAW_RATE_CDEGS, ACCELERATION_DMS2 = 3600, 32766, 160  # largest values of EN 302 637-2 that mean a value


@operator("vehicle.localise", inputs={"sensor": "vehicle.Sensor"}, output="vehicle.Ego")
class Localise:
    """O1: x, y [m], heading [rad], speed, yaw rate, acceleration of the ego: dead reckoning blended with GNSS.

    The last state moves on by CTRV to the new measurement's generation_ms; position and heading are then corrected by
    the share `gain` of what GNSS and compass say otherwise (a complementary filter: quick changes from odometry, slow
    ones from GNSS). Speed, yaw rate and acceleration are taken as measured. Motion model: Schubert et al. 2008.

    A measurement without a usable predecessor (the first one, another station, over 1 s apart, 10 m off) is taken as it
    is. One that is older than the last by up to 1 s, or repeats it, changes nothing: the present state comes out again.
    A speed (over 70 m/s) or heading (over 360 degrees: "unavailable") that cannot be is dead-reckoned, and without a
    predecessor the measurement is filtered; such a yaw rate or acceleration counts as 0. A negative speed is reversing:
    the heading of the motion is then the way it goes. bend_1pm is the curvature of its last metres.

    gain: 0 (dead reckoning alone) to 1 (GNSS alone). length_m, width_m: of the ego's box.
    """

    def __init__(self, gain: float = 0.25, length_m: float = 4.5, width_m: float = 1.8) -> None:
        if not 0.0 <= gain <= 1.0:
            raise ValueError(f"gain is {gain}; use 0 to 1")
        if not (0.0 < length_m <= 60.0 and 0.0 < width_m <= 60.0):
            raise ValueError(f"a vehicle of {length_m} m x {width_m} m; use (0, 60] metres")
        self.gain = gain
        self.length_m = length_m
        self.width_m = width_m
        self._last: Ego | None = None
        self._state: State | None = None
        self._came: deque[Point] = deque(maxlen=PLACES)

    def __call__(self, sensor: Sensor) -> Ego | None:
        last, before = self._last, self._state
        if last is not None and before is not None and sensor.station == last.station:
            step_s = since_ms(sensor.generation_ms, last.generation_ms) / 1000.0
            if -GAP_S <= step_s <= 0.0:
                return last
            guess = advance(*before, step_s) if 0.0 < step_s <= GAP_S else None
        else:
            guess = None
        if guess is None:
            self._came.clear()
        state = self._blend(guess, sensor)
        if state is None:
            return None
        self._state = state
        here = state[:2]
        bend_1pm = bend_of(here, state[2], self._came)
        if not self._came or dist(here, self._came[0]) >= APART_M:
            self._came.appendleft(here)
        self._last = Ego(
            station=sensor.station,
            generation_ms=sensor.generation_ms,
            motion=motion_of(state),
            length_m=self.length_m,
            width_m=self.width_m,
            bend_1pm=bend_1pm,
        )
        return self._last

    def _blend(self, guess: State | None, sensor: Sensor) -> State | None:
        speed, heading = _course(sensor)
        if speed is None or heading is None:
            if guess is None:
                return None
            speed = guess[3] if speed is None else speed
            heading = guess[2] if heading is None else heading
        yaw, pull = sensor.yaw_rate_cdegs, sensor.acceleration_dms2
        yaw_rate = radians(yaw / 100.0) if abs(yaw) <= YAW_RATE_CDEGS else 0.0
        acceleration = pull / 10.0 if abs(pull) <= ACCELERATION_DMS2 else 0.0
        if sensor.speed_cms < 0:
            acceleration = -acceleration
        x, y = sensor.x_cm / 100.0, sensor.y_cm / 100.0
        if guess is not None and hypot(x - guess[0], y - guess[1]) <= JUMP_M:
            keep = 1.0 - self.gain
            x -= keep * (x - guess[0])
            y -= keep * (y - guess[1])
            turn = wrap(heading - guess[2])
            if abs(turn) < pi / 2:  # else it began to reverse, or to go forwards again
                heading = wrap(guess[2] + self.gain * turn)
        return x, y, heading, speed, yaw_rate, acceleration


def _course(sensor: Sensor) -> tuple[float | None, float | None]:
    """Speed (m/s, not negative) and the mathematical heading of the motion; None for what cannot be."""
    speed = abs(sensor.speed_cms) / 100.0 if abs(sensor.speed_cms) <= MAX_SPEED_CMS else None
    if sensor.heading_ddeg > HEADING_DDEG:
        return speed, None
    heading = pi / 2 - radians(sensor.heading_ddeg / 10.0)
    return speed, wrap(heading + pi if sensor.speed_cms < 0 else heading)
