"""Length and width of SUMO's vehicles: floating-car data lacks them, the vehicle types of a route file have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.batches import number
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, Start


class Kind(NamedTuple):
    """A vehicle type: what it is called here ("car", "van", else SUMO's class), its length and width in metres."""

    type: str
    length_m: float
    width_m: float


CAR = Kind("car", 5.0, 1.8)
VAN = Kind("van", 6.5, 2.16)
# Defaults of SUMO's vehicle classes, as SUMO 1.28.0 itself says them (traci: vehicletype.getLength, getWidth).
CLASSES: dict[str, Kind] = {
    **dict.fromkeys(("passenger", "private", "evehicle", "taxi", "hov", "vip", "army", "authority", "custom1"), CAR),
    **dict.fromkeys(("delivery", "emergency"), VAN),
    "bus": Kind("bus", 12.0, 2.5),
    "coach": Kind("coach", 14.0, 2.6),
    "truck": Kind("truck", 7.1, 2.4),
    "trailer": Kind("trailer", 16.5, 2.55),
    "tram": Kind("tram", 22.0, 2.4),
    "motorcycle": Kind("motorcycle", 2.2, 0.9),
    "moped": Kind("moped", 2.1, 0.78),
    "bicycle": Kind("bicycle", 1.6, 0.65),
    "scooter": Kind("scooter", 1.2, 0.5),
}
TYPES = {"DEFAULT_VEHTYPE": "passenger", "DEFAULT_TAXITYPE": "taxi", "DEFAULT_BIKETYPE": "bicycle"}


class Sizes:
    """The kind of each vehicle type by id; remembers which ones it had to assume."""

    def __init__(self, known: Mapping[str, Kind]) -> None:
        self._known = known
        self._assumed: dict[str, Kind] = {}

    def of(self, type_id: str) -> Kind:
        """Of a type in the route file (`T@vehicle`, a vehicle's own copy of T, is T); else SUMO's default."""
        name = type_id.partition("@")[0]
        kind = self._known.get(name)
        if kind is None:
            kind = self._assumed[name] = CLASSES.get(TYPES.get(name, name), CAR)
        return kind

    def notes(self, routes: Path) -> list[str]:
        """One sentence per type whose size was assumed."""
        return [
            f"vehicle type {name or '(none)'}: its size is not in the recording; "
            f"taken {kind.length_m:g} x {kind.width_m:g} m, SUMO's default for a {kind.type}; "
            f"for the real size put the route file with its vType beside it as {routes.name}"
            for name, kind in sorted(self._assumed.items())
        ]


def routes_of(path: Path) -> Path:
    """The route file beside a recording: x.rou.xml for x.xml, x.fcd.xml, x.csv, each with or without .gz."""
    name = path.name
    for suffix in (".gz", ".xml", ".csv", ".fcd"):
        name = name.removesuffix(suffix)
    return path.with_name(f"{name}.rou.xml")


def read_types(path: Path) -> dict[str, Kind]:
    """The vehicle types (vType, also inside a vTypeDistribution) of a SUMO route or additional file, by id."""
    found: dict[str, Kind] = {}
    with opened(path) as stream:
        for event in Elements(path, stream):
            if not isinstance(event, Start) or event.name != "vType":
                continue
            given = event.attributes
            default = CLASSES.get(given.get("vClass", "passenger"), CAR)
            try:
                length_m = number("length", given.get("length", str(default.length_m)))
                width_m = number("width", given.get("width", str(default.width_m)))
            except ValueError as bad:
                raise bad_input(
                    "no_number",
                    f"vType {given.get('id', '')}: {bad}",
                    subject=given.get("id", ""),
                    file=path,
                    line=event.line,
                ) from None
            found[given.get("id", "")] = Kind(default.type, length_m, width_m)
    return found
