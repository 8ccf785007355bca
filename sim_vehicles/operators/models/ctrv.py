"""Motion with constant turn rate and velocity (CTRV), and with constant acceleration along the path.

The model and its closed form: R. Schubert, E. Richter, G. Wanielik, "Comparison and evaluation of advanced motion
models for vehicle tracking", FUSION 2008. With h = yaw rate x dt, the way in the plane is

    dt v (S, C) + dt^2 a (P, Q), turned by the heading, where
    S = sin h / h, C = (1 - cos h) / h, P = integral of u cos(h u), Q = integral of u sin(h u) over u in [0, 1].

Written so, nothing is divided by the yaw rate; near h = 0 the four are power series, and a straight line is no special
case.
"""

from __future__ import annotations

from math import cos, sin

from protos.vehicle_pb2 import Motion
from sim_vehicles.world.motion import wrap

State = tuple[
    float, float, float, float, float, float
]  # x, y [m], heading [rad], speed, yaw rate [rad/s], acceleration

SERIES_BELOW = 0.03  # |h|: here both the series and the closed forms are good to 1e-12


def advance(x: float, y: float, heading: float, speed: float, yaw_rate: float, acceleration: float, dt: float) -> State:
    """The state `dt` seconds later (earlier, where negative): x, y, heading, speed, yaw rate, acceleration.

    Metres, radians (mathematical, returned in [-pi, pi)), m/s, rad/s, m/s2 along the heading, all finite. The speed
    never falls below 0: who brakes to a stop stands there, and who stands does not turn. A negative speed counts as 0.
    Yaw rate and acceleration come back as they were given. Exact for any step: `advance` by s and then by t is
    `advance` by s + t (for s, t >= 0). Schubert et al. 2008.
    """
    v = speed if speed > 0.0 else 0.0
    end = v + acceleration * dt
    if end <= 0.0:
        dt = -v / acceleration if acceleration else 0.0  # until it stands (going back: since it stood)
        end = 0.0
    h = yaw_rate * dt
    c, s = cos(heading), sin(heading)
    one, two, three, four = integrals(h)
    along = dt * (v * one + dt * acceleration * three)
    across = dt * (v * two + dt * acceleration * four)
    return x + c * along - s * across, y + s * along + c * across, wrap(heading + h), end, yaw_rate, acceleration


def state_of(motion: Motion) -> State:
    """The six numbers of a message, in the order of `advance`."""
    return (
        motion.x_m,
        motion.y_m,
        motion.heading_rad,
        motion.speed_mps,
        motion.yaw_rate_rps,
        motion.acceleration_mps2,
    )


def motion_of(state: State) -> Motion:
    """The message of six numbers."""
    x, y, heading, speed, yaw_rate, acceleration = state
    return Motion(
        x_m=x,
        y_m=y,
        heading_rad=heading,
        speed_mps=speed,
        yaw_rate_rps=yaw_rate,
        acceleration_mps2=acceleration,
    )


def integrals(h: float) -> tuple[float, float, float, float]:
    """S, C, P, Q of the head, for the angle h in radians. dS/dh = -Q and dC/dh = P."""
    h2 = h * h
    if h2 < SERIES_BELOW * SERIES_BELOW:
        return (
            1.0 - h2 / 6.0 + h2 * h2 / 120.0,
            h * (0.5 - h2 / 24.0 + h2 * h2 / 720.0),
            0.5 - h2 / 8.0 + h2 * h2 / 144.0,
            h * (1.0 / 3.0 - h2 / 30.0 + h2 * h2 / 840.0),
        )
    c, s = cos(h), sin(h)
    return s / h, (1.0 - c) / h, s / h - (1.0 - c) / h2, (s - h * c) / h2


def second_integrals(h: float) -> tuple[float, float]:
    """The integrals of u^2 cos(h u) and u^2 sin(h u) over u in [0, 1]: dQ/dh and -dP/dh."""
    h2 = h * h
    if h2 < SERIES_BELOW * SERIES_BELOW:
        return 1.0 / 3.0 - h2 / 10.0 + h2 * h2 / 168.0, h * (0.25 - h2 / 36.0 + h2 * h2 / 960.0)
    c, s = cos(h), sin(h)
    return (s + 2.0 * (c - s / h) / h) / h, (2.0 * (s - (1.0 - c) / h) / h - c) / h
