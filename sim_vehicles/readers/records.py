"""All records of a recording, vehicle by vehicle, and the stretches that the vehicles drive."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.readers.batches import Floats
from sim_vehicles.world.column_track import StateColumns
from sim_vehicles.world.motion import MAX_GAP_S

WINDOW_S = 0.95
MIN_SPEED_MPS = 1.0  # by places or by speeds, in a stretch
MIN_WAY_M = 20.0  # of a vehicle, by its extent or by its speeds

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Columns with one entry per record, in the units of `State`: all of the first vehicle by time, then all of the
    second. `first`: of each vehicle the index of its first record, then the number of records. `line`: of each vehicle
    the line of its first record in the file."""

    ids: list[str]
    first: Indices
    line: list[int]
    t_s: Floats
    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats

    def columns(self) -> list[StateColumns]:
        """The states of each vehicle."""
        columns = (self.t_s, self.x_m, self.y_m, self.heading_rad, self.speed_mps)
        return [
            StateColumns(*(array("d", column[begin:end].tobytes()) for column in columns))
            for begin, end in pairwise(self.first.tolist())
        ]

    def vehicle(self) -> Indices:
        """Of each record."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.first))

    def step_s(self) -> Floats:
        """Of each vehicle the median time between its records; NaN where it has one record."""
        vehicle = self.vehicle()
        within = vehicle[1:] == vehicle[:-1]
        return medians(np.diff(self.t_s)[within], vehicle[1:][within], len(self.ids))

    def extent_m(self) -> Floats:
        """Of each vehicle the diagonal of the box around all its places."""
        begins = self.first[:-1]
        across = [
            np.maximum.reduceat(axis, begins) - np.minimum.reduceat(axis, begins) for axis in (self.x_m, self.y_m)
        ]
        return np.asarray(np.hypot(*across))


@dataclass(frozen=True)
class Driving:
    """Stretches of `WINDOW_S` or the next longer time in which a vehicle moves, one after the other, without the gaps
    in which it was away. One entry per stretch: its vehicle, the indices of its first and last record, metres between
    these, metres by the sizes of the speeds, and by the speeds with their signs.

    `movers`: the vehicles that drive `MIN_WAY_M`, in growing order; what hardly moves is in no stretch. `step_s`: of
    every vehicle the median time between its records, NaN where it has one.
    """

    vehicle: Indices
    begin: Indices
    end: Indices
    way_m: Floats
    said_m: Floats
    signed_m: Floats
    movers: Indices
    step_s: Floats


def driving(records: Records) -> Driving:
    """What the vehicles drive."""
    vehicle, t_s, v_mps = records.vehicle(), records.t_s, records.speed_mps
    median_s = records.step_s()
    longest_s = np.fmax(MAX_GAP_S, 2 * median_s)
    step_s = np.diff(t_s)
    begin, end = _windows(t_s, (vehicle[1:] != vehicle[:-1]) | (step_s > longest_s[vehicle[1:]]))
    way_m = np.hypot(records.x_m[end] - records.x_m[begin], records.y_m[end] - records.y_m[begin])
    said_m = _sums((np.abs(v_mps[:-1]) + np.abs(v_mps[1:])) / 2 * step_s, begin, end)
    signed_m = _sums((v_mps[:-1] + v_mps[1:]) / 2 * step_s, begin, end)
    of = vehicle[begin]
    moves = np.maximum(way_m, said_m) >= MIN_SPEED_MPS * (t_s[end] - t_s[begin])
    n = len(records.ids)
    far_m = np.maximum(records.extent_m(), np.bincount(of[moves], said_m[moves], minlength=n))
    is_mover = (np.bincount(of[moves], minlength=n) > 0) & (far_m >= MIN_WAY_M)
    at = moves & is_mover[of]
    return Driving(
        vehicle=of[at],
        begin=begin[at],
        end=end[at],
        way_m=way_m[at],
        said_m=said_m[at],
        signed_m=signed_m[at],
        movers=np.flatnonzero(is_mover),
        step_s=median_s,
    )


def medians(values: Floats, group: Indices, groups: int) -> Floats:
    """Of the values of each group; NaN where it has none."""
    in_order = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=groups)
    begin = np.cumsum(count) - count
    some = count > 0
    found = np.full(groups, np.nan)
    low, high = ((begin + middle)[some] for middle in ((count - 1) // 2, count // 2))
    found[some] = (in_order[low] + in_order[high]) / 2
    return found


def _windows(t_s: Floats, apart: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """First and last record of each stretch: one begins where one ends, or at the first record after a gap. apart: of
    each record but the last one, whether there is a gap after it."""
    n = len(t_s)
    run = np.concatenate([[0], np.cumsum(apart)])
    ends = np.append(np.flatnonzero(apart) + 1, n)[run]  # of the run of each record
    follower = _first_after(t_s, run, ends).tolist()
    run_ends = ends.tolist()
    begins, lasts, k = [], [], 0
    while k < n:
        if follower[k] < run_ends[k]:
            begins.append(k)
            lasts.append(follower[k])
        k = follower[k]
    return np.array(begins, dtype=np.int64), np.array(lasts, dtype=np.int64)


def _first_after(t_s: Floats, run: Indices, ends: Indices) -> Indices:
    """Of each record the first one of its run that is `WINDOW_S` later; the end of the run where there is none."""
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    since_s = t_s - t_s[begins][run]
    lasts_s = since_s[np.append(begins[1:], len(t_s)) - 1] + 2 * WINDOW_S
    line_s = since_s + (np.cumsum(lasts_s) - lasts_s)[run]  # the runs one after the other, further apart than a window
    found = np.searchsorted(line_s, line_s + WINDOW_S).clip(np.arange(1, len(t_s) + 1), ends)
    while True:  # sums are rounded: differences decide
        early = found < ends
        early[early] = t_s[found[early]] - t_s[np.flatnonzero(early)] < WINDOW_S
        late = ~early & (t_s[found - 1] - t_s >= WINDOW_S)
        if not (early.any() or late.any()):
            return np.asarray(found)
        found = found + early - late


def _sums(parts: Floats, begin: Indices, end: Indices) -> Floats:
    """Of the parts from `begin` up to before `end`, of each stretch; none overlaps another."""
    if not len(begin):
        return np.zeros(0)
    return np.add.reduceat(np.append(parts, 0.0), np.stack([begin, end], axis=1).ravel())[::2]
