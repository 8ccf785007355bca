"""The lanelets of CommonRoad scenarios (XML, versions 2018b and 2020a), read without commonroad-io.

A lanelet has a left and a right bound in its driving direction, and names its successors. Those that its types or its
users say are no way for motor vehicles are left out. Not read: stop lines, signs, adjacency, speed limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.maps.bounds import middle
from sim_vehicles.maps.map_size import MapSize
from sim_vehicles.maps.pieces import Piece
from sim_vehicles.readers.batches import number
from sim_vehicles.readers.markup import End, Start
from sim_vehicles.world.geometry import Point

NOT_DRIVEN = {"sidewalk", "crosswalk", "bicycleLane", "border"}  # types of 2020a
NOT_MOTORISED = {"pedestrian", "bicycle"}  # users of 2020a


def pieces(path: Path, found: Iterator[Start | End]) -> Iterator[Piece]:
    """The lanelets, in the order of the file; found: what comes after the root's start. BadInputError with the line."""
    size = MapSize(path)
    depth = 0
    for event in found:
        if isinstance(event, End):
            depth -= 1
        elif depth == 0 and event.name == "lanelet":
            size.lane(event.line)
            lanelet = _Lanelet(path, event, size)
            lanelet.read(found)
            if lanelet.is_driven():
                yield lanelet.piece()
        else:
            depth += 1


class _Lanelet:
    """One lanelet, while it is read."""

    def __init__(self, path: Path, start: Start, size: MapSize) -> None:
        self._path, self._start, self._size = path, start, size
        self._name = start.attributes.get("id", "")
        self._bounds: dict[str, list[Point]] = {"leftBound": [], "rightBound": []}
        self._point: dict[str, float] = {}
        self._following: list[str] = []
        self._types = set[str]()
        self._users = set[str]()

    def read(self, found: Iterator[Start | End]) -> None:
        """Takes what is in it, up to its end."""
        inside = [self._start.name]
        for event in found:
            if isinstance(event, Start):
                if event.name == "successor" and len(inside) == 1:
                    self._following.append(event.attributes.get("ref", ""))
                inside.append(event.name)
                continue
            inside.pop()
            if not inside:
                return
            self._take(inside, event)

    def is_driven(self) -> bool:
        """Whether motor vehicles may be on it; so where the file does not say who may."""
        return not (self._types & NOT_DRIVEN) and not (self._users and self._users <= NOT_MOTORISED)

    def piece(self) -> Piece:
        """BadInputError where it has no id or no bounds."""
        left, right = self._bounds.values()
        for lacking in [name for name, points in self._bounds.items() if len(points) < 2]:
            raise self._incomplete(f"its {lacking} has fewer than two points", lacking)
        if not self._name:
            raise self._incomplete("it has no id", "id")
        line, width_m = middle(left, right)
        return Piece(self._start.line, self._name, line, tuple(self._following), width_m)

    def _take(self, inside: list[str], event: End) -> None:
        """inside: the elements that the ended one lies in, the lanelet first."""
        match inside[1:], event.name:
            case [("leftBound" | "rightBound"), "point"], ("x" | "y") as axis:
                self._point[axis] = self._number(axis, event)
            case [("leftBound" | "rightBound") as bound], "point":
                self._size.points(1, event.line)
                self._bounds[bound].append(self._whole_point(event))
            case [], "laneletType":
                self._types.add(event.text)
            case [], ("userOneWay" | "userBidirectional"):
                self._users.add(event.text)

    def _number(self, axis: str, event: End) -> float:
        try:
            return number(axis, event.text)
        except ValueError as bad:
            raise bad_input("no_number", str(bad), subject=axis, file=self._path, line=event.line) from None

    def _whole_point(self, event: End) -> Point:
        point, self._point = self._point, {}
        if len(point) < 2:
            raise bad_input("not_complete", "a point lacks x or y", file=self._path, line=event.line)
        return point["x"], point["y"]

    def _incomplete(self, what: str, subject: str) -> Exception:
        text = f"lanelet {self._name or '?'}: {what}"
        return bad_input("not_complete", text, subject=subject, file=self._path, line=self._start.line)
