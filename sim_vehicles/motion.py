"""Recorded motion: reading it, and the state of a vehicle at any instant.

Our own format is a CSV table, plain or gzip, with the columns of `COLUMNS` in any order (further ones are ignored):
seconds, metres, metres per second; heading in mathematical radians (0 east, counter-clockwise); (x, y) is the centre
of the vehicle's box. Rows may be ordered by time or by vehicle; within one vehicle time must grow.
"""

from __future__ import annotations

import csv
import gzip
import io
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import pi
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("t_s", "id", "type", "length_m", "width_m", "x_m", "y_m", "heading_rad", "speed_mps")
NUMBERS = tuple(name for name in COLUMNS if name not in ("id", "type"))
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


def read_motion(path: Path, skip_bad_rows: bool = False) -> Motion:
    """Reads a recording, its format told by its content: our CSV, SUMO's floating-car data (XML or CSV), a CommonRoad
    scenario (XML); each plain or gzip. See `sim_vehicles.readers`.

    A row that cannot be (a field that is no finite number, time that does not grow for its vehicle, over 100 m/s by its
    speed or by the distance from the record before, a vehicle of no size) raises BadInputError with its line; with
    `skip_bad_rows` it is left out and noted in `Motion.skipped`. A file that is none of these is always refused.
    MissingToolError where a format needs a package that is not installed.
    """
    from sim_vehicles.readers.formats import read  # they make tracks, so they import this module

    return read(path, skip_bad_rows)


def write_motion(path: Path, rows: Iterable[tuple[str, Track, State]]) -> None:
    """Writes (t as printed, track, state) rows as a gzip CSV; its bytes depend on the rows alone (no time, no name)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for t_s, track, state in rows:
        numbers = (f"{state.x_m:.3f}", f"{state.y_m:.3f}", f"{state.heading_rad:.4f}", f"{state.speed_mps:.3f}")
        writer.writerow((t_s, track.id, track.type, f"{track.length_m:g}", f"{track.width_m:g}", *numbers))
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


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
