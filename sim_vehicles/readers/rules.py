"""Rules for recordings of every format: checks records a batch at a time and gathers tracks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.errors import bad_input
from sim_vehicles.readers import axes, units
from sim_vehicles.readers.batches import Bad, Batch, Floats, Row, wrapped
from sim_vehicles.readers.records import Indices, Records, driving
from sim_vehicles.world.column_track import ColumnTrack
from sim_vehicles.world.limits import MAX_PLACE_M, OffScaleError, check_jump, check_size, check_state
from sim_vehicles.world.motion import MAX_GAP_S, MAX_SIZE_M, MAX_SPEED_MPS, MAX_TIME_S, Motion, State, Track

MEND = "mend the row, or pass --skip-bad-rows to leave such rows out"
MAX_OFF_SCALE = 0.5  # of all rows may be out of the bounds of their unit; more is the unit's fault, not the rows'
ROUNDING = 1e-9  # by which columns and single rows may differ in what is a jump

Bools = NDArray[np.bool_]


class _Place(NamedTuple):
    """When and where a vehicle was last."""

    t_s: float
    x_m: float
    y_m: float


class _Vehicle(NamedTuple):
    """What its first record says that stays."""

    id: str
    type: str
    length_m: float
    width_m: float


class _Part(NamedTuple):
    """What was taken of one batch."""

    vehicle: Indices
    t_s: Floats
    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats


def gather(path: Path, batches: Iterable[Batch], skip_bad_rows: bool = False) -> Motion:
    """The tracks that the records make.

    A row that cannot be (`Bad`; a speed over 100 m/s; no size; a time or place out of all bounds; time that does not
    grow for its vehicle; a jump of more than 100 m/s from the record before) raises BadInputError with its line; with
    skip_bad_rows it is left out and noted in `Motion.skipped`. A vehicle may be away: after more than `MAX_GAP_S` it
    may come back anywhere.

    A fault of the whole file raises BadInputError in either case: see `units` and `axes`.
    """
    gathered = _Gathered(path, skip_bad_rows)
    for batch in batches:
        gathered.add(batch)
    return gathered.motion()


class _Gathered:
    """What has been taken so far. Vehicles are numbered by when they first come in the file, taken or not."""

    def __init__(self, path: Path, skip_bad_rows: bool) -> None:
        self._path = path
        self._skip = skip_bad_rows
        self._read, self._line = 0, 1
        self._numbers: dict[str, int] = {}
        self._vehicles: dict[int, _Vehicle] = {}  # by number, in the order in which they were first taken
        self._line_of: list[int] = []  # in that order
        self._last = np.empty((3, 0))  # a `_Place` of each vehicle; NaN: not taken yet
        self._parts: list[_Part] = []
        self._skipped: list[str] = []
        self._off_scale: list[tuple[int, str]] = []

    def add(self, batch: Batch) -> None:
        """Checks and takes one batch. A vehicle of which no record is wrong is checked in columns alone."""
        self._read, self._line = self._read + len(batch), batch.lines[-1]
        vehicle = self._numbered(batch)
        wrong = _off_limits(batch) | self._off_step(batch, vehicle)
        taken = np.ones(len(batch), dtype=np.bool_)
        if wrong.any():
            doubtful = np.zeros(len(self._numbers), dtype=np.bool_)
            doubtful[vehicle[wrong]] = True
            self._check_each(batch, vehicle, np.flatnonzero(doubtful[vehicle]), taken)
        self._take(batch, vehicle, np.flatnonzero(taken))

    def motion(self) -> Motion:
        """All that was taken, once it is sound as a whole."""
        if not self._vehicles:
            raise bad_input("no_usable_row", "no usable row", file=self._path, line=self._line)
        if len(self._off_scale) > MAX_OFF_SCALE * self._read:
            first, what = self._off_scale[0]
            raise bad_input(
                "wrong_unit",
                f"{what}; so it is in {len(self._off_scale)} of {self._read} rows: that is no bad row but a wrong unit",
                "convert the columns to seconds, metres and metres per second",
                file=self._path,
                line=first,
            )
        records = self._records()
        driven = driving(records)
        notes = [note for check in (units.check, axes.check) if (note := check(self._path, records, driven))]
        tracks: dict[str, Track] = {
            one.id: ColumnTrack(one.id, one.type, one.length_m, one.width_m, columns)
            for one, columns in zip(self._vehicles.values(), records.columns(), strict=True)
        }
        return Motion(tracks, str(self._path), self._skipped, notes)

    def _numbered(self, batch: Batch) -> Indices:
        numbers = self._numbers
        for name in dict.fromkeys(batch.ids):
            numbers.setdefault(name, len(numbers))
        self._last = np.pad(self._last, ((0, 0), (0, len(numbers) - self._last.shape[1])), constant_values=np.nan)
        return np.fromiter(map(numbers.__getitem__, batch.ids), np.int64, len(batch))

    def _off_step(self, batch: Batch, vehicle: Indices) -> Bools:
        """Where a record cannot follow the one before of its vehicle, if that one is taken."""
        order = np.argsort(vehicle, kind="stable")
        of = vehicle[order]
        now = np.stack([batch.t_s, batch.x_m, batch.y_m])[:, order]
        before = np.empty_like(now)
        before[:, 1:] = now[:, :-1]
        begins = np.diff(of, prepend=-1) != 0
        before[:, begins] = self._last[:, of[begins]]
        span_s, dx_m, dy_m = now - before
        jumps = np.hypot(dx_m, dy_m) > MAX_SPEED_MPS * span_s * (1 - ROUNDING)
        found = np.empty(len(batch), dtype=np.bool_)
        found[order] = (span_s <= 0) | (jumps & (span_s <= MAX_GAP_S))
        return found

    def _check_each(self, batch: Batch, vehicle: Indices, doubtful: Indices, taken: Bools) -> None:
        """The records at the indices `doubtful`, one by one in the order of the file; takes back what cannot be."""
        last: dict[int, _Place] = {}
        for k in doubtful.tolist():
            row, number = batch.row(k), int(vehicle[k])
            if found := _everywhere(row):
                text, _, mend = found.partition("; ")
                raise bad_input("wrong_unit", text, mend, file=self._path, line=row.line)
            before = last.get(number) or _Place(*self._last[:, number].tolist())
            try:
                last[number] = _checked(row, before)
            except ValueError as bad:
                if not self._skip:
                    raise bad_input("bad_row", str(bad), MEND, file=self._path, line=row.line) from None
                taken[k] = False
                self._skipped.append(f"{self._path}:{row.line}: {bad}")
                if isinstance(bad, OffScaleError):
                    self._off_scale.append((row.line, str(bad)))

    def _take(self, batch: Batch, vehicle: Indices, at: Indices) -> None:
        of, t_s, x_m, y_m = vehicle[at], batch.t_s[at], batch.x_m[at], batch.y_m[at]
        numbers, first = np.unique(of, return_index=True)
        new = np.isnan(self._last[0, numbers])
        for number, k in sorted(
            zip(numbers[new].tolist(), at[first[new]].tolist(), strict=True), key=lambda one: one[1]
        ):
            size = float(batch.length_m[k]), float(batch.width_m[k])
            self._vehicles[number] = _Vehicle(batch.ids[k], batch.types[k], *size)
            self._line_of.append(batch.lines[k])
        self._last[:, of] = t_s, x_m, y_m  # of several the last one
        self._parts.append(_Part(of, t_s, x_m, y_m, wrapped(batch.heading_rad[at]), batch.speed_mps[at]))

    def _records(self) -> Records:
        """The parts as one, by vehicle in the order in which they were first taken."""
        place = np.zeros(len(self._numbers), dtype=np.int64)
        place[list(self._vehicles)] = np.arange(len(self._vehicles))
        of, *columns = zip(*self._parts, strict=True)
        self._parts = []
        vehicle = place[np.concatenate(of)]
        order = np.argsort(vehicle, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(vehicle))])
        ids = [one.id for one in self._vehicles.values()]
        return Records(ids, first, self._line_of, *(np.concatenate(column)[order] for column in columns))


def _everywhere(row: Row | Bad) -> str | None:
    """What is wrong with the whole file, as this row shows."""
    if isinstance(row, Bad):
        return row.what if row.everywhere else None
    return units.no_heading("heading_rad", row.heading_rad)


def _off_limits(batch: Batch) -> Bools:
    """Where a record is wrong by itself; NaN is never within a limit."""
    limits = (
        (batch.t_s, MAX_TIME_S),
        (batch.x_m, MAX_PLACE_M),
        (batch.y_m, MAX_PLACE_M),
        (batch.speed_mps, MAX_SPEED_MPS),
        (batch.heading_rad, units.MAX_HEADING_RAD),
    )
    sound = np.fromiter(map(bool, batch.ids), np.bool_, len(batch))
    for values, most in limits:
        sound &= np.abs(values) <= most
    for size_m in (batch.length_m, batch.width_m):
        sound &= (size_m > 0) & (size_m <= MAX_SIZE_M)
    return ~sound


def _checked(row: Row | Bad, before: _Place) -> _Place:
    """Where the row's vehicle then is; `before`: where it was last, NaN if it is new. ValueError says what is wrong."""
    if isinstance(row, Bad):
        raise ValueError(row.what)
    if not row.id:
        raise ValueError("the id is empty")
    check_state(State(row.t_s, row.x_m, row.y_m, row.heading_rad, row.speed_mps))
    check_size(row.length_m, row.width_m)
    span_s = row.t_s - before.t_s
    if span_s <= 0:
        raise ValueError(f"time does not grow for vehicle {row.id}: {row.t_s:g} s after {before.t_s:g} s")
    check_jump(row.id, span_s, row.x_m - before.x_m, row.y_m - before.y_m)
    return _Place(row.t_s, row.x_m, row.y_m)
