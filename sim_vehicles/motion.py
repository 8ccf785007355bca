"""Recorded motion: reading it, and the state of a vehicle at any instant.

The format is a CSV table, plain or gzip, with the columns of `COLUMNS` in any order (further ones are ignored):
seconds, metres, metres per second; heading in mathematical radians (0 east, counter-clockwise); (x, y) is the centre
of the vehicle's box. Rows may be ordered by time or by vehicle; within one vehicle time must grow.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import hypot, isfinite, pi
from pathlib import Path
from typing import NamedTuple

from sim_vehicles.errors import BadInputError

COLUMNS = ("t_s", "id", "type", "length_m", "width_m", "x_m", "y_m", "heading_rad", "speed_mps")
NUMBERS = tuple(name for name in COLUMNS if name not in ("id", "type"))
MAX_SPEED_MPS = 100.0  # nothing on a road is faster; 300 m/s is a wrong unit
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
    """All vehicles of one recording. `skipped` holds a sentence with file and line per row that was left out."""

    tracks: dict[str, Track]
    source: str
    skipped: list[str] = field(default_factory=list)

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
    """Reads a recording (`.csv`, or gzip whatever its name).

    A row that cannot be (a field that is no finite number, time that does not grow for its vehicle, over 100 m/s by its
    speed or by the distance from the record before, a vehicle of no size) raises BadInputError with its line; with
    `skip_bad_rows` it is left out and noted in `Motion.skipped`. A file that is no such table is always refused.
    """
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise BadInputError(f"{path}:1: the file is empty; the columns must be {','.join(COLUMNS)}")
    places = _header(path, first[1])
    motion = Motion({}, str(path))
    line = 1
    for line, cells in rows:
        if not cells:
            continue
        try:
            _add(motion.tracks, cells, places, len(first[1]))
        except ValueError as bad:
            said = f"{path}:{line}: {bad}"
            if not skip_bad_rows:
                raise BadInputError(f"{said}; mend the row, or pass --skip-bad-rows to leave such rows out") from None
            motion.skipped.append(said)
    if not motion.tracks:
        raise BadInputError(f"{path}:{line}: no usable row")
    return motion


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


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        for row in reader:
            yield reader.line_num, row
    except FileNotFoundError:
        raise BadInputError(f"{path}: there is no such file") from None
    except (OSError, EOFError, zlib.error) as broken:
        raise BadInputError(f"{path}: cannot be read: {broken}") from None
    except (UnicodeDecodeError, csv.Error) as broken:
        raise BadInputError(f"{path}: is not a CSV text: {broken}") from None


def _header(path: Path, names: list[str]) -> dict[str, int]:
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise BadInputError(f"{path}:1: column {missing[0]} is missing; the columns must be {','.join(COLUMNS)}")
    return {name: names.index(name) for name in COLUMNS}


def _add(tracks: dict[str, Track], cells: list[str], places: dict[str, int], width: int) -> None:
    if len(cells) != width:
        raise ValueError(f"{len(cells)} fields where the header has {width}")
    number = {name: _number(name, cells[places[name]]) for name in NUMBERS}
    name = cells[places["id"]].strip()
    if not name:
        raise ValueError("the id is empty")
    _check_limits(number)
    state = State(number["t_s"], number["x_m"], number["y_m"], wrap(number["heading_rad"]), number["speed_mps"])
    track = tracks.get(name)
    if track is None:
        track = Track(name, cells[places["type"]].strip(), number["length_m"], number["width_m"])
        tracks[name] = track
    else:
        _check_step(track, state)
    track.states.append(state)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, which is no number") from None
    if not isfinite(value):
        raise ValueError(f"{name} is {text.strip()}, which is not finite")
    return value


def _check_limits(number: dict[str, float]) -> None:
    if abs(number["speed_mps"]) > MAX_SPEED_MPS:
        raise ValueError(f"speed_mps is {number['speed_mps']:g}; over {MAX_SPEED_MPS:g} m/s is a wrong unit")
    for name in ("length_m", "width_m"):
        if not 0 < number[name] <= MAX_SIZE_M:
            raise ValueError(f"{name} is {number[name]:g}; it must be in (0, {MAX_SIZE_M:g}] metres")


def _check_step(track: Track, state: State) -> None:
    last = track.states[-1]
    span_s = state.t_s - last.t_s
    if span_s <= 0:
        raise ValueError(f"time does not grow for vehicle {track.id}: {state.t_s:g} s after {last.t_s:g} s")
    jump_m = hypot(state.x_m - last.x_m, state.y_m - last.y_m)
    if jump_m > MAX_SPEED_MPS * span_s and span_s <= MAX_GAP_S:
        raise ValueError(
            f"vehicle {track.id} jumps {jump_m:.0f} m in {span_s:g} s; that is a wrong unit or another vehicle"
        )
