"""SUMO's floating-car data (`--fcd-output`), as XML or as a table, as rows.

What SUMO writes: seconds; x and y of the middle of the front bumper, metres; compass degrees (0 north, clockwise); m/s;
the id of the vehicle type, but no size (none of --fcd-output.attributes in SUMO 1.28 is one). Ours is the centre of the
box and mathematical radians:

    heading = pi / 2 - angle,   centre = front - length / 2 (cos heading, sin heading)

Tables: written by SUMO itself (--fcd-output x.csv, since 1.24; --output.column-header auto, tag, full, plain) or by its
xml2csv.py: other orders of the same columns, separated by semicolons unless told otherwise.
Persons and containers are no vehicles: they are counted, not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import cos, nan, pi, radians, sin
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.batches import Bad, Batch, cut, number, numbers, wrapped
from sim_vehicles.readers.markup import Elements, End, Start
from sim_vehicles.readers.rules import gather
from sim_vehicles.readers.sizes import CAR, Kind, Sizes, read_types, routes_of
from sim_vehicles.readers.table import Block, Table
from sim_vehicles.readers.units import MAX_HEADING_RAD
from sim_vehicles.world.motion import Motion

ROOT = "fcd-export"
NEEDED = ("id", "x", "y", "angle", "speed")
PREFIXES = ("timestep_vehicle_", "vehicle_", "timestep_")
NUMBERS = ("time", "x", "y", "angle", "speed")
MAX_ANGLE_DEG = 360.0


class Vehicle(NamedTuple):
    """One vehicle at one instant: its line, its time, its other values by name."""

    line: int
    time: str
    values: Mapping[str, str]


class Fcd:
    """One file of floating-car data. `kinds`: the vehicle types; None: from the route file beside it, else assumed."""

    def __init__(self, path: Path, kinds: Mapping[str, Kind] | None = None) -> None:
        self._path = path
        self._routes = routes_of(path)
        if kinds is None:
            kinds = read_types(self._routes) if self._routes.is_file() else {}
        self._sizes = Sizes(kinds)
        self._others = 0

    def motion(self, batches: Iterable[Batch], skip_bad_rows: bool) -> Motion:
        """The records as tracks, what was assumed as notes. BadInputError as `gather`."""
        motion = gather(self._path, batches, skip_bad_rows)
        motion.notes.extend(self._sizes.notes(self._routes))
        if self._others:
            motion.notes.append(f"{self._others} records of persons or containers were not read: they are no vehicles")
        return motion

    def from_xml(self, found: Elements) -> Iterator[Batch]:
        """The vehicle elements of every timestep."""
        found.end_only("timestep")
        for some in cut(self._vehicles(found)):
            texts = {name: [one.values.get(name, "") for one in some] for name in (*NEEDED, "type")}
            texts["time"] = [one.time for one in some]
            yield self._batch([one.line for one in some], texts, {})

    def from_table(self, found: Table) -> Iterator[Batch]:
        """The lines of a table."""
        short = [_short(name) for name in found.names]
        missing = [name for name in NEEDED if name not in short]
        if missing:
            raise bad_input(
                "missing_column",
                f"column vehicle_{missing[0]} is missing",
                "record at least --fcd-output.attributes x,y,angle,speed,type",
                subject=f"vehicle_{missing[0]}",
                file=self._path,
                line=1,
            )
        for whole in found.blocks():
            persons = _persons(short, whole)
            self._others += len(persons)
            block = whole.without(persons) if persons else whole
            if block.lines:
                texts = dict(zip(short, block.columns, strict=True))
                yield self._batch(block.lines, {"type": [""] * len(block.lines), **texts}, block.bad)

    def _vehicles(self, found: Iterable[Start | End]) -> Iterator[Vehicle]:
        time = ""
        for event in found:
            if isinstance(event, End):
                time = "" if event.name == "timestep" else time
            elif event.name == "timestep":
                time = event.attributes.get("time", "")
            elif event.name == "vehicle":
                yield Vehicle(event.line, time, event.attributes)
            elif event.name in ("person", "container"):
                self._others += 1

    def _batch(self, lines: Sequence[int], texts: Mapping[str, Sequence[str]], known_bad: Mapping[int, Bad]) -> Batch:
        """known_bad: by index what is known to be no record."""
        bad = dict(known_bad)
        values = {name: numbers(texts[name]) for name in NUMBERS}
        sound = np.isfinite(list(values.values())).all(axis=0) & (np.abs(values["angle"]) <= MAX_ANGLE_DEG)
        sound &= np.fromiter(map(bool, texts["id"]), np.bool_, len(lines))
        for k in np.flatnonzero(~sound).tolist():
            bad.setdefault(k, _fault(lines[k], {name: column[k] for name, column in texts.items()}))
        time_s, front_x_m, front_y_m, angle_deg, speed_mps = (np.where(sound, values[name], nan) for name in NUMBERS)
        types = texts["type"]
        kinds = {name: self._sizes.of(name) for name in dict.fromkeys(_without(types, bad))}
        for k in bad:
            kinds.setdefault(types[k], CAR)
        length_of = {name: kind.length_m for name, kind in kinds.items()}
        width_of = {name: kind.width_m for name, kind in kinds.items()}
        length_m, width_m = (
            np.fromiter(map(of.__getitem__, types), np.float64, len(lines)) for of in (length_of, width_of)
        )
        heading_rad = wrapped(pi / 2 - np.radians(angle_deg))
        # Python's own cosine: that of numpy differs from it in the last bit on some machines
        cosine, sine = (np.fromiter(map(of, heading_rad.tolist()), np.float64, len(lines)) for of in (cos, sin))
        x_m, y_m = front_x_m - length_m / 2 * cosine, front_y_m - length_m / 2 * sine
        ids = ["" if k in bad else name.strip() for k, name in enumerate(texts["id"])]
        columns = (time_s, length_m, width_m, x_m, y_m, heading_rad, speed_mps)
        return Batch(lines, ids, [kinds[name].type for name in types], bad, *columns)


def is_table(names: list[str]) -> bool:
    """Whether a table with this header is floating-car data."""
    return "timestep_time" in names or {"time", "id", "angle"} <= set(names)


def _short(name: str) -> str:
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _without(values: Sequence[str], dropped: Collection[int]) -> Iterable[str]:
    return (value for k, value in enumerate(values) if k not in dropped) if dropped else values


def _fault(line: int, values: Mapping[str, str]) -> Bad:
    """Why a vehicle's values are no record."""
    try:
        missing = [name for name in ("time", *NEEDED) if not values.get(name)]
        if missing:
            raise ValueError(f"a vehicle without {missing[0]}")
        angle = {name: number(name, values[name]) for name in NUMBERS}["angle"]
    except ValueError as bad:
        return Bad(line, str(bad))
    said = f"angle is {angle:g}; it must be degrees clockwise from north"
    return Bad(line, said, everywhere=abs(radians(angle)) > MAX_HEADING_RAD)


def _persons(names: list[str], block: Block) -> set[int]:
    """Indices of the lines that are of persons or containers. xml2csv gives them columns of their own; SUMO the
    vehicles' columns, with an edge instead of a lane."""
    texts = dict(zip(names, block.columns, strict=True))
    nothing = [""] * len(block.lines)
    others = [texts.get(name, nothing) for name in ("person_id", "container_id")]
    lanes, edges = texts.get("lane"), texts.get("edge", nothing)
    found = {k for k, name in enumerate(texts["id"]) if not name and any(column[k] for column in others)}
    if lanes is not None:
        found |= {k for k, lane in enumerate(lanes) if lane == "" and edges[k] != "" and texts["id"][k]}
    return found - block.bad.keys()
