"""Plane geometry of vehicles and buildings: boxes, gaps, lines of sight. Metres and radians; pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import cos, hypot, sin

Point = tuple[float, float]
Polygon = Sequence[Point]


def box(x_m: float, y_m: float, heading_rad: float, length_m: float, width_m: float) -> list[Point]:
    """Corners of a vehicle whose centre is at (x_m, y_m): front left, front right, rear right, rear left."""
    along, across = length_m / 2, width_m / 2
    c, s = cos(heading_rad), sin(heading_rad)
    offsets = ((along, across), (along, -across), (-along, -across), (-along, across))
    return [(x_m + a * c - b * s, y_m + a * s + b * c) for a, b in offsets]


def overlap(one: Polygon, other: Polygon) -> bool:
    """Whether two convex polygons share more than a border (separating axis theorem)."""
    for polygon in (one, other):
        for (x0, y0), (x1, y1) in _edges(polygon):
            nx, ny = y1 - y0, x0 - x1
            low, high = _span(one, nx, ny)
            other_low, other_high = _span(other, nx, ny)
            if high <= other_low or other_high <= low:
                return False
    return True


def gap(one: Polygon, other: Polygon) -> float:
    """Least distance of two convex polygons in metres; 0 if they overlap."""
    if overlap(one, other):
        return 0.0
    pairs = ((one, other), (other, one))
    return min(_to_segment(p, a, b) for corners, sides in pairs for p in corners for a, b in _edges(sides))


def inside(point: Point, polygon: Polygon) -> bool:
    """Whether a point lies in a simple polygon (even-odd rule)."""
    x, y = point
    result = False
    for (x0, y0), (x1, y1) in _edges(polygon):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) * (x1 - x0) / (y1 - y0):
            result = not result
    return result


def blocked(a: Point, b: Point, occluders: Iterable[Polygon]) -> bool:
    """Whether any simple polygon stands in the line of sight from a to b. Touching a corner does not block."""
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    return any(inside(middle, one) or any(_cross(a, b, p, q) for p, q in _edges(one)) for one in occluders)


def seen_share(eye: Point, target: Polygon, occluders: Sequence[Polygon]) -> float:
    """Share of a target's sample points (its corners and their centre) that the eye can see, 0 to 1."""
    centre = (sum(x for x, _ in target) / len(target), sum(y for _, y in target) / len(target))
    points = [*target, centre]
    return sum(not blocked(eye, point, occluders) for point in points) / len(points)


def _edges(polygon: Polygon) -> Iterable[tuple[Point, Point]]:
    return zip(polygon, [*polygon[1:], polygon[0]], strict=True)


def _span(polygon: Polygon, nx: float, ny: float) -> tuple[float, float]:
    along = [x * nx + y * ny for x, y in polygon]
    return min(along), max(along)


def _side(a: Point, b: Point, p: Point) -> float:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def _cross(a: Point, b: Point, p: Point, q: Point) -> bool:
    return _side(a, b, p) * _side(a, b, q) < 0 and _side(p, q, a) * _side(p, q, b) < 0


def _to_segment(p: Point, a: Point, b: Point) -> float:
    dx, dy = b[0] - a[0], b[1] - a[1]
    length2 = dx * dx + dy * dy
    share = 0.0 if length2 == 0 else max(0.0, min(1.0, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length2))
    return hypot(p[0] - a[0] - share * dx, p[1] - a[1] - share * dy)
