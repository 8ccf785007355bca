"""Who sees whom, for many pairs and instants in one call: what `sight.visible` says of each.

Buildings must be convex. Where only whether a pair sees one another over some time is asked, most pairs are decided by
one line between the two: it passes through a building so far inside that nothing which the two do meanwhile leads out
of it, or so far from all buildings that nothing leads in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion_grid import Floats, MotionGrid, Numbers, States
from sim_vehicles.world.scene import Scene
from sim_vehicles.world.sight import PERCEIVED_SHARE

POINTS = 5  # of a vehicle: its corners and their centre
CHUNK = 20_000  # pairs at once, for the memory's sake

Flags = NDArray[np.bool_]


class Pairs(NamedTuple):
    """Who may see whom over some time; `clear`: nothing stands between them at any of its instants."""

    who: Numbers
    whom: Numbers
    clear: Flags


class SightGrid:
    """Sight between the vehicles of a recording."""

    def __init__(self, grid: MotionGrid, scene: Scene) -> None:
        """ValueError if a building is not convex."""
        self._grid = grid
        self.range_m = scene.range_m
        self._reach_m = np.hypot(grid.length_m, grid.width_m) / 2  # of a vehicle's corners from its centre
        self._normals, self._offsets = _half_planes(scene.occluders)
        polygons = [np.array(polygon) for polygon in scene.occluders]
        self._low = np.array([polygon.min(0) for polygon in polygons]).reshape(-1, 2)
        self._high = np.array([polygon.max(0) for polygon in polygons]).reshape(-1, 2)

    def shares(self, who: Numbers, whom: Numbers, at_ns: Numbers) -> Floats:
        """Share of whom's sample points (0 to 1) that who sees, each pair at its own instant."""
        parts = [slice(first, first + CHUNK) for first in range(0, len(who), CHUNK)]
        found = [self._shares(self._grid.at(who[part], at_ns[part]), whom[part], at_ns[part]) for part in parts]
        return np.concatenate([*found, np.empty(0)])

    def perceived(self, who: Numbers, whom: Numbers, at_ns: Numbers) -> Flags:
        """Whether who perceives whom, each pair at its own instant."""
        return self.shares(who, whom, at_ns) >= PERCEIVED_SHARE - 1e-9

    def meanwhile(self, begin_ns: int, until_ns: int) -> Pairs:
        """Pairs of which one may perceive the other at some instant from begin to until: none else does."""
        centre, moved_m = self._whereabouts(begin_ns, until_ns)
        away_m = np.hypot(centre[:, None, 0] - centre[None, :, 0], centre[:, None, 1] - centre[None, :, 1])
        near = away_m <= self.range_m + moved_m[:, None] + moved_m[None, :]  # never where one is not there
        np.fill_diagonal(near, False)
        who, whom = np.nonzero(near)
        margin_m = np.maximum(moved_m[who], moved_m[whom] + self._reach_m[whom])
        a, b = centre[who], centre[whom]
        pair, house = self._near(np.minimum(a, b) - margin_m[:, None], np.maximum(a, b) + margin_m[:, None])
        hidden = np.zeros(len(who), dtype=bool)
        touched = np.zeros(len(who), dtype=bool)
        hidden[pair[self._crosses(a[pair], b[pair], house, -margin_m[pair])]] = True
        touched[pair[self._crosses(a[pair], b[pair], house, margin_m[pair])]] = True
        return Pairs(who[~hidden], whom[~hidden], ~touched[~hidden])

    def _shares(self, eye: States, whom: Numbers, at_ns: Numbers) -> Floats:
        target = self._grid.at(whom, at_ns)
        away_m = np.hypot(target.x_m - eye.x_m, target.y_m - eye.y_m)
        found = np.zeros(len(whom))
        (seen,) = np.nonzero(away_m <= self.range_m)
        a = np.stack([eye.x_m[seen], eye.y_m[seen]], axis=-1)
        points = _points(target.at(seen), self._grid.length_m[whom[seen]], self._grid.width_m[whom[seen]])
        low, high = np.minimum(a, points.min(1)), np.maximum(a, points.max(1))
        pair, house = self._near(low, high)
        hidden = np.zeros((len(seen), POINTS), dtype=bool)
        for i in range(POINTS):
            hidden[pair[self._crosses(a[pair], points[pair, i], house, 0.0)], i] = True
        found[seen] = (~hidden).sum(1) / POINTS
        return found

    def _whereabouts(self, begin_ns: int, until_ns: int) -> tuple[Floats, Floats]:
        """A place of each vehicle in that time (NaN: it is not there), and how far from it it gets."""
        instants = self._grid.knots(begin_ns, until_ns)
        every = np.arange(len(self._grid.names))
        states = self._grid.at(np.tile(every, len(instants)), np.repeat(instants, len(every)))
        x_m, y_m = (values.reshape(len(instants), -1) for values in (states.x_m, states.y_m))
        there = ~np.isnan(x_m)
        low = [np.where(there, values, np.inf).min(0) for values in (x_m, y_m)]
        high = [np.where(there, values, -np.inf).max(0) for values in (x_m, y_m)]
        with np.errstate(invalid="ignore"):
            centre = np.stack([(one + other) / 2 for one, other in zip(low, high, strict=True)], axis=-1)
        moved_m = np.hypot(high[0] - low[0], high[1] - low[1]) / 2
        return centre, np.where(there.any(0), moved_m, np.nan)

    def _near(self, low: Floats, high: Floats) -> tuple[Numbers, Numbers]:
        """Pairs of a line, between low and high, and a building that is not wholly to one side of it."""
        near = (self._low[None, :, 0] <= high[:, None, 0]) & (self._high[None, :, 0] >= low[:, None, 0])
        near &= (self._low[None, :, 1] <= high[:, None, 1]) & (self._high[None, :, 1] >= low[:, None, 1])
        line, house = np.nonzero(near)
        return line, house

    def _crosses(self, a: Floats, b: Floats, house: Numbers, wider_m: Any) -> Flags:
        """Whether the lines from a to b pass through the inside of buildings whose walls are moved out by wider_m."""
        first, last = np.zeros(len(a)), np.ones(len(a))
        way = b - a
        for side in range(self._normals.shape[1]):
            normal = self._normals[house, side]
            room = self._offsets[house, side] + wider_m - (normal * a).sum(-1)
            along = (normal * way).sum(-1)
            with np.errstate(divide="ignore", invalid="ignore"):
                meets = room / along
            last = np.where(along > 0, np.minimum(last, meets), last)
            first = np.where(along < 0, np.maximum(first, meets), first)
            last = np.where((along == 0) & (room <= 0), -1.0, last)
        return first < last


def _points(states: States, length_m: Floats, width_m: Floats) -> Floats:
    """Corners and centre of vehicles, in the order of `geometry.box`."""
    c, s = np.cos(states.heading_rad), np.sin(states.heading_rad)
    along, across = length_m / 2, width_m / 2
    corners = [
        np.stack([states.x_m + i * along * c - j * across * s, states.y_m + i * along * s + j * across * c], axis=-1)
        for i, j in ((1, 1), (1, -1), (-1, -1), (-1, 1))
    ]
    return np.stack([*corners, (corners[0] + corners[1] + corners[2] + corners[3]) / 4], axis=1)


def _half_planes(polygons: Sequence[Sequence[Point]]) -> tuple[Floats, Floats]:
    """Each polygon's sides as unit normals outwards and offsets: inside is normal * p < offset on all sides. Polygons
    with fewer sides than others get sides behind which everything is."""
    sides = max((len(polygon) for polygon in polygons), default=0)
    normals, offsets = np.zeros((len(polygons), sides, 2)), np.ones((len(polygons), sides))
    for i, polygon in enumerate(polygons):
        area = sum(p[0] * q[1] - q[0] * p[1] for p, q in _sides(polygon))
        for side, (p, q) in enumerate(_sides(polygon)):
            long = hypot(q[0] - p[0], q[1] - p[1]) * (1 if area > 0 else -1)
            normal = ((q[1] - p[1]) / long, (p[0] - q[0]) / long)
            normals[i, side], offsets[i, side] = normal, normal[0] * p[0] + normal[1] * p[1]
            if any(normal[0] * x + normal[1] * y > offsets[i, side] + 1e-6 for x, y in polygon):
                raise ValueError(f"a building has a corner that points inwards, near ({p[0]:g}, {p[1]:g}): split it")
    return normals, offsets


def _sides(polygon: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(polygon, [*polygon[1:], polygon[0]], strict=True))
