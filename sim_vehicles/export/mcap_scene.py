"""A replay's scene as Foxglove scene entities: roads, buildings, vehicles, lines of sight. Frame `plane`, metres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, sin
from typing import Any

from sim_vehicles.closed_loop.recorded import DrivenScene, Occluder
from sim_vehicles.export.mcap_schemas import PRIMITIVES

FRAME = "plane"  # x east, y north
HEIGHT_M = 1.5
WALL_M = 6.0
STRIP, LOOP, PAIRS = 0, 1, 2  # foxglove.LineType
WHITE, GREY, DARK = (1.0, 1.0, 1.0, 1.0), (0.6, 0.6, 0.6, 1.0), (0.35, 0.35, 0.4, 0.8)
BLUE, RED, GREEN = (0.1, 0.4, 0.9, 1.0), (0.85, 0.15, 0.1, 1.0), (0.1, 0.6, 0.35, 1.0)

Json = dict[str, Any]
Point = tuple[float, float]
Color = tuple[float, float, float, float]


def time(at_ns: int) -> dict[str, int]:
    """A foxglove time, or a duration."""
    return {"sec": at_ns // 1_000_000_000, "nsec": at_ns % 1_000_000_000}


def pose(x: float = 0.0, y: float = 0.0, z: float = 0.0, heading_rad: float = 0.0) -> Json:
    """A foxglove.Pose, turned about the vertical."""
    return {"position": vector(x, y, z), "orientation": turned(heading_rad)}


def vector(x: float, y: float, z: float = 0.0) -> dict[str, float]:
    """A foxglove.Vector3, metres."""
    return {"x": x, "y": y, "z": z}


def turned(heading_rad: float) -> dict[str, float]:
    """The quaternion of a turn about the vertical."""
    return {"x": 0.0, "y": 0.0, "z": sin(heading_rad / 2), "w": cos(heading_rad / 2)}


def update(*entities: Json) -> Json:
    """A foxglove.SceneUpdate that adds or replaces these."""
    return {"deletions": [], "entities": list(entities)}


def still(scene: DrivenScene, at_ns: int) -> Json:
    """What does not move: road axes with their lanes' edges as one line each, and the walls of what hides."""
    roads = [_road(road, at_ns) for road in scene.roads]
    return update(*roads, *(_building(one, at_ns) for one in scene.occluders))


def vehicles(scene: DrivenScene, at_ns: int, places: dict[str, tuple[float, float, float]], lasts_ns: int) -> Json:
    """The vehicles that are there at one instant, and a line from each one that perceives another to that one.

    places: x, y [m] and heading [rad] by id. The entities vanish after lasts_ns, if no others replace them.
    """
    boxes = [_vehicle(scene, name, place, at_ns, lasts_ns) for name, place in sorted(places.items())]
    seen = [
        _sight(one.who, one.whom, places, at_ns, lasts_ns)
        for one in scene.perceives
        if round(one.from_s * 1e9) <= at_ns <= round(one.until_s * 1e9) and one.who in places and one.whom in places
    ]
    return update(*boxes, *seen)


def _entity(name: str, at_ns: int, lasts_ns: int = 0, **primitives: list[Json]) -> Json:
    return {
        "timestamp": time(at_ns),
        "frame_id": FRAME,
        "id": name,
        "lifetime": time(lasts_ns),
        "frame_locked": True,
        "metadata": [],
        **{kind: primitives.get(kind, []) for kind in PRIMITIVES},
    }


def _color(color: Color) -> dict[str, float]:
    return dict(zip("rgba", color, strict=True))


def _line(kind: int, points: Sequence[Point], color: Color, thickness: float, z: float = 0.0) -> Json:
    return {
        **{"type": kind, "pose": pose(), "thickness": thickness, "scale_invariant": False},
        "points": [vector(x, y, z) for x, y in points],
        **{"color": _color(color), "colors": [], "indices": []},
    }


def _text(text: str, x: float, y: float, z: float) -> Json:
    return {
        **{"pose": pose(x, y, z), "billboard": True, "font_size": 1.5, "scale_invariant": False},
        **{"color": _color(WHITE), "text": text},
    }


def _road(road: Json, at_ns: int) -> Json:
    points = [(float(x), float(y)) for x, y in road["line"]]
    width_m = 2 * float(road.get("lanes_each_way", 1)) * float(road.get("lane_width_m", 3.2))
    lines = [_line(STRIP, points, DARK, width_m, -0.05), _line(STRIP, points, WHITE, 0.12)]
    return _entity(f"road {road.get('name', '')}", at_ns, lines=lines)


def _building(building: Occluder, at_ns: int) -> Json:
    corners, name = building.polygon, str(building.name)
    walls = {
        "pose": pose(),
        "points": list(_walls(corners)),
        **{"color": _color(GREY), "colors": [], "indices": []},
    }
    x, y = (sum(values) / len(corners) for values in zip(*corners, strict=True))
    texts = [_text(name, x, y, WALL_M + 1)]
    return _entity(f"building {name}", at_ns, triangles=[walls], texts=texts)


def _walls(corners: Sequence[Point]) -> Iterator[dict[str, float]]:
    """Two triangles per side; no roof, so the plan is seen from above."""
    for (x0, y0), (x1, y1) in pairwise([*corners, corners[0]]):
        for x, y, z in ((x0, y0, 0), (x1, y1, 0), (x1, y1, WALL_M), (x0, y0, 0), (x1, y1, WALL_M), (x0, y0, WALL_M)):
            yield vector(x, y, z)


def _vehicle(scene: DrivenScene, name: str, place: tuple[float, float, float], at_ns: int, lasts_ns: int) -> Json:
    x, y, heading_rad = place
    one = scene.vehicles[name]
    roles: dict[str | None, Color] = {**dict.fromkeys(scene.stations, GREEN), scene.crossing: RED, scene.ego: BLUE}
    box = {
        "pose": pose(x, y, HEIGHT_M / 2, heading_rad),
        "size": vector(one.length_m, one.width_m, HEIGHT_M),
        "color": _color(roles.get(name, GREY)),
    }
    return _entity(f"vehicle {name}", at_ns, lasts_ns, cubes=[box], texts=[_text(name, x, y, HEIGHT_M + 1)])


def _sight(who: str, whom: str, places: dict[str, tuple[float, float, float]], at_ns: int, lasts_ns: int) -> Json:
    ends = [places[who][:2], places[whom][:2]]
    return _entity(f"sight {who} {whom}", at_ns, lasts_ns, lines=[_line(STRIP, ends, GREEN, 0.15, HEIGHT_M)])
