"""The lanes of SUMO's networks (.net.xml), with those inside junctions.

A lane has a shape in its driving direction. A connection leads from a lane of one edge to a lane of another, `via` a
lane of the junction, which has connections of its own. Lanes on which no motor vehicle may drive (`allow`, `disallow`),
crossings and walking areas are left out. A lane without a width has none here: what SUMO assumes is not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sim_vehicles.errors import bad_input
from sim_vehicles.maps.map_size import MapSize
from sim_vehicles.maps.pieces import Piece
from sim_vehicles.readers.batches import number
from sim_vehicles.readers.markup import End, Start
from sim_vehicles.world.geometry import Point

ROOT = "net"
NOT_DRIVEN = {"crossing", "walkingarea"}  # functions of edges
MOTORISED = frozenset({
    "passenger", "private", "taxi", "bus", "coach", "delivery", "truck", "trailer", "emergency", "authority", "army",
    "vip", "hov", "motorcycle", "moped", "evehicle", "custom1", "custom2",
})  # fmt: skip


def pieces(path: Path, found: Iterator[Start | End]) -> list[Piece]:
    """The lanes, in the order of the file; found: what comes after the root's start. BadInputError with the line."""
    size = MapSize(path)
    lanes: list[Piece] = []
    names: dict[tuple[str, str], str] = {}  # by edge and index
    connections: list[_Connection] = []
    edge = Start(0, "", {})
    for event in found:
        if isinstance(event, End):
            continue
        if event.name == "edge":
            edge = event
        elif event.name == "lane" and edge.attributes.get("function") not in NOT_DRIVEN:
            size.lane(event.line)
            lane = _lane(path, event, size)
            names[edge.attributes.get("id", ""), event.attributes.get("index", "")] = lane.name
            if _is_driven(event.attributes):
                lanes.append(lane)
        elif event.name == "connection":
            size.points(1, event.line)  # they are bounded together with the points
            connections.append(_connection(event.attributes))
    following = _following(connections, names)
    return [lane._replace(following=tuple(following.get(lane.name, ()))) for lane in lanes]


class _Connection(NamedTuple):
    """source, target: edge and index of a lane; via: the name of a lane, "" for none."""

    source: tuple[str, str]
    target: tuple[str, str]
    via: str


def _connection(given: Mapping[str, str]) -> _Connection:
    source, target = (given.get("from", ""), given.get("fromLane", "")), (given.get("to", ""), given.get("toLane", ""))
    return _Connection(source, target, given.get("via", ""))


def _following(connections: list[_Connection], names: Mapping[tuple[str, str], str]) -> dict[str, list[str]]:
    """By lane, what it leads into. A lane of a junction that has no connection of its own leads to where the one that
    goes by it does."""
    known = set(names.values())
    leads = {names[one.source] for one in connections if one.source in names}
    following: dict[str, list[str]] = {}
    for one in connections:
        source, target = names.get(one.source), names.get(one.target)
        if source is None or target is None:
            continue
        by_junction = one.via in known
        following.setdefault(source, []).append(one.via if by_junction else target)
        if by_junction and one.via not in leads:
            following.setdefault(one.via, []).append(target)
    return following


def _is_driven(given: Mapping[str, str]) -> bool:
    allowed, refused = given.get("allow", "").split(), given.get("disallow", "").split()
    if allowed and "all" not in allowed:
        return not MOTORISED.isdisjoint(allowed)
    return "all" not in refused and not MOTORISED.issubset(refused)


def _lane(path: Path, start: Start, size: MapSize) -> Piece:
    name = start.attributes.get("id", "")
    if not name or not start.attributes.get("shape"):
        raise bad_input("not_complete", "a lane lacks id or shape", file=path, line=start.line)
    try:
        texts = start.attributes["shape"].split()
        size.points(len(texts), start.line)
        points = [_point(text) for text in texts]
        width = start.attributes.get("width")
        return Piece(start.line, name, points, (), None if width is None else number("width", width))
    except ValueError as bad:
        raise bad_input("no_number", f"lane {name}: {bad}", subject=name, file=path, line=start.line) from None


def _point(text: str) -> Point:
    """x,y or x,y,z."""
    x, _, rest = text.partition(",")
    return number("x", x), number("y", rest.partition(",")[0])
