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

from collections.abc import Iterator, Mapping
from math import cos, pi, radians, sin
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.markup import End, Start
from sim_vehicles.readers.rules import Bad, Row, gather, number
from sim_vehicles.readers.sizes import Kind, Sizes, read_types, routes_of
from sim_vehicles.readers.table import Line, check_width
from sim_vehicles.readers.units import MAX_HEADING_RAD
from sim_vehicles.world.motion import Motion, wrap

ROOT = "fcd-export"
NEEDED = ("id", "x", "y", "angle", "speed")
PREFIXES = ("timestep_vehicle_", "vehicle_", "timestep_")


class Fcd:
    """One file of floating-car data. `kinds`: the vehicle types; None: from the route file beside it, else assumed."""

    def __init__(self, path: Path, kinds: Mapping[str, Kind] | None = None) -> None:
        self._path = path
        self._routes = routes_of(path)
        if kinds is None:
            kinds = read_types(self._routes) if self._routes.is_file() else {}
        self._sizes = Sizes(kinds)
        self._others = 0

    def motion(self, rows: Iterator[Row | Bad], skip_bad_rows: bool) -> Motion:
        """The rows as tracks, what was assumed as notes. BadInputError as `gather`."""
        motion = gather(self._path, rows, skip_bad_rows)
        motion.notes.extend(self._sizes.notes(self._routes))
        if self._others:
            motion.notes.append(f"{self._others} records of persons or containers were not read: they are no vehicles")
        return motion

    def from_xml(self, found: Iterator[Start | End]) -> Iterator[Row | Bad]:
        """The vehicle elements of every timestep."""
        time = ""
        for event in found:
            if isinstance(event, End):
                time = "" if event.name == "timestep" else time
            elif event.name == "timestep":
                time = event.attributes.get("time", "")
            elif event.name == "vehicle":
                yield self._row(event.line, {**event.attributes, "time": time})
            elif event.name in ("person", "container"):
                self._others += 1

    def from_table(self, names: list[str], found: Iterator[Line]) -> Iterator[Row | Bad]:
        """The lines below the header `names`."""
        short = [_short(name) for name in names]
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
        for line, cells in found:
            try:
                check_width(cells, len(names))
            except ValueError as bad:
                yield Bad(line, str(bad))
                continue
            values = dict(zip(short, cells, strict=True))
            if _person(values):
                self._others += 1
            else:
                yield self._row(line, values)

    def _row(self, line: int, values: Mapping[str, str]) -> Row | Bad:
        try:
            missing = [name for name in ("time", *NEEDED) if not values.get(name)]
            if missing:
                raise ValueError(f"a vehicle without {missing[0]}")
            number_of = {name: number(name, values[name]) for name in ("time", "x", "y", "angle", "speed")}
            angle = number_of["angle"]
            if abs(angle) > 360:
                said = f"angle is {angle:g}; it must be degrees clockwise from north"
                return Bad(line, said, everywhere=abs(radians(angle)) > MAX_HEADING_RAD)
            kind = self._sizes.of(values.get("type", ""))
        except ValueError as bad:
            return Bad(line, str(bad))
        heading = wrap(pi / 2 - radians(angle))
        x = number_of["x"] - kind.length_m / 2 * cos(heading)
        y = number_of["y"] - kind.length_m / 2 * sin(heading)
        where = (x, y, heading, number_of["speed"])
        return Row(line, values["id"].strip(), kind.type, number_of["time"], kind.length_m, kind.width_m, *where)


def is_table(names: list[str]) -> bool:
    """Whether a table with this header is floating-car data."""
    return "timestep_time" in names or {"time", "id", "angle"} <= set(names)


def _short(name: str) -> str:
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _person(values: Mapping[str, str]) -> bool:
    """xml2csv gives persons columns of their own; SUMO the vehicles' columns, with an edge instead of a lane."""
    if not values.get("id"):
        return bool(values.get("person_id") or values.get("container_id"))
    return values.get("lane") == "" and values.get("edge", "") != ""
