"""How much a path bends, by where its vehicle came from. Metres, radians; positive to the left."""

from __future__ import annotations

from collections.abc import Iterable
from math import atan2, hypot

from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import wrap

LEAST_M = 6.0  # a shorter chord says more of the noise than of the bend


def bend_of(here: Point, heading_rad: float, came: Iterable[Point]) -> float | None:
    """Curvature [1/m] of an arc that ends here with this heading and begins at the first of these places, the newest
    first, that is far enough away; None without such a place. The chord of an arc points half its turn back."""
    for x_m, y_m in came:
        dx, dy = here[0] - x_m, here[1] - y_m
        long = hypot(dx, dy)
        if long >= LEAST_M:
            return 2.0 * wrap(heading_rad - atan2(dy, dx)) / long
    return None
