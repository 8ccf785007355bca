"""The lanelets of Lanelet2 maps (.osm), as INTERACTION publishes them.

A lanelet is a relation of a left and a right way. Ways run either way, so both are turned such that the left one is on
the left. The lanelets that begin at the two points where one ends follow it. Places are the tags local_x and local_y of
the nodes where a map has them, else UTM relative to an origin, in the zone of that origin, as Lanelet2's UtmProjector
has it. INTERACTION's maps and tracks have the origin 0, 0.

Who may drive: the tags `participant:...` of a lanelet, else its subtype. `one_way: no` makes a second lane of the other
direction, NAME:back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.maps.bounds import middle
from sim_vehicles.maps.map_size import MapSize
from sim_vehicles.maps.pieces import Piece
from sim_vehicles.maps.utm import Geodetic, utm, zone_of
from sim_vehicles.readers.batches import number
from sim_vehicles.readers.markup import End, Start
from sim_vehicles.world.geometry import Point

ROOT = "osm"
DRIVEN = {"road", "highway", "play_street", "bus_lane"}  # subtypes
VEHICLE = "participant:vehicle"  # also of its kinds, as in participant:vehicle:bus
LOCAL = ("local_x", "local_y")
INTERACTION = Geodetic(0.0, 0.0)


def pieces(path: Path, found: Iterator[Start | End], origin: Geodetic = INTERACTION) -> Iterator[Piece]:
    """The lanelets, in the order of the file; found: what comes after the root's start. BadInputError with the line."""
    primitives = _Primitives(path, found)
    lanelets = [
        lanelet for each in primitives.lanelets if _is_driven(each) for lanelet in _both_ways(primitives, each, origin)
    ]
    beginning: dict[tuple[str, str], list[str]] = {}
    for each in lanelets:
        beginning.setdefault((each.left.nodes[0], each.right.nodes[0]), []).append(each.name)
    for each in lanelets:
        yield each.piece(beginning.get((each.left.nodes[-1], each.right.nodes[-1]), ()))


@dataclass(frozen=True)
class _Primitive:
    """A node, a way or a relation, with its tags. nodes: of a way; ways: of a relation, by role."""

    start: Start
    tags: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    ways: dict[str, list[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.start.attributes.get("id", "")


@dataclass(frozen=True)
class _Bound:
    """A way as it runs: the ids of its nodes and their places."""

    nodes: tuple[str, ...]
    points: tuple[Point, ...]

    def turned(self) -> _Bound:
        return _Bound(self.nodes[::-1], self.points[::-1])


@dataclass(frozen=True)
class _Lanelet:
    """Two bounds in the driving direction, the left one on the left."""

    line: int
    name: str
    left: _Bound
    right: _Bound

    def piece(self, following: Sequence[str]) -> Piece:
        points, width_m = middle(self.left.points, self.right.points)
        return Piece(self.line, self.name, points, tuple(following), width_m)

    def back(self) -> _Lanelet:
        return _Lanelet(self.line, f"{self.name}:back", self.right.turned(), self.left.turned())


class _Primitives:
    """What a file has, by id."""

    def __init__(self, path: Path, found: Iterator[Start | End]) -> None:
        self.path = path
        self.lanelets: list[_Primitive] = []
        self._size = MapSize(path)
        self._nodes: dict[str, _Primitive] = {}
        self._ways: dict[str, _Primitive] = {}
        self._local = False
        self._places: dict[str, Point] = {}
        current: _Primitive | None = None
        for event in found:
            if isinstance(event, End):
                if current is not None and event.name == current.start.name:
                    self._add(current)
                    current = None
            elif current is not None:
                self._part(current, event)
            elif event.name in ("node", "way", "relation") and event.attributes.get("action") != "delete":
                current = _Primitive(event)

    def bound(self, lanelet: _Primitive, role: str, place: Callable[[_Primitive], Point]) -> _Bound:
        """A lanelet's way. BadInputError where it is not one way whose nodes are in the file."""
        named = lanelet.ways.get(role, [])
        way = self._ways.get(named[0]) if len(named) == 1 else None
        if way is None or len(way.nodes) < 2:
            text = f"lanelet {lanelet.name} needs one {role} way of two nodes or more"
            raise bad_input("not_complete", text, subject=role, file=self.path, line=lanelet.start.line)
        return _Bound(tuple(way.nodes), tuple(self._place(way, node, place) for node in way.nodes))

    def place(self, node: _Primitive, origin: Geodetic) -> Point:
        """BadInputError for what is no place."""
        try:
            if self._local:
                x, y = (number(name, node.tags.get(name, "")) for name in LOCAL)
                return x, y
            latitude, longitude = (number(name, node.start.attributes.get(name, "")) for name in ("lat", "lon"))
            return _relative(Geodetic(latitude, longitude), origin)
        except ValueError as bad:
            text, remedy = (
                f"node {node.name}: {bad}",
                "give 'sim-vehicles map' the --origin of the map, or local_x and local_y to every node",
            )
            raise bad_input("no_place", text, remedy, subject=node.name, file=self.path, line=node.start.line) from None

    def _place(self, way: _Primitive, name: str, place: Callable[[_Primitive], Point]) -> Point:
        if name not in self._places:
            node = self._nodes.get(name)
            if node is None:
                text = f"way {way.name} has node {name}, which is not in the file"
                raise bad_input("not_complete", text, subject=name, file=self.path, line=way.start.line)
            self._places[name] = place(node)
        return self._places[name]

    def _part(self, current: _Primitive, event: Start) -> None:
        given = event.attributes
        if event.name == "tag":
            current.tags[given.get("k", "")] = given.get("v", "")
        elif event.name == "nd":
            self._size.points(1, event.line)
            current.nodes.append(given.get("ref", ""))
        elif event.name == "member" and given.get("type") == "way":
            current.ways.setdefault(given.get("role", ""), []).append(given.get("ref", ""))

    def _add(self, made: _Primitive) -> None:
        self._size.points(1, made.start.line)
        if made.start.name == "node":
            self._nodes[made.name] = made
            self._local = self._local or LOCAL[0] in made.tags
        elif made.start.name == "way":
            self._ways[made.name] = made
        elif made.tags.get("type") == "lanelet":
            self._size.lane(made.start.line)
            self.lanelets.append(made)


def _relative(place: Geodetic, origin: Geodetic) -> Point:
    zone = zone_of(origin.longitude_deg)
    x, y = utm(place, zone)
    x0, y0 = utm(origin, zone)
    return x - x0, y - y0


def _is_driven(lanelet: _Primitive) -> bool:
    named = {key: value for key, value in lanelet.tags.items() if key.startswith("participant:")}
    if named:
        return any(value == "yes" for key, value in named.items() if key == VEHICLE or key.startswith(f"{VEHICLE}:"))
    return lanelet.tags.get("subtype", "road") in DRIVEN


def _both_ways(primitives: _Primitives, lanelet: _Primitive, origin: Geodetic) -> Iterator[_Lanelet]:
    def place(node: _Primitive) -> Point:
        return primitives.place(node, origin)

    left, right = _aligned(*(primitives.bound(lanelet, role, place) for role in ("left", "right")))
    forth = _Lanelet(lanelet.start.line, lanelet.name, left, right)
    yield forth
    if not _is_one_way(lanelet.tags):
        yield forth.back()


def _is_one_way(tags: Mapping[str, str]) -> bool:
    return tags.get("one_way:vehicle", tags.get("one_way", "yes")) not in ("no", "false", "0")


def _aligned(left: _Bound, right: _Bound) -> tuple[_Bound, _Bound]:
    """Both in the direction in which the left one is on the left: round the area between them, forth on the left and
    back on the right, is clockwise then."""
    if _ends_apart(left, right) > _ends_apart(left, right.turned()):
        right = right.turned()
    if _area([*left.points, *right.points[::-1]]) > 0.0:
        left, right = left.turned(), right.turned()
    return left, right


def _ends_apart(one: _Bound, other: _Bound) -> float:
    """How far the beginnings and the ends lie apart, added up."""
    pairs = ((one.points[k], other.points[k]) for k in (0, -1))
    return sum(hypot(bx - ax, by - ay) for (ax, ay), (bx, by) in pairs)


def _area(ring: Sequence[Point]) -> float:
    """Twice the area of a ring, positive counterclockwise."""
    x0, y0 = ring[0]  # nearer numbers round less
    moved = [(x - x0, y - y0) for x, y in ring]
    pairs = zip(moved, [*moved[1:], moved[0]], strict=True)
    return sum(ax * by - bx * ay for (ax, ay), (bx, by) in pairs)
