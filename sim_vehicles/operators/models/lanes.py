"""Lanes of a known crossing, and the ways through it. Drives on the right; metres, radians, s along the lane.

A scene file gives, per arm, the axis from the crossing outwards, the lanes each way and their width. A lane path is
one way through: the approach lane of one arm, a smooth curve over the junction, the lane that leaves by another arm;
"south-north" comes from the south. Straight on every lane goes on in its own; to the left from innermost to innermost,
to the right from outermost to outermost.

The lanes of an arm end where the kerbs of neighbouring arms would meet, plus a corner of `CORNER_M`; the curve is a
cubic Bezier whose handles (4/3 tan(turn/4) radii long) make it a near circle when both ends lie alike.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import atan2, ceil, cos, hypot, pi, sin, sqrt, tan
from typing import Any, NamedTuple

from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import wrap

CORNER_M = 4.0  # radius of a kerb's corner in a town
CURVE_STEP_M = 1.0
BLEND_M = 2.0  # before and after a corner of the polyline the heading goes over linearly
STRAIGHT_RAD = pi / 4  # less of a turn than this is straight on
CELL_M = 8.0  # of the index


class Placed(NamedTuple):
    """Where a pose is on a lane: way along it, distance from its centre line, the pose's heading minus the lane's."""

    s_m: float
    d_perp_m: float
    dheading_rad: float


class Match(NamedTuple):
    lane: LanePath
    placed: Placed


class LanePath:
    """One way through a crossing: a polyline with its arc length.

    x_m, y_m, s_m: the corners, s_m[0] = 0. turn_rad: heading at its end minus at its start, left positive.
    """

    def __init__(self, name: str, points: Sequence[Point], turn_rad: float = 0.0) -> None:
        if len(points) < 2:
            raise ValueError(f"lane {name!r} needs two points, not {len(points)}")
        self.name = name
        self.turn_rad = turn_rad
        self.x_m = tuple(x for x, _ in points)
        self.y_m = tuple(y for _, y in points)
        steps = [(bx - ax, by - ay) for (ax, ay), (bx, by) in pairwise(points)]
        lengths = [hypot(dx, dy) for dx, dy in steps]
        if min(lengths) <= 0.0:
            raise ValueError(f"lane {name!r} has two equal points in a row")
        ways = [0.0]
        for length in lengths:
            ways.append(ways[-1] + length)
        self.s_m = tuple(ways)
        self._along = [(dx / length, dy / length) for (dx, dy), length in zip(steps, lengths, strict=True)]
        self._heading = [atan2(dy, dx) for dx, dy in steps]
        self._bend = [0.0, *(wrap(b - a) for a, b in pairwise(self._heading)), 0.0]  # at each corner

    @property
    def length_m(self) -> float:
        return self.s_m[-1]

    def project(self, x_m: float, y_m: float, heading_rad: float) -> Placed:
        """The nearest point of the lane: s, distance from it (never negative), heading difference in [-pi, pi)."""
        best, best_i, best_along = float("inf"), 0, 0.0
        for i in range(len(self._along)):
            away2, along = self.nearest_on(i, x_m, y_m)
            if away2 < best:
                best, best_i, best_along = away2, i, along
        return self.placed(best_i, best_along, best, heading_rad)

    def at(self, s_m: float) -> tuple[float, float, float]:
        """x, y, heading at s. Before the start: its first point; beyond the end: straight on."""
        s_m = max(0.0, s_m)
        i = min(bisect_right(self.s_m, s_m), len(self._along)) - 1
        along = s_m - self.s_m[i]
        ux, uy = self._along[i]
        return self.x_m[i] + along * ux, self.y_m[i] + along * uy, wrap(self._heading_at(i, along))

    def offset(self, x_m: float, y_m: float, s_m: float) -> float:
        """How far a point lies to the left of the lane at s (negative: to the right)."""
        x0, y0, heading = self.at(s_m)
        return (y_m - y0) * cos(heading) - (x_m - x0) * sin(heading)

    def nearest_on(self, i: int, x_m: float, y_m: float) -> tuple[float, float]:
        """Of the piece from corner i to the next: squared distance of a point, way along it to the nearest point."""
        ux, uy = self._along[i]
        dx, dy = x_m - self.x_m[i], y_m - self.y_m[i]
        along = dx * ux + dy * uy
        length = self.s_m[i + 1] - self.s_m[i]
        along = 0.0 if along < 0.0 else min(along, length)
        return (dx - along * ux) ** 2 + (dy - along * uy) ** 2, along

    def placed(self, i: int, along_m: float, away2: float, heading_rad: float) -> Placed:
        """From what `nearest_on` gives for the piece i."""
        return Placed(self.s_m[i] + along_m, sqrt(away2), wrap(heading_rad - self._heading_at(i, along_m)))

    def _heading_at(self, i: int, along: float) -> float:
        length = self.s_m[i + 1] - self.s_m[i]
        blend = min(length / 2, BLEND_M)
        if along < blend:
            return self._heading[i] - self._bend[i] / 2 * (1 - along / blend)
        if along > length - blend:
            return self._heading[i] + self._bend[i + 1] / 2 * min(1.0, 1 - (length - along) / blend)
        return self._heading[i]


class LaneMap:
    """Lanes with an index by place, to find the one that a pose is on without looking at all of them."""

    def __init__(self, lanes: Sequence[LanePath], reach_m: float) -> None:
        """reach_m: only lanes at most this far away are found."""
        if not 0.0 < reach_m <= 100.0:
            raise ValueError(f"a reach of {reach_m} m; use (0, 100]")
        self.lanes = tuple(lanes)
        self.reach_m = reach_m
        cells: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for number, lane in enumerate(self.lanes):
            for i in range(len(lane.s_m) - 1):
                for cell in self._cells(lane, i):
                    cells.setdefault(cell, set()).add((number, i))
        self._cells_of = {cell: tuple(sorted(pieces)) for cell, pieces in cells.items()}

    def near(self, x_m: float, y_m: float, heading_rad: float) -> list[Match]:
        """Every lane within reach, by growing score d_perp + 2 |dheading| (one metre weighs as half a radian)."""
        nearest: dict[int, tuple[float, int, float]] = {}
        limit = self.reach_m * self.reach_m
        for number, i in self._cells_of.get((int(x_m // CELL_M), int(y_m // CELL_M)), ()):
            away2, along = self.lanes[number].nearest_on(i, x_m, y_m)
            if away2 <= limit and (number not in nearest or away2 < nearest[number][0]):
                nearest[number] = (away2, i, along)
        found = [
            Match(self.lanes[number], self.lanes[number].placed(i, along, away2, heading_rad))
            for number, (away2, i, along) in nearest.items()
        ]
        return sorted(found, key=lambda match: (score(match.placed), match.lane.name))

    def _cells(self, lane: LanePath, i: int) -> set[tuple[int, int]]:
        """Cells with a point within reach of the piece i: those round points a quarter of a cell apart."""
        length = lane.s_m[i + 1] - lane.s_m[i]
        steps = max(1, ceil(length / (CELL_M / 4)))
        far = self.reach_m + CELL_M / 8
        cells = set()
        for step in range(steps + 1):
            share = step / steps
            x = lane.x_m[i] + share * (lane.x_m[i + 1] - lane.x_m[i])
            y = lane.y_m[i] + share * (lane.y_m[i + 1] - lane.y_m[i])
            for column in range(int((x - far) // CELL_M), int((x + far) // CELL_M) + 1):
                for row in range(int((y - far) // CELL_M), int((y + far) // CELL_M) + 1):
                    cells.add((column, row))
        return cells


def score(placed: Placed) -> float:
    """d_perp + 2 |dheading|: the smaller, the better a pose fits the lane."""
    return placed.d_perp_m + 2.0 * abs(placed.dheading_rad)


def known_maps() -> list[str]:
    """Names of the installed scenes that have roads."""
    return sorted(path.stem for path in RECORDINGS.glob("*.json") if _roads(path.stem))


@lru_cache(maxsize=16)
def lanes(name: str) -> tuple[LanePath, ...]:
    """The lane paths of an installed scene, by name. ValueError, with the known names, for any other.

    A name, never a path: what a query says is not a way to read files of the machine.
    """
    if not name.isidentifier() or name not in known_maps():
        raise ValueError(f"no map {name!r} is installed; there are: {', '.join(known_maps())}")
    return ways(_roads(name))


def ways(roads: Sequence[dict[str, Any]]) -> tuple[LanePath, ...]:
    """The lane paths over one crossing: from each arm to each other one. roads: as in a scene file (see the head)."""
    arms = [_Arm(road) for road in roads]
    for arm in arms:
        arm.cut(max((_kerbs_meet(arm, other) for other in arms if other is not arm), default=0.0) + CORNER_M)
    return tuple(path for one in arms for other in arms if other is not one for path in _through(one, other))


class _Arm:
    """One road, from the crossing outwards."""

    def __init__(self, road: dict[str, Any]) -> None:
        self.name = str(road["name"])
        self.lanes = int(road["lanes_each_way"])
        self.lane_m = float(road["lane_width_m"])
        self.line = [(float(x), float(y)) for x, y in road["line"]]
        self.half_m = self.lanes * self.lane_m

    @property
    def outwards(self) -> float:
        (x0, y0), (x1, y1) = self.line[:2]
        return atan2(y1 - y0, x1 - x0)

    def cut(self, way_m: float) -> None:
        """Let the lanes end this far from where the axis begins, on its first piece."""
        (x0, y0), (x1, y1) = self.line[:2]
        share = min(way_m / hypot(x1 - x0, y1 - y0), 0.9)
        self.line[0] = (x0 + share * (x1 - x0), y0 + share * (y1 - y0))

    def inbound(self, lane: int) -> list[Point]:
        """Centre line towards the crossing; lane 0 is next to the axis. On the driver's right."""
        return beside(self.line, (lane + 0.5) * self.lane_m)[::-1]

    def outbound(self, lane: int) -> list[Point]:
        return beside(self.line, -(lane + 0.5) * self.lane_m)


def beside(line: Sequence[Point], left_m: float) -> list[Point]:
    """The parallel of a polyline, left_m to its left, mitred at its corners."""
    units = [
        ((bx - ax) / hypot(bx - ax, by - ay), (by - ay) / hypot(bx - ax, by - ay))
        for (ax, ay), (bx, by) in pairwise(line)
    ]
    shifted = []
    for (x, y), (ux, uy), (vx, vy) in zip(line, [units[0], *units], [*units, units[-1]], strict=True):
        stretch = left_m / (1.0 + ux * vx + uy * vy)
        shifted.append((x - stretch * (uy + vy), y + stretch * (ux + vx)))
    return shifted


def _kerbs_meet(arm: _Arm, other: _Arm) -> float:
    """How far out on `arm` its kerb meets the other's; 0 for arms that (nearly) go on from one another."""
    turn = abs(wrap(other.outwards - arm.outwards))
    if sin(turn) < 0.2:
        return 0.0
    return max(0.0, (other.half_m + arm.half_m * cos(turn)) / sin(turn))


def _through(one: _Arm, other: _Arm) -> list[LanePath]:
    turn = wrap(other.outwards - one.outwards - pi)
    if abs(turn) < STRAIGHT_RAD:
        pairs = [(lane, min(lane, other.lanes - 1)) for lane in range(one.lanes)]
    elif turn > 0:
        pairs = [(0, 0)]
    else:
        pairs = [(one.lanes - 1, other.lanes - 1)]
    paths = []
    for here, there in pairs:
        name = f"{one.name}-{other.name}" + (f":{here + 1}" if len(pairs) > 1 else "")
        before, after = one.inbound(here), other.outbound(there)
        middle = _curve(before[-1], after[0], wrap(one.outwards + pi), other.outwards)
        paths.append(LanePath(name, [*before, *middle, *after], turn))
    return paths


def _curve(start: Point, end: Point, leaving: float, arriving: float) -> list[Point]:
    """Points between two lane ends (without them) of a smooth curve that leaves and arrives with these headings."""
    (x0, y0), (x3, y3) = start, end
    chord = hypot(x3 - x0, y3 - y0)
    turn = abs(wrap(arriving - leaving))
    handle = chord / 3 if turn < 1e-6 else 4 / 3 * tan(turn / 4) * chord / (2 * sin(turn / 2))
    x1, y1 = x0 + handle * cos(leaving), y0 + handle * sin(leaving)
    x2, y2 = x3 - handle * cos(arriving), y3 - handle * sin(arriving)
    steps = max(1, ceil(chord / CURVE_STEP_M))
    points = []
    for i in range(1, steps):
        t = i / steps
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    return points


def _roads(name: str) -> list[dict[str, Any]]:
    scene = json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))
    return list(scene.get("roads") or [])
