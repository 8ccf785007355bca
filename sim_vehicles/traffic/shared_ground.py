"""What ground two vehicles share: where the box of the one as it stood at t overlaps that of the other at u."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.world.column_track import columns_of
from sim_vehicles.world.motion import MAX_GAP_S, Track

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_ENTRIES = 2_000_000  # of a table that is made at once


@dataclass(frozen=True)
class Course:
    """A vehicle's recorded motion: arrays of one length, the k-th entry at (first + k) * step_s."""

    id: str
    first: int
    half_length_m: float
    half_width_m: float
    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats
    way_m: Floats  # along its path since its first instant

    def __len__(self) -> int:
        return len(self.x_m)


class SharedGround(NamedTuple):
    """Instants, pair by pair and in order, at which two share ground: where the one was at its i-th instant, the other
    was at its j-th."""

    one: Indices
    other: Indices

    def swapped(self) -> SharedGround:
        """The same from the other's side."""
        order = np.lexsort((self.one, self.other))
        return SharedGround(self.other[order], self.one[order])


def sampled(track: Track, step_s: float) -> list[Course]:
    """The track on common instants; one course per stretch without a gap (usually one)."""
    states = columns_of(track)
    t_s, x_m, y_m = np.asarray(states.t_s), np.asarray(states.x_m), np.asarray(states.y_m)
    heading_rad, speed_mps = np.asarray(states.heading_rad), np.asarray(states.speed_mps)
    instants = np.arange(round(t_s[0] / step_s), round(t_s[-1] / step_s) + 1)
    at_s = np.clip(instants * step_s, t_s[0], t_s[-1])
    before = np.searchsorted(t_s, at_s, side="right") - 1
    ahead = np.minimum(before + 1, len(t_s) - 1)
    span_s = t_s[ahead] - t_s[before]
    between = (ahead > before) & (span_s <= MAX_GAP_S)
    share = np.divide(at_s - t_s[before], span_s, out=np.zeros(len(at_s)), where=between)
    x_m, y_m, speed_mps = (
        column[before] + share * (column[ahead] - column[before]) for column in (x_m, y_m, speed_mps)
    )
    turned = heading_rad[before] + share * wrapped(heading_rad[ahead] - heading_rad[before])
    heading_rad = np.where(between, wrapped(turned), heading_rad[before])
    there = np.flatnonzero(between | (t_s[before] == at_s))
    courses = []
    for ks in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
        x, y = x_m[ks], y_m[ks]
        way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
        half = track.length_m / 2, track.width_m / 2
        moved = (x, y, heading_rad[ks], np.abs(speed_mps[ks]), way)
        courses.append(Course(track.id, int(instants[ks[0]]), *half, *moved))
    return courses


def overlaps(one: Course, other: Course) -> SharedGround:
    """Where the boxes share more than a border."""
    reach = np.hypot(one.half_length_m, one.half_width_m) + np.hypot(other.half_length_m, other.half_width_m)
    if any(
        a.max() + reach < b.min() or b.max() + reach < a.min() for a, b in ((one.x_m, other.x_m), (one.y_m, other.y_m))
    ):
        return SharedGround(*np.zeros((2, 0), dtype=np.int64))
    found = [_overlapping(one, other, i, j, reach) for i, j in _close(one, other, reach)]
    i, j = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((j, i))
    return SharedGround(i[order], j[order])


def _close(one: Course, other: Course, reach: float) -> Iterator[tuple[Indices, Indices]]:
    """Instants of the one and the other at which their centres may be within reach: in cells of that size, the same or
    the next ones. Not too many at a time."""
    west, south = (min(a.min(), b.min()) for a, b in ((one.x_m, other.x_m), (one.y_m, other.y_m)))
    cell = reach * (1 + 1e-6)
    column, row = (
        [((axis - edge) // cell).astype(np.int64) + 1 for axis in both]
        for edge, both in ((west, (one.x_m, other.x_m)), (south, (one.y_m, other.y_m)))
    )
    rows = int(max(each.max() for each in row)) + 2
    key, other_key = (c * rows + r for c, r in zip(column, row, strict=True))
    order = np.argsort(other_key, kind="stable")
    in_order = other_key[order]
    column_of = np.concatenate([key + rows * step for step in (-1, 0, 1)])
    first = np.searchsorted(in_order, column_of - 1)
    last = np.searchsorted(in_order, column_of + 1, side="right")
    of, count = np.tile(np.arange(len(one)), 3), last - first
    some = np.flatnonzero(count)
    for part in np.split(some, np.flatnonzero(np.diff(np.cumsum(count[some]) // MOST_ENTRIES)) + 1):
        n = count[part]
        within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        yield np.repeat(of[part], n), order[np.repeat(first[part], n) + within]


def _overlapping(one: Course, other: Course, i: Indices, j: Indices, reach: float) -> tuple[Indices, Indices]:
    """Those of the pairs at which the boxes overlap: no axis of either separates them."""
    near_x, near_y = other.x_m[j] - one.x_m[i], other.y_m[j] - one.y_m[i]
    near = near_x * near_x + near_y * near_y < reach * reach
    i, j, near_x, near_y = i[near], j[near], near_x[near], near_y[near]
    turn = other.heading_rad[j] - one.heading_rad[i]
    c, s = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    hit = np.ones(len(i), dtype=np.bool_)
    for own, foreign, heading in ((one, other, one.heading_rad[i]), (other, one, other.heading_rad[j])):
        along = np.abs(near_x * np.cos(heading) + near_y * np.sin(heading))
        across = np.abs(near_y * np.cos(heading) - near_x * np.sin(heading))
        hit &= along < own.half_length_m + foreign.half_length_m * c + foreign.half_width_m * s
        hit &= across < own.half_width_m + foreign.half_length_m * s + foreign.half_width_m * c
    return i[hit], j[hit]


def ahead(ego: Course, other: Course, shared: SharedGround) -> Bools:
    """Of each pair of instants: is the other's centre ahead of the ego's, along the ego's heading?"""
    i, j = shared
    c, s = np.cos(ego.heading_rad)[i], np.sin(ego.heading_rad)[i]
    along = (other.x_m[j] - ego.x_m[i]) * c + (other.y_m[j] - ego.y_m[i]) * s
    return np.asarray(along > 0.0)


def wrapped(angle_rad: Floats) -> Floats:
    """The same angles in [-pi, pi)."""
    return np.asarray((angle_rad + pi) % (2 * pi) - pi)
