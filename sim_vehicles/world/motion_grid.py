"""A recording's motion as arrays: the states of many vehicles at many instants in one call.

For recordings whose records lie on one grid of instants. A state is what `Track.at` gives.
"""

from __future__ import annotations

from functools import reduce
from math import gcd, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.world.motion import MAX_GAP_S, Motion, State, Track

LEAST_STEP_NS = 1_000_000
RECORDED = 4  # values of a state that are recorded; its rates follow from the next record

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class States(NamedTuple):
    """Of many vehicles: see `State`. NaN where one is not there."""

    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats
    yaw_rate_rps: Floats
    acceleration_mps2: Floats

    def at(self, index: Any) -> States:
        """Those that a numpy index picks."""
        return States(*(values[index] for values in self))

    def each(self, at_ns: Numbers) -> list[State]:
        """As objects, at these instants."""
        return [State(*one) for one in zip((at_ns / 1e9).tolist(), *(values.tolist() for values in self), strict=True)]


class MotionGrid:
    """The tracks of a recording in order of id: a vehicle's index counts from 0 in that order."""

    def __init__(self, motion: Motion) -> None:
        """ValueError if the records lie on no common grid of 1 ms to 1 s."""
        self.names = tuple(sorted(motion.tracks))
        tracks = [motion.tracks[name] for name in self.names]
        self.length_m = np.array([track.length_m for track in tracks])
        self.width_m = np.array([track.width_m for track in tracks])
        times = {_ns(state.t_s): state.t_s for track in tracks for state in track.states}
        self.start_ns, self.end_ns = min(times), max(times)
        self.step_ns = reduce(gcd, (t_ns - self.start_ns for t_ns in times), self.end_ns - self.start_ns)
        if not LEAST_STEP_NS <= self.step_ns <= MAX_GAP_S * 1e9:
            raise ValueError(f"the records of {motion.source} lie on no grid of instants that are 1 ms to 1 s apart")
        instants = range(self.start_ns, self.end_ns + 1, self.step_ns)
        self._t_s = np.array([times.get(t_ns, t_ns / 1e9) for t_ns in instants])
        self._values = np.full((RECORDED, len(instants), len(tracks)), np.nan)
        for i, track in enumerate(tracks):
            self._fill(i, track)

    def at(self, vehicle: Numbers, at_ns: Numbers) -> States:
        """States of vehicles (by index), each at its own instant."""
        row, ahead, share, span_s = self._between(at_ns)
        before, after = self._values[:, row, vehicle], self._values[:, ahead, vehicle]
        ways = after - before
        ways[2] = wrapped(ways[2])
        x_m, y_m, heading_rad, speed_mps = np.where(share == 0, before, before + share * ways)
        rates = np.where(np.isnan(ways[2:]) | (ahead == row), 0.0, ways[2:] / span_s)
        yaw_rate_rps, acceleration_mps2 = np.where(np.isnan(x_m), np.nan, rates)
        return States(x_m, y_m, wrapped(heading_rad), speed_mps, yaw_rate_rps, acceleration_mps2)

    def knots(self, begin_ns: int, until_ns: int) -> Numbers:
        """Begin, until, and every instant between at which motion changes: it is linear in between."""
        first = self.start_ns + -((self.start_ns - begin_ns) // self.step_ns) * self.step_ns
        return np.unique(np.array([begin_ns, *range(first, until_ns, self.step_ns), until_ns], dtype=np.int64))

    def _fill(self, i: int, track: Track) -> None:
        """A record that lacks on the grid is made up as `Track.at` does it, or not."""
        states = {_ns(state.t_s): state for state in track.states}
        first, last = _ns(track.states[0].t_s), _ns(track.states[-1].t_s)
        for t_ns in range(first, last + 1, self.step_ns):
            state = states.get(t_ns) or track.at(t_ns / 1e9)
            if state is not None:
                row = (t_ns - self.start_ns) // self.step_ns
                self._values[:, row, i] = (state.x_m, state.y_m, state.heading_rad, state.speed_mps)

    def _between(self, at_ns: Numbers) -> tuple[Numbers, Numbers, Floats, Floats]:
        """The records before and after each instant, the share of the way between (NaN outside the recording), and the
        time between (s)."""
        row = np.clip((at_ns - self.start_ns) // self.step_ns, 0, len(self._t_s) - 1)
        ahead = np.minimum(row + 1, len(self._t_s) - 1)
        span_s = np.where(ahead > row, self._t_s[ahead] - self._t_s[row], 1.0)
        share = (at_ns / 1e9 - self._t_s[row]) / span_s
        return row, ahead, np.where((at_ns < self.start_ns) | (at_ns > self.end_ns), np.nan, share), span_s


def wrapped(angle_rad: Floats) -> Floats:
    """As `motion.wrap`."""
    return (angle_rad + pi) % (2 * pi) - pi


def _ns(t_s: float) -> int:
    return round(t_s * 1e9)
