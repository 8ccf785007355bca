"""The way that a vehicle takes: its recorded positions as a line, and arc lengths along it in metres."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from math import cos, hypot, sin

from sim_vehicles.world.motion import Track, wrap

Pose = tuple[float, float, float]  # x, y in metres, heading in radians


class DrivenPath:
    """Arc lengths count from the first recorded state. Two tracks with the same first state on the same line have
    comparable arc lengths (a braked track and the recorded one)."""

    def __init__(self, track: Track) -> None:
        self._track = track
        steps = (hypot(b.x_m - a.x_m, b.y_m - a.y_m) for a, b in pairwise(track.states))
        self._s_m = list(accumulate(steps, initial=0.0))

    @property
    def length_m(self) -> float:
        """The length of the path, metres."""
        return self._s_m[-1]

    def way_m(self, t_s: float) -> float | None:
        """How far along the vehicle is at t_s; None where the track has no state (see `Track.at`)."""
        states = self._track.states
        if self._track.at(t_s) is None:
            return None
        after = bisect_right(states, t_s, key=lambda state: state.t_s)
        if after == len(states):
            return self._s_m[-1]
        before = states[after - 1]
        share = (t_s - before.t_s) / (states[after].t_s - before.t_s)
        return self._s_m[after - 1] + share * (self._s_m[after] - self._s_m[after - 1])

    def at(self, s_m: float) -> Pose:
        """Centre and heading `s_m` along; beyond the end straight on, before the start the start."""
        states, lengths = self._track.states, self._s_m
        after = bisect_right(lengths, s_m)
        if after == 0:
            return states[0].x_m, states[0].y_m, states[0].heading_rad
        a = states[after - 1]
        if after == len(lengths):
            beyond_m = s_m - lengths[-1]
            return a.x_m + beyond_m * cos(a.heading_rad), a.y_m + beyond_m * sin(a.heading_rad), a.heading_rad
        b = states[after]
        share = (s_m - lengths[after - 1]) / (lengths[after] - lengths[after - 1])
        turn = wrap(b.heading_rad - a.heading_rad)
        return a.x_m + share * (b.x_m - a.x_m), a.y_m + share * (b.y_m - a.y_m), wrap(a.heading_rad + share * turn)
