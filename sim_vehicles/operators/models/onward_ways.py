"""Ways on which a vehicle may go, by the lanes that it is on, and how likely each is. Metres, radians, m/s.

A way is likelier, the nearer its lane lies and the more it points where the vehicle does, if it bends as the vehicle
turns, if the vehicle goes at a speed from which it can still slow down for its curves, and if it goes straight on. The
weights are those of independent normal deviations.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import atan2, exp, hypot
from typing import NamedTuple

from protos.vehicle_pb2 import Way
from sim_vehicles.operators.models.lanes import LaneMap, LanePath, Match
from sim_vehicles.operators.models.network_paths import paths_from
from sim_vehicles.world.lane_network import LaneNetwork
from sim_vehicles.world.motion import wrap

REACH_S, REACH_M = 4.0, 15.0  # ways are told apart by where a vehicle gets in that time, and that far beyond
LOOKS = 6
NEAR_M = 0.1
BEND_M = 6.0  # a curve is measured over that way
LEAST_BEND_1PM = 0.002  # what bends less bends no vehicle's speed
PLACE_SD_M, HEADING_SD_RAD, TURN_SD_RPS, BRAKING_SD_MPS2 = 0.7, 0.1, 0.15, 1.0
MOST_SD = 3.0  # a deviation beyond counts as that: no single one rules a way out
EASE_MPS2 = 1.0  # a driver who only lifts the foot slows down by that
LATERAL_MPS2 = 4.0  # what a car in a curve has across
TURN_M, TURN_SHARE = 25.0, 0.1  # a turn at a junction has a radius below that, and is rarer than straight on
ALIKE_M = 1.0  # ways that stay as near to one another are one
LANES_AT_HAND = 64  # whose ways are remembered: 16 each, of 100 points and more
LEAST_SHARE = 0.05
NO_LANE = 0.14  # weight of driving as no lane leads: that of a lane at two standard deviations


class Pose(NamedTuple):
    """A vehicle as it was measured. yaw_rate_rps: None where nobody says it."""

    x_m: float
    y_m: float
    heading_rad: float
    speed_mps: float
    yaw_rate_rps: float | None
    acceleration_mps2: float


class Onward(NamedTuple):
    """A way on, from the begin of its first lane, the way along it to the vehicle, and how likely it is, 0 to 1."""

    lane: str
    path: LanePath
    s_m: float
    share: float


class _Curve(NamedTuple):
    """A corner of a course that bends. most2: the square of the speed with LATERAL_MPS2 across."""

    s_m: float
    bend_1pm: float
    most2: float


class _Course:
    """A lane with what follows it, one way of several."""

    def __init__(self, path: LanePath) -> None:
        self.path = path
        corners = zip(path.x_m, path.y_m, strict=True)
        self._heading = [atan2(by - ay, bx - ax) for (ax, ay), (bx, by) in pairwise(corners)]
        bends = ((s_m, abs(self.bend_at(s_m))) for s_m in path.s_m)
        self.curves = [_Curve(s_m, bend, LATERAL_MPS2 / bend) for s_m, bend in bends if bend > LEAST_BEND_1PM]
        self.tightest = max((curve.bend_1pm for curve in self.curves), default=0.0)

    def bend_at(self, s_m: float) -> float:
        """Curvature [1/m] there, over BEND_M."""
        before, after = (self._heading[self._piece(s_m + way)] for way in (-BEND_M / 2, BEND_M / 2))
        return wrap(after - before) / BEND_M

    def _piece(self, s_m: float) -> int:
        return min(max(bisect_right(self.path.s_m, s_m) - 1, 0), len(self._heading) - 1)


class _Weighed(NamedTuple):
    """A way that a lane offers, with its weight up to a factor that all have in common."""

    weight: float
    match: Match
    course: _Course


class RoadMap:
    """The lanes of a network, found by place, and the ways on from there."""

    def __init__(self, network: LaneNetwork, reach_m: float) -> None:
        """reach_m: how far beside a lane a vehicle may be that is on it."""
        self._network = network
        self._pieces = LaneMap([LanePath(lane.name, lane.line) for lane in network.lanes.values()], reach_m)
        self._courses: dict[str, tuple[_Course, ...]] = {}

    def near(self, x_m: float, y_m: float, heading_rad: float) -> list[Match]:
        """Lanes within reach, the best first (see LaneMap)."""
        return self._pieces.near(x_m, y_m, heading_rad)

    def onward(self, pose: Pose, matches: Iterable[Match], most: int) -> list[Onward]:
        """The likeliest of the different ways on from these lanes, at most so many. What their shares lack to 1 is for
        the other ways, and for driving as no lane leads. A single one is taken for certain."""
        reach_m = _reach_m(pose.speed_mps)
        weighed = self._weighed(pose, matches, reach_m)
        if most == 1:
            return [_onward(one, 1.0) for one in weighed[:1]]
        different: list[_Weighed] = []
        for one in weighed:
            if one.weight < LEAST_SHARE * weighed[0].weight:
                break
            if not any(_alike(one, other, reach_m) for other in different):
                different.append(one)
        whole = NO_LANE + sum(one.weight for one in different)
        return [_onward(one, one.weight / whole) for one in different[:most]]

    def _weighed(self, pose: Pose, matches: Iterable[Match], reach_m: float) -> list[_Weighed]:
        """All ways on from these lanes, the likeliest first."""
        fits = [(match, course) for match in matches for course in self._from(match.lane.name)]
        turns = [_turns(course, match.placed.s_m, reach_m) for match, course in fits]
        rarer = 1.0 if all(turns) else TURN_SHARE
        weighed = [
            _Weighed(_weight(pose, match, course) * (rarer if turn else 1.0), match, course)
            for (match, course), turn in zip(fits, turns, strict=True)
        ]
        return sorted(weighed, key=lambda one: (-one.weight, one.course.tightest, one.match.lane.name))

    def _from(self, name: str) -> tuple[_Course, ...]:
        courses = self._courses.pop(name, None)
        if courses is None:
            courses = tuple(_Course(path) for path in paths_from(self._network, name))
            if len(self._courses) >= LANES_AT_HAND:
                del self._courses[next(iter(self._courses))]
        self._courses[name] = courses  # the last one used stands last
        return courses


def messages(onward: Sequence[Onward], speed_mps: float) -> list[Way]:
    """As they are handed on: each from beside the vehicle as far as it gets."""
    reach_m = _reach_m(speed_mps)
    return [_message(one, reach_m) for one in onward]


def _onward(one: _Weighed, share: float) -> Onward:
    return Onward(one.match.lane.name, one.course.path, one.match.placed.s_m, share)


def _message(one: Onward, reach_m: float) -> Way:
    path, (x, y, _) = one.path, one.path.at(one.s_m)
    first, last = bisect_right(path.s_m, one.s_m + NEAR_M), bisect_right(path.s_m, one.s_m + reach_m) + 1
    xs, ys = [x, *path.x_m[first:last]], [y, *path.y_m[first:last]]
    if len(xs) == 1:  # its lane ends here: straight on
        x, y, _ = path.at(one.s_m + reach_m)
        xs, ys = [*xs, x], [*ys, y]
    return Way(x_m=xs, y_m=ys, share=one.share)


def _reach_m(speed_mps: float) -> float:
    return REACH_S * max(speed_mps, 0.0) + REACH_M


def _weight(pose: Pose, match: Match, course: _Course) -> float:
    """How likely the way is, up to a factor that all have in common (see the head)."""
    speed, s_m = max(pose.speed_mps, 0.0), match.placed.s_m
    turning = 0.0 if pose.yaw_rate_rps is None else abs(pose.yaw_rate_rps - speed * course.bend_at(s_m))
    turning = min(turning, MOST_SD * TURN_SD_RPS)
    too_hard = max(0.0, _braking_mps2(speed, s_m, course) - max(-pose.acceleration_mps2, EASE_MPS2))
    too_hard = min(too_hard, MOST_SD * BRAKING_SD_MPS2)
    exponent = (
        (match.placed.d_perp_m / PLACE_SD_M) ** 2
        + (match.placed.dheading_rad / HEADING_SD_RAD) ** 2
        + (turning / TURN_SD_RPS) ** 2
        + (too_hard / BRAKING_SD_MPS2) ** 2
    )
    return exp(-exponent / 2)


def _turns(course: _Course, s_m: float, reach_m: float) -> bool:
    """Whether a turn of a junction lies ahead."""
    return any(s_m <= curve.s_m <= s_m + reach_m and curve.bend_1pm * TURN_M > 1.0 for curve in course.curves)


def _braking_mps2(speed: float, s_m: float, course: _Course) -> float:
    """The deceleration that brings a vehicle through the curves ahead with at most LATERAL_MPS2 across."""
    return max(
        (
            (speed * speed - curve.most2) / (2.0 * max(curve.s_m - s_m, 1.0))
            for curve in course.curves
            if curve.s_m > s_m
        ),
        default=0.0,
    )


def _alike(one: _Weighed, other: _Weighed, reach_m: float) -> bool:
    """Whether the two ways stay within ALIKE_M of one another."""
    here_m, there_m = one.match.placed.s_m, other.match.placed.s_m
    for k in range(1, LOOKS + 1):
        way_m = reach_m * k / LOOKS
        (x, y, _), (other_x, other_y, _) = one.course.path.at(here_m + way_m), other.course.path.at(there_m + way_m)
        if hypot(x - other_x, y - other_y) > ALIKE_M:
            return False
    return True
