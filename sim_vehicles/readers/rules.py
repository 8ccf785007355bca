"""Rules for recordings of every format: checks one record at a time and gathers tracks."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, isfinite
from pathlib import Path
from typing import NamedTuple

from sim_vehicles.errors import bad_input
from sim_vehicles.readers import units
from sim_vehicles.world.motion import MAX_GAP_S, MAX_SIZE_M, MAX_SPEED_MPS, MAX_TIME_S, Motion, State, Track, wrap

MAX_PLACE_M = 6e6  # from the plane's origin: farther off there is no latitude (UTM's northing passes up to 54 degrees)
MEND = "mend the row, or pass --skip-bad-rows to leave such rows out"
MAX_OFF_SCALE = 0.5  # of all rows may be out of the bounds of their unit; more is the unit's fault, not the rows'


class Row(NamedTuple):
    """One record of one vehicle and its line in the file; (x, y) is the centre of its box, radians as in `State`."""

    line: int
    id: str
    type: str
    t_s: float
    length_m: float
    width_m: float
    x_m: float
    y_m: float
    heading_rad: float
    speed_mps: float


class Bad(NamedTuple):
    """A record that a reader could not make a row of, and why. `everywhere`: a fault of the whole file, which leaving
    the row out would only hide."""

    line: int
    what: str
    everywhere: bool = False


class _OffScaleError(ValueError):
    """A value out of all bounds of its unit."""


def gather(path: Path, rows: Iterable[Row | Bad], skip_bad_rows: bool = False) -> Motion:
    """The tracks that the rows make.

    A row that cannot be (`Bad`; a speed over 100 m/s; no size; a time or place out of all bounds; time that does not
    grow for its vehicle; a jump of more than 100 m/s from the record before) raises BadInputError with its line; with
    skip_bad_rows it is left out and noted in `Motion.skipped`. A vehicle may be away: after more than `MAX_GAP_S` it
    may come back anywhere.

    A fault of the whole file raises BadInputError in either case: see `units`.
    """
    motion = Motion({}, str(path))
    line, read, first_of = 1, 0, dict[str, int]()
    off_scale: list[tuple[int, str]] = []
    for row in rows:
        line, read = row.line, read + 1
        if found := _everywhere(row):
            text, _, mend = found.partition("; ")
            raise bad_input("wrong_unit", text, mend, file=path, line=line)
        try:
            _add(motion.tracks, row)
        except ValueError as bad:
            if not skip_bad_rows:
                raise bad_input("bad_row", str(bad), MEND, file=path, line=line) from None
            motion.skipped.append(f"{path}:{line}: {bad}")
            if isinstance(bad, _OffScaleError):
                off_scale.append((line, str(bad)))
        else:
            assert isinstance(row, Row)
            first_of.setdefault(row.id, line)
    if not motion.tracks:
        raise bad_input("no_usable_row", "no usable row", file=path, line=line)
    if len(off_scale) > MAX_OFF_SCALE * read:
        first, what = off_scale[0]
        raise bad_input(
            "wrong_unit",
            f"{what}; so it is in {len(off_scale)} of {read} rows: that is no bad row but a wrong unit",
            "convert the columns to seconds, metres and metres per second",
            file=path,
            line=first,
        )
    units.check(path, motion, first_of)
    return motion


def number(name: str, text: str) -> float:
    """The number that `text` says; ValueError with its name where it is none, or not finite."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, which is no number") from None
    if not isfinite(value):
        raise ValueError(f"{name} is {text.strip()}, which is not finite")
    return value


def _everywhere(row: Row | Bad) -> str | None:
    """What is wrong with the whole file, as this row shows."""
    if isinstance(row, Bad):
        return row.what if row.everywhere else None
    return units.no_heading("heading_rad", row.heading_rad)


def _add(tracks: dict[str, Track], row: Row | Bad) -> None:
    if isinstance(row, Bad):
        raise ValueError(row.what)
    if not row.id:
        raise ValueError("the id is empty")
    _check_limits(row)
    state = State(row.t_s, row.x_m, row.y_m, wrap(row.heading_rad), row.speed_mps)
    track = tracks.get(row.id)
    if track is None:
        track = tracks[row.id] = Track(row.id, row.type, row.length_m, row.width_m)
    else:
        _check_step(track, state)
    track.states.append(state)


def _check_limits(row: Row) -> None:
    if abs(row.t_s) > MAX_TIME_S:
        raise _OffScaleError(f"t_s is {row.t_s:g}; over {MAX_TIME_S:g} s is a wrong unit")
    for name, value in (("x_m", row.x_m), ("y_m", row.y_m)):
        if abs(value) > MAX_PLACE_M:
            raise _OffScaleError(f"{name} is {value:g}; over {MAX_PLACE_M:g} m from the origin, which must be nearer")
    if abs(row.speed_mps) > MAX_SPEED_MPS:
        raise _OffScaleError(f"speed_mps is {row.speed_mps:g}; over {MAX_SPEED_MPS:g} m/s is a wrong unit")
    for name, value in (("length_m", row.length_m), ("width_m", row.width_m)):
        if not 0 < value <= MAX_SIZE_M:
            raise ValueError(f"{name} is {value:g}; it must be in (0, {MAX_SIZE_M:g}] metres")


def _check_step(track: Track, state: State) -> None:
    last = track.states[-1]
    span_s = state.t_s - last.t_s
    if span_s <= 0:
        raise ValueError(f"time does not grow for vehicle {track.id}: {state.t_s:g} s after {last.t_s:g} s")
    jump_m = hypot(state.x_m - last.x_m, state.y_m - last.y_m)
    if jump_m > MAX_SPEED_MPS * span_s and span_s <= MAX_GAP_S:
        raise _OffScaleError(
            f"vehicle {track.id} jumps {jump_m:.0f} m in {span_s:g} s; that is a wrong unit or another vehicle"
        )
