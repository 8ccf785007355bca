"""Which part of recorded motion a road vehicle can have driven: where tracking slipped, a heading says nothing.

Trackers hand a label to another box, or a box jumps to the next lane: the recorded heading then swings away and back
within a second. Tyres give about 1 g sideways; speed times yaw rate above `MOST_SIDEWAYS_MPS2` is no turn of a car. One
such swing alone may be a car that spins after a blow, so it takes the way back as well.
"""

from __future__ import annotations

import numpy as np

from sim_vehicles.traffic.shared_ground import Bools, Course, wrapped

MOST_SIDEWAYS_MPS2 = 12.0
OVER_S = 0.3  # a yaw rate is measured over that: noise of single headings is none
BACK_S = 1.0  # from the swing to the way back
UNSETTLED_S = 0.1  # before the swing and after the way back


def drivable(course: Course, step_s: float) -> Bools:
    """Of each instant of the course, whether it is outside all swings away and back."""
    n = len(course)
    fine = np.ones(n, dtype=np.bool_)
    half = max(1, round(OVER_S / step_s / 2))
    if n <= 2 * half:
        return fine
    heading = np.cumsum(np.concatenate(([0.0], wrapped(np.diff(course.heading_rad)))))
    yaw_rate = (heading[2 * half :] - heading[: -2 * half]) / (2 * half * step_s)
    sideways = yaw_rate * course.speed_mps[half:-half]
    fast = np.flatnonzero(np.abs(sideways) > MOST_SIDEWAYS_MPS2)
    reach, most = round(UNSETTLED_S / step_s), round(BACK_S / step_s)
    for at, then in zip(fast[:-1].tolist(), fast[1:].tolist(), strict=True):
        if sideways[at] * sideways[then] < 0.0 and then - at <= most:
            first, last = _run(fast, at)[0], _run(fast, then)[1]
            fine[max(first + half - reach, 0) : last + half + reach + 1] = False
    return fine


def _run(fast: np.ndarray[tuple[int], np.dtype[np.intp]], at: int) -> tuple[int, int]:
    """First and last of the instants in a row around that one."""
    place = int(np.searchsorted(fast, at))
    first = last = place
    while first > 0 and fast[first - 1] == fast[first] - 1:
        first -= 1
    while last + 1 < len(fast) and fast[last + 1] == fast[last] + 1:
        last += 1
    return int(fast[first]), int(fast[last])
