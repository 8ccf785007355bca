"""The path that a station says it came (pathHistory of the CAM's low-frequency container, EN 302 637-2, 7.3).

As few points as describe it: a place is left out while every place since the point before lies within `BESIDE_M` of the
chord from there to now (the idea of VSC-A's concise path, DOT HS 811 492D, appendix B-2).
"""

from __future__ import annotations

from collections import deque
from math import hypot

from sim_vehicles.world.sense import Place

LOW_FREQUENCY_NS = 500_000_000  # the container is in a CAM at least so long after the last one that had it
MOST_POINTS = 40
LONGEST_M, LONGEST_NS = 200.0, 600_000_000_000
LONGEST_CHORD_M = 50.0
APART_M = 1.0  # of places that are looked at: a station that stands goes nowhere
BESIDE_M = 0.5


class PathHistory:
    """The points of one station, which is told its places in the order of time."""

    def __init__(self) -> None:
        self._points: deque[Place] = deque(maxlen=MOST_POINTS)
        self._since: list[Place] = []  # places since the newest point, APART_M from one another
        self._here: Place | None = None
        self._said_ns: int | None = None

    def add(self, place: Place) -> None:
        """The station is there now."""
        last = self._since[-1] if self._since else self._points[0] if self._points else None
        if last is not None and hypot(place.x_m - last.x_m, place.y_m - last.y_m) < APART_M:
            self._here = place
            return
        self._here = place
        if not self._points:
            self._points.appendleft(place)
        elif _away_m(self._points[0], place) > LONGEST_CHORD_M or any(
            _beside_m(self._points[0], place, each) > BESIDE_M for each in self._since
        ):
            self._points.appendleft(self._since[-1] if self._since else place)
            self._since = [place]
        else:
            self._since.append(place)

    def due(self, at_ns: int) -> bool:
        """Whether the CAM that is sent now has the path; it then counts as sent."""
        if self._said_ns is not None and at_ns - self._said_ns < LOW_FREQUENCY_NS:
            return False
        self._said_ns = at_ns
        return True

    def points(self) -> tuple[Place, ...]:
        """Where it came from, the newest first, without the place where it is now."""
        here, way_m, kept = self._here, 0.0, list[Place]()
        if here is None:
            return ()
        before = here
        for point in self._points:
            way_m += _away_m(point, before)
            if point is here:
                continue
            if way_m > LONGEST_M or here.at_ns - point.at_ns > LONGEST_NS:
                break
            kept.append(point)
            before = point
        return tuple(kept)


def _away_m(one: Place, other: Place) -> float:
    return hypot(one.x_m - other.x_m, one.y_m - other.y_m)


def _beside_m(begin: Place, end: Place, place: Place) -> float:
    """How far a place lies beside the line from begin to end; from begin where these are one."""
    dx, dy = end.x_m - begin.x_m, end.y_m - begin.y_m
    x, y = place.x_m - begin.x_m, place.y_m - begin.y_m
    long = hypot(dx, dy)
    return abs(dx * y - dy * x) / long if long else hypot(x, y)
