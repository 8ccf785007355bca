"""An extended Kalman filter on the CTRV model: state x, y, heading, speed, yaw rate (m, rad, m/s, rad/s).

Measured are x, y, heading and speed, and the yaw rate where the message says it. An acceleration that is known is an
input of the prediction. Model: Schubert et al. 2008; the process noise is a white acceleration along the heading and a
white yaw acceleration, both constant over a step (Bar-Shalom, Li, Kirubarajan, "Estimation with applications to
tracking and navigation", 2001, section 6.3). The speed of the state may pass below 0 (a standing vehicle and noise, or
one that reverses); what is told to others has a speed of at least 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.operators.models.ctrv import integrals, second_integrals
from sim_vehicles.world.motion import wrap

Array = NDArray[np.float64]
Measured = tuple[float, ...]  # x, y, heading, speed, and the yaw rate if it is known

IDENTITY = np.eye(5)


@dataclass(frozen=True)
class Spread:
    """Standard deviations: of a measurement, of what a vehicle does unforeseen, of a yaw rate that is not measured."""

    position_m: float = 0.3
    heading_rad: float = 0.03
    speed_mps: float = 0.3
    gyro_rps: float = 0.05
    acceleration_mps2: float = 2.0
    yaw_acceleration_rps2: float = 0.5
    yaw_rate_rps: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < 1e3:
                raise ValueError(f"{name} is {value}; a standard deviation must be in (0, 1000)")

    def measurement(self, position_m: float) -> Array:
        """Covariance (5 x 5) of a measurement whose position has this standard deviation."""
        deviations = (position_m, position_m, self.heading_rad, self.speed_mps, self.gyro_rps)
        return np.diag([one**2 for one in deviations])


class Ekf:
    """The state `x` (5) and its covariance `p` (5 x 5)."""

    def __init__(self, first: Measured, noise: Array, spread: Spread) -> None:
        """noise: covariance (5 x 5) of the first measurement."""
        self.spread = spread
        self.x: Array = np.array([*first, 0.0][:5])
        self.p: Array = noise.copy()
        if len(first) == 4:
            self.p[4, 4] = spread.yaw_rate_rps**2

    def predicted(self, dt: float, acceleration: float = 0.0) -> tuple[Array, Array]:
        """State and covariance `dt` seconds on (back, where negative); the filter itself stays where it is."""
        x, jacobian = step(self.x, dt, acceleration)
        return x, jacobian @ self.p @ jacobian.T + process_noise(float(self.x[2]), dt, self.spread)

    def move(self, dt: float, acceleration: float = 0.0) -> None:
        """Goes on by `dt` seconds."""
        self.x, self.p = self.predicted(dt, acceleration)

    def correct(self, measured: Measured, noise: Array) -> None:
        """Takes in a measurement of the filter's present and its covariance (5 x 5).

        A heading against the state's by over 90 degrees is the same motion told the other way round: it is turned, and
        its speed changes sign.
        """
        n = len(measured)
        innovation = np.array(measured) - self.x[:n]
        turn = wrap(float(innovation[2]))
        if abs(turn) > pi / 2:
            turn, innovation[3] = wrap(turn + pi), -measured[3] - self.x[3]
        innovation[2] = turn
        noise = noise[:n, :n]
        gain = np.linalg.solve(self.p[:n, :n] + noise, self.p[:n, :]).T
        self.x = self.x + gain @ innovation
        self.x[2] = wrap(float(self.x[2]))
        rest = IDENTITY.copy()
        rest[:, :n] -= gain
        self.p = rest @ self.p @ rest.T + gain @ noise @ gain.T  # Joseph's form: stays symmetric and positive

    def brought_on(
        self, measured: Measured, noise: Array, dt: float, acceleration: float = 0.0
    ) -> tuple[Measured, Array]:
        """A measurement from `dt` seconds before the filter's present, at its present, and its covariance (5 x 5).

        One without a yaw rate moves with the state's. What the two have in common by that is left out of account.
        """
        n = len(measured)
        noise = noise.copy()
        if n == 4:
            noise[4, 4] = self.p[4, 4]
        x, jacobian = step(np.array([*measured, self.x[4]][:5]), dt, acceleration)
        noise = jacobian @ noise @ jacobian.T + process_noise(measured[2], dt, self.spread)
        return tuple(x[:n].tolist()), noise


def step(x: Array, dt: float, acceleration: float = 0.0) -> tuple[Array, Array]:
    """The CTRV state after dt and its Jacobian (5 x 5), for any yaw rate. An acceleration (m/s2) stops a vehicle and
    does not make it reverse."""
    px, py, heading, speed, yaw_rate = x.tolist()
    if acceleration and (speed + acceleration * dt) * speed <= 0.0:
        acceleration = -speed / dt if dt else 0.0
    one, two, three, four = integrals(yaw_rate * dt)
    c, s = cos(heading), sin(heading)
    ux, uy = dt * (c * one - s * two), dt * (s * one + c * two)  # way per m/s of speed
    pushed = acceleration * dt * dt
    dx = speed * ux + pushed * (c * three - s * four)
    dy = speed * uy + pushed * (s * three + c * four)
    jacobian = IDENTITY.copy()
    jacobian[0, 2], jacobian[1, 2] = -dy, dx
    jacobian[0, 3], jacobian[1, 3] = ux, uy
    bend = speed * dt * dt
    jacobian[0, 4], jacobian[1, 4] = -bend * (c * four + s * three), bend * (c * three - s * four)
    if pushed:
        five, six = second_integrals(yaw_rate * dt)
        jacobian[0, 4] -= pushed * dt * (c * six + s * five)
        jacobian[1, 4] += pushed * dt * (c * five - s * six)
    jacobian[2, 4] = dt
    turned = wrap(heading + yaw_rate * dt)
    return np.array([px + dx, py + dy, turned, speed + acceleration * dt, yaw_rate]), jacobian


def process_noise(heading: float, dt: float, spread: Spread) -> Array:
    """Covariance (5 x 5) of what an unforeseen acceleration and yaw acceleration do in dt."""
    half = dt * dt / 2
    push = np.array([half * cos(heading), half * sin(heading), 0.0, dt, 0.0]) * spread.acceleration_mps2
    turn = np.array([0.0, 0.0, half, 0.0, dt]) * spread.yaw_acceleration_rps2
    return push[:, None] * push + turn[:, None] * turn


def larger_axis(p: Array) -> float:
    """Standard deviation of the position along the longer axis of its error ellipse, in metres."""
    a, b, c = float(p[0, 0]), float(p[1, 1]), float(p[0, 1])
    return sqrt(max(0.0, (a + b) / 2 + sqrt(((a - b) / 2) ** 2 + c * c)))
