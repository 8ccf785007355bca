"""From lanes as a file has them to a network: points in millimetres, pieces of no length left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import hypot
from pathlib import Path
from typing import NamedTuple

from sim_vehicles.errors import bad_input
from sim_vehicles.maps.map_size import MAX_FOLLOWING
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.lane_network import Lane, LaneNetwork
from sim_vehicles.world.limits import MAX_PLACE_M

LEAST_STEP_M = 0.05  # points nearer than this to the one before say nothing about a heading
MOST_PASSED = 4 * MAX_FOLLOWING  # pieces between two lanes


class Piece(NamedTuple):
    """A lane as a reader finds it, and its line in the file. Points may repeat; following may name what is not read."""

    line: int
    name: str
    points: Sequence[Point]
    following: tuple[str, ...]
    width_m: float | None = None


def network(path: Path, pieces: Iterable[Piece]) -> LaneNetwork:
    """The network of a file's pieces. BadInputError where there are none, for two of one name, and for a point that is
    too far away.

    A piece of no length is left out, and what leads into it leads into what follows it. What follows and was not read
    (a way for bicycles, beyond the edge) is left out.
    """
    read: dict[str, Piece] = {}
    for piece in pieces:
        if piece.name in read:
            raise bad_input(
                "given_twice", f"lane {piece.name} stands twice in the file", "give each lane a name of its own",
                subject=piece.name, file=path, line=piece.line,
            )  # fmt: skip
        if len(piece.following) > MAX_FOLLOWING:
            raise bad_input(
                "too_large", f"lane {piece.name} leads into {len(piece.following)} lanes, more than {MAX_FOLLOWING}",
                "cut the map to the roads that matter", subject=piece.name, file=path, line=piece.line,
            )  # fmt: skip
        read[piece.name] = piece._replace(points=_sparse(path, piece))
    lanes = [
        Lane(piece.name, tuple(piece.points), tuple(_following(piece, read)), _rounded(piece.width_m))
        for piece in read.values()
        if len(piece.points) > 1
    ]
    if not lanes:
        raise bad_input(
            "no_lanes", "the map has no lane for motor vehicles",
            "give one with lanes; SUMO's netconvert makes them of plain OpenStreetMap", file=path,
        )  # fmt: skip
    return LaneNetwork(lanes)


def _sparse(path: Path, piece: Piece) -> list[Point]:
    """The points in millimetres, both ends and between them those that lie apart; one where the piece has no length."""
    for x, y in piece.points:
        if not (abs(x) <= MAX_PLACE_M and abs(y) <= MAX_PLACE_M):
            raise bad_input(
                "out_of_range", f"lane {piece.name} has a point over {MAX_PLACE_M:g} m from the origin",
                "move the origin nearer", subject=piece.name, file=path, line=piece.line,
            )  # fmt: skip
    points = [(round(x, 3), round(y, 3)) for x, y in piece.points]
    apart = points[:1]
    for point in points[1:]:
        if _distance(apart[-1], point) >= LEAST_STEP_M:
            apart.append(point)
    if points and apart[-1] != points[-1]:  # the end stays where the next piece begins
        if len(apart) > 1:
            apart.pop()
        if _distance(apart[-1], points[-1]) >= LEAST_STEP_M:
            apart.append(points[-1])
    return apart


def _distance(one: Point, other: Point) -> float:
    return hypot(other[0] - one[0], other[1] - one[1])


def _following(piece: Piece, read: Mapping[str, Piece]) -> Iterator[str]:
    """Names in the order given, each once; past pieces of no length, of which a short chain at most."""
    seen = set[str]()
    left = list(reversed(piece.following))
    while left and len(seen) < MOST_PASSED:
        name = left.pop()
        after = read.get(name)
        if after is None or name in seen:
            continue
        seen.add(name)
        if len(after.points) > 1:
            yield name
        else:
            left.extend(reversed(after.following))


def _rounded(width_m: float | None) -> float | None:
    return None if width_m is None else round(width_m, 2)
