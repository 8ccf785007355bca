"""Recorded motion, and the state of a vehicle at any instant.

Seconds, metres, metres per second; heading in mathematical radians (0 east, counter-clockwise); (x, y) is the centre of
the vehicle's box.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import pi
from typing import NamedTuple

MAX_SPEED_MPS = 100.0  # nothing on a road is faster; 300 m/s is a wrong unit
MAX_TIME_S = 4e9  # seconds since 1970 are below, milliseconds above
MAX_SIZE_M = 60.0  # the longest road vehicles are just below
MAX_GAP_S = 1.0  # a vehicle that is away longer has vanished: no state is made up in between


class State(NamedTuple):
    """A vehicle at one instant. Centre in metres, radians, m/s, rad/s (yaw rate), m/s2 (along its heading)."""

    t_s: float
    x_m: float
    y_m: float
    heading_rad: float
    speed_mps: float
    yaw_rate_rps: float = 0.0
    acceleration_mps2: float = 0.0


@dataclass
class Track:
    """One vehicle's recorded states, in growing time."""

    id: str
    type: str
    length_m: float
    width_m: float
    states: list[State] = field(default_factory=list)

    def at(self, t_s: float) -> State | None:
        """The state at t_s: linear between two records (heading the short way round). None before the first and
        after the last record and inside a gap longer than `MAX_GAP_S`: motion is never extrapolated here."""
        after = bisect_right(self.states, t_s, key=lambda state: state.t_s)
        if after == 0:
            return None
        before = self.states[after - 1]
        if after == len(self.states):
            return before if before.t_s == t_s else None
        ahead = self.states[after]
        span_s = ahead.t_s - before.t_s
        if span_s > MAX_GAP_S:
            return before if before.t_s == t_s else None
        return _between(before, ahead, (t_s - before.t_s) / span_s, span_s)


@dataclass
class Motion:
    """All vehicles of one recording. `skipped` holds a sentence with file and line per row that was left out, `notes`
    one for everything that a reader had to assume."""

    tracks: dict[str, Track]
    source: str
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def start_s(self) -> float:
        return min(track.states[0].t_s for track in self.tracks.values())

    @property
    def end_s(self) -> float:
        return max(track.states[-1].t_s for track in self.tracks.values())

    def at(self, t_s: float) -> dict[str, State]:
        """Every vehicle that is there at t_s, in order of id."""
        states = ((name, self.tracks[name].at(t_s)) for name in sorted(self.tracks))
        return {name: state for name, state in states if state is not None}

    def with_track(self, track: Track) -> Motion:
        """The same recording with this motion of one of its vehicles."""
        return Motion({**self.tracks, track.id: track}, self.source, self.skipped)


def wrap(angle_rad: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle_rad + pi) % (2 * pi) - pi


def _between(a: State, b: State, share: float, span_s: float) -> State:
    turn = wrap(b.heading_rad - a.heading_rad)
    return State(
        a.t_s + share * span_s,
        a.x_m + share * (b.x_m - a.x_m),
        a.y_m + share * (b.y_m - a.y_m),
        wrap(a.heading_rad + share * turn),
        a.speed_mps + share * (b.speed_mps - a.speed_mps),
        turn / span_s,
        (b.speed_mps - a.speed_mps) / span_s,
    )
