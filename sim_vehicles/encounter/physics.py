"""Stopping distance and impact speed in closed form: what braking with constant deceleration can and cannot do.

Source: kinematics of constant deceleration. A vehicle at speed v that learns of a conflict with latency L, reacts after
tau and then brakes with a needs D = v (L + tau) + v^2 / (2 a) to stand.
"""

from __future__ import annotations

from math import sqrt

KMH = 3.6  # km/h in one m/s


def needed_m(speed_mps: float, latency_s: float, reaction_s: float, deceleration_mps2: float) -> float:
    """The way to a standstill, from the instant of the measurement that the warning stems from."""
    return speed_mps * (latency_s + reaction_s) + speed_mps**2 / (2 * deceleration_mps2)


def impact_mps(speed_mps: float, left_m: float, latency_s: float, reaction_s: float, deceleration_mps2: float) -> float:
    """Speed at which an obstacle `left_m` ahead at the instant of the measurement is met: 0 where the vehicle stands
    before it, the full speed where braking begins behind it."""
    square = speed_mps**2 - 2 * deceleration_mps2 * (left_m - speed_mps * (latency_s + reaction_s))
    return min(speed_mps, sqrt(max(0.0, square)))
