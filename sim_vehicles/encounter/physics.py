"""The law of braking: how a vehicle moves once its brake bites, the way that it needs, and how fast it hits.

From the instant at which the brake bites, its deceleration rises linearly from 0 to a [m/s2] within t_b [s] and then
stays. Integrated once and twice, a vehicle that had v [m/s] has after u [s] of the build-up

    speed v - a u^2 / (2 t_b),   way v u - a u^3 / (6 t_b),

so at its end the speed v - a t_b / 2 and the way v t_b - a t_b^2 / 6; with that speed squared / (2 a) for the rest, and
with the way v (L + t_act) before the brake bites (latency L [s] from the measurement to the warning; t_act [s] of
actuation, and a driver's reaction), it stands after

    D = v (L + t_act) + v t_b / 2 - a t_b^2 / 24 + v^2 / (2 a)   [m]   where v >= a t_b / 2.

A slower one stands during the build-up, where its speed is 0: u = sqrt(2 v t_b / a), and

    D = v (L + t_act) + 2/3 v sqrt(2 v t_b / a)                  [m]   where v < a t_b / 2.

At v = a t_b / 2 both are v (L + t_act) + a t_b^2 / 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, sin, sqrt

from sim_vehicles.encounter.brake import Brake

KMH = 3.6  # km/h in one m/s


@dataclass(frozen=True, slots=True)
class Moved:
    """way_m: since the brake bit; speed_mps: now."""

    way_m: float
    speed_mps: float


def stands_after_s(speed_mps: float, brake: Brake) -> float:
    """From when the brake bites until the vehicle stands, s."""
    a, t_b = brake.held_mps2, brake.build_up_s
    within_s = sqrt(2 * speed_mps * t_b / a)
    return within_s if within_s < t_b else t_b / 2 + speed_mps / a


def moved(speed_mps: float, brake: Brake, after_s: float) -> Moved:
    """The motion `after_s` after the brake bites, of a vehicle that had this speed; exact, and standing at its end."""
    a, t_b = brake.held_mps2, brake.build_up_s
    after_s = min(after_s, stands_after_s(speed_mps, brake))
    rising_s = min(after_s, t_b)
    rest_s = after_s - rising_s
    jerk = a / t_b if t_b else 0.0
    risen_mps = speed_mps - jerk * rising_s**2 / 2
    risen_m = speed_mps * rising_s - jerk * rising_s**3 / 6
    return Moved(risen_m + risen_mps * rest_s - a * rest_s**2 / 2, max(0.0, risen_mps - a * rest_s))


def needed_m(speed_mps: float, latency_s: float, brake: Brake) -> float:
    """D: the way to a standstill, metres, from the instant of the measurement that the warning stems from."""
    risen = moved(speed_mps, brake, brake.build_up_s)
    return speed_mps * (latency_s + brake.delay_s) + risen.way_m + risen.speed_mps**2 / (2 * brake.held_mps2)


def impact_mps(speed_mps: float, left_m: float, latency_s: float, brake: Brake) -> float:
    """Speed, m/s, at which an obstacle `left_m` ahead at the instant of the measurement is met: 0 where the vehicle
    stands before it, the full speed where the brake bites behind it.

    During the build-up the way s after the bite is passed at u = 2 r sin(asin(3 s / (2 v r)) / 3) with r = sqrt(2 v t_b
    / a): the cubic's first root.
    """
    a, t_b = brake.held_mps2, brake.build_up_s
    braking_m = left_m - speed_mps * (latency_s + brake.delay_s)
    if braking_m <= 0:
        return speed_mps
    risen = moved(speed_mps, brake, t_b)
    if braking_m >= risen.way_m:
        return sqrt(max(0.0, risen.speed_mps**2 - 2 * a * (braking_m - risen.way_m)))
    r = sqrt(2 * speed_mps * t_b / a)
    passed_s = 2 * r * sin(asin(min(1.0, 3 * braking_m / (2 * speed_mps * r))) / 3)
    return moved(speed_mps, brake, passed_s).speed_mps
