"""Which part of recorded motion a road vehicle can have driven: where tracking slipped, a heading says nothing.

Trackers hand a label to another box, or a box jumps to the next lane: the recorded heading then swings by a right angle
and back within half a second. Tyres give about 1 g sideways; speed times yaw rate above `MOST_SIDEWAYS_MPS2` is no turn
of a car.
"""

from __future__ import annotations

import numpy as np

from sim_vehicles.traffic.shared_ground import Bools, Course, wrapped

MOST_SIDEWAYS_MPS2 = 12.0
UNSETTLED_S = 0.5  # before and after such a turn: between the swing and the way back the heading stands still


def drivable(course: Course, step_s: float) -> Bools:
    """Of each instant of the course, whether no such turn is within `UNSETTLED_S` of it."""
    fine = np.ones(len(course), dtype=np.bool_)
    yaw_rate = np.abs(wrapped(np.diff(course.heading_rad))) / step_s
    speed = (course.speed_mps[1:] + course.speed_mps[:-1]) / 2
    reach = round(UNSETTLED_S / step_s)
    for k in np.flatnonzero(yaw_rate * speed > MOST_SIDEWAYS_MPS2).tolist():
        fine[max(k - reach, 0) : k + 2 + reach] = False
    return fine
