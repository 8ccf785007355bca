"""Which pairs of a recording the witness is asked about: those that came close, by their centres alone.

Wider than our truth, which asks for boxes that share ground at an angle: at any angle, and with more time between.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from infra.second_witness.pair_file import Driven, NearPair
from sim_vehicles.traffic.neighbours import Neighbourhood
from sim_vehicles.traffic.shared_ground import Course, sampled
from sim_vehicles.world.motion import Motion

STEP_S = 0.1
NEAR_M = 2.5  # between their centres; two lanes side by side are further apart
APART_S = 3.0  # between the one and the other there
AROUND_S = 8.0  # before and after they met, as far as a pair is handed over


def near_pairs(motion: Motion) -> list[NearPair]:
    """In order of ids; of two recorded at one time."""
    neighbourhood = Neighbourhood(motion)
    names = {
        (min(ego, other), max(ego, other))
        for ego in motion.tracks
        for other in neighbourhood.on_path(ego, APART_S, APART_S)
    }
    courses = {name: sampled(track, STEP_S) for name, track in motion.tracks.items()}
    return [
        pair
        for one, other in sorted(names)
        for pair in (_pair(a, b) for a, b in product(courses[one], courses[other]))
        if pair is not None
    ]


def _pair(one: Course, other: Course) -> NearPair | None:
    met = _met(one, other)
    if met is None:
        return None
    around = round(AROUND_S / STEP_S)
    first = max(one.first, other.first, met - around)
    if first + 1 >= min(one.first + len(one), other.first + len(other)):
        return None  # the one had gone before the other came, or is there for an instant
    return NearPair(first * STEP_S, STEP_S, _driven(one, first, met + around), _driven(other, first, met + around))


def _met(one: Course, other: Course) -> int | None:
    """The instant in the middle of where they were near with the least time between. None if they never were."""
    apart_m = np.hypot(one.x_m[:, None] - other.x_m, one.y_m[:, None] - other.y_m)
    at, other_at = one.first + np.arange(len(one)), other.first + np.arange(len(other))
    steps = np.where(apart_m <= NEAR_M, np.abs(at[:, None] - other_at), np.iinfo(np.int64).max)
    i, j = np.unravel_index(int(np.argmin(steps)), steps.shape)
    if steps[i, j] > round(APART_S / STEP_S):
        return None
    return int(at[i] + other_at[j]) // 2


def _driven(course: Course, first: int, last: int) -> Driven:
    of = slice(first - course.first, last - course.first + 1)
    size = 2 * course.half_length_m, 2 * course.half_width_m
    columns = (course.x_m, course.y_m, course.heading_rad, course.speed_mps)
    x_m, y_m, heading_rad, speed_mps = (column[of].tolist() for column in columns)
    return Driven(course.id, *size, x_m, y_m, heading_rad, speed_mps)


__all__ = ["near_pairs"]
