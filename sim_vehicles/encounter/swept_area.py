"""Swept area: the way left from the ego to the strip that the crossing vehicle's box sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, hypot
from typing import NamedTuple

from sim_vehicles.encounter.driven_path import DrivenPath, Pose
from sim_vehicles.world.geometry import Point, box, overlap
from sim_vehicles.world.motion import MAX_GAP_S, Track

STEP_M = 0.05  # along the ego's path, where the boxes are near
FINE_M = 1e-3  # the entry is found to this length
SWEPT_M = 1.0  # between two boxes of the strip: less than any vehicle is long


class _Swept(NamedTuple):
    x_m: float
    y_m: float
    corners: list[Point]


def entry_m(ego: Track, other: Track) -> float | None:
    """Arc length along the ego's recorded path (that of its centre) at which its box first touches the strip that the
    other's box sweeps on its whole way. None: never, or already where the recording begins."""
    path, swept = DrivenPath(ego), list(_swept(other))
    reach_m = _reach_m(ego, other)
    s_m = free_m = 0.0
    while s_m <= path.length_m:
        x_m, y_m, _ = path.at(s_m)
        away_m = min(hypot(one.x_m - x_m, one.y_m - y_m) for one in swept) - reach_m
        if away_m <= 0 and _touches(path.at(s_m), ego, swept, reach_m):
            return _refined(path, ego, free_m, s_m, swept, reach_m) if s_m > 0 else None
        free_m, s_m = s_m, s_m + max(STEP_M, away_m)
    return None


def is_inside(ego: Track, other: Track, at_s: float) -> bool:
    """Whether the ego's box at that instant is in the strip that the other's box sweeps on its whole way; False where
    the ego is not there."""
    state = ego.at(at_s)
    if state is None:
        return False
    return _touches((state.x_m, state.y_m, state.heading_rad), ego, list(_swept(other)), _reach_m(ego, other))


def _reach_m(ego: Track, other: Track) -> float:
    """Boxes whose centres are farther apart than this do not touch."""
    return hypot(ego.length_m, ego.width_m) / 2 + hypot(other.length_m, other.width_m) / 2


def _refined(
    path: DrivenPath, ego: Track, free_m: float, touching_m: float, swept: list[_Swept], reach_m: float
) -> float:
    while touching_m - free_m > FINE_M:
        middle_m = (free_m + touching_m) / 2
        if _touches(path.at(middle_m), ego, swept, reach_m):
            touching_m = middle_m
        else:
            free_m = middle_m
    return touching_m


def _touches(pose: Pose, ego: Track, swept: list[_Swept], reach_m: float) -> bool:
    x_m, y_m, heading_rad = pose
    corners = box(x_m, y_m, heading_rad, ego.length_m, ego.width_m)
    near = (one for one in swept if hypot(one.x_m - x_m, one.y_m - y_m) < reach_m)
    return any(overlap(corners, one.corners) for one in near)


def _swept(track: Track) -> Iterator[_Swept]:
    """The track's boxes, so close to one another that nothing fits between them. Not across gaps in the recording."""
    for a, b in pairwise(track.states):
        if b.t_s - a.t_s > MAX_GAP_S:
            continue
        count = max(1, ceil(hypot(b.x_m - a.x_m, b.y_m - a.y_m) / SWEPT_M))
        for i in range(count):
            state = track.at(a.t_s + (b.t_s - a.t_s) * i / count) or a
            corners = box(state.x_m, state.y_m, state.heading_rad, track.length_m, track.width_m)
            yield _Swept(state.x_m, state.y_m, corners)
    last = track.states[-1]
    yield _Swept(last.x_m, last.y_m, box(last.x_m, last.y_m, last.heading_rad, track.length_m, track.width_m))
