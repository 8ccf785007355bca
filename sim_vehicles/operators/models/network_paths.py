"""Lane paths over a network of lanes: every lane with the ways that a vehicle may go on from its end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from math import atan2, hypot
from typing import NamedTuple

from sim_vehicles.operators.models.lanes import LanePath
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.lane_network import Lane, LaneNetwork
from sim_vehicles.world.motion import wrap

AHEAD_M = 150.0  # past a lane's end
MOST_WAYS = 16  # from one lane
LEAST_STEP_M = 0.05  # where one lane ends and the next begins


def paths_from(network: LaneNetwork, name: str) -> list[LanePath]:
    """From a lane each way of following lanes, `AHEAD_M` far and at most `MOST_WAYS` of them.

    A path is called after its lanes, "a>b>c". Where there are more ways the longest end sooner, so that no branch near
    by is left out, up to that number. No way has a lane twice.
    """
    return [_path(way.lanes) for way in _ways_from(network.lanes[name], network)]


class _Way(NamedTuple):
    """Lanes one after the other; ahead_m: the length of those after the first one."""

    lanes: tuple[Lane, ...]
    ahead_m: float


def _ways_from(lane: Lane, network: LaneNetwork) -> list[_Way]:
    """The shortest way is continued first."""
    open_, ended = [_Way((lane,), 0.0)], list[_Way]()
    while open_:
        way = min(open_, key=lambda each: each.ahead_m)
        open_.remove(way)
        further = [network.lanes[name] for name in way.lanes[-1].following]
        further = [each for each in further if each not in way.lanes]
        room = MOST_WAYS - len(open_) - len(ended)
        if way.ahead_m >= AHEAD_M or not further or (room < len(further) and way.ahead_m):
            ended.append(way)
        else:
            open_ += (_Way((*way.lanes, each), way.ahead_m + _length(each.line)) for each in further[:room])
    return ended


def _length(line: Sequence[Point]) -> float:
    return sum(hypot(bx - ax, by - ay) for (ax, ay), (bx, by) in pairwise(line))


def _path(lanes: Sequence[Lane]) -> LanePath:
    """The first lane whole, then `AHEAD_M` of the others; its turn is what all its bends add up to."""
    points = list(lanes[0].line)
    left_m = AHEAD_M
    for x, y in chain.from_iterable(lane.line for lane in lanes[1:]):
        step = hypot(x - points[-1][0], y - points[-1][1])
        if step < LEAST_STEP_M:
            continue
        if step >= left_m:
            share = left_m / step
            points.append((points[-1][0] + share * (x - points[-1][0]), points[-1][1] + share * (y - points[-1][1])))
            break
        points.append((x, y))
        left_m -= step
    headings = [atan2(by - ay, bx - ax) for (ax, ay), (bx, by) in pairwise(points)]
    return LanePath(">".join(lane.name for lane in lanes), points, sum(wrap(b - a) for a, b in pairwise(headings)))
