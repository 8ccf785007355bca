"""Scene files: JSON, with who is who, buildings, roads, and how far sensors reach."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

from sim_vehicles.errors import bad_input
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import MAX_TIME_S
from sim_vehicles.world.scene import Scene


def read_scene(path: Path) -> Scene:
    """Reads a scene file; BadInputError with its line where it is no JSON, with the key where something is missing."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as bad:
        raise bad_input("not_json", f"is not JSON: {bad.msg}", file=path, line=bad.lineno) from None
    except (OSError, UnicodeDecodeError) as bad:
        raise bad_input("unreadable", f"cannot be read: {bad}", file=path) from None
    if not isinstance(raw, dict) or not isinstance(raw.get("ego"), str):
        raise bad_input(
            "no_ego",
            "the scene has no ego",
            'add "ego": ID of the vehicle that is to be warned',
            subject="ego",
            file=path,
        )
    try:
        return _scene(raw, path.stem)
    except (KeyError, TypeError, ValueError, AttributeError) as bad:
        raise bad_input(
            "not_complete", f"the scene is not complete: {type(bad).__name__} {bad}", "mend it", file=path
        ) from None


def _scene(raw: dict[str, Any], name: str) -> Scene:
    origin, crossing, start_s = raw.get("origin", {}), raw.get("crossing"), raw.get("start_s")
    if not isinstance(raw["stations"], list):
        raise ValueError("stations must be a list of ids")
    if crossing is not None and not isinstance(crossing, str):
        raise ValueError("crossing must be the id of a vehicle")
    for road in raw.get("roads") or []:
        _line(road["line"], "a road's line", 2)
    return Scene(
        name=str(raw.get("scene", name)),
        ego=raw["ego"],
        stations=tuple(str(station) for station in raw["stations"]),
        crossing=crossing,
        occluders=tuple(_line(one["polygon"], "an occluder's polygon", 3) for one in raw.get("occluders", [])),
        range_m=_within("range_m", raw.get("sensing", {}).get("range_m", Scene.range_m), 0, 1e5),
        latitude_deg=_within("latitude_deg", origin.get("latitude_deg", Scene.latitude_deg), -89, 89),
        longitude_deg=_within("longitude_deg", origin.get("longitude_deg", Scene.longitude_deg), -180, 180),
        start_s=None if start_s is None else _within("start_s", start_s, -MAX_TIME_S, MAX_TIME_S),
        raw=raw,
    )


def _line(points: Any, what: str, least: int) -> tuple[Point, ...]:
    line = tuple((float(x), float(y)) for x, y in points)
    if len(line) < least or not all(isfinite(x) and isfinite(y) for x, y in line):
        raise ValueError(f"{what} must have at least {least} points [x, y] in metres")
    return line


def _within(name: str, value: Any, least: float, most: float) -> float:
    if not least <= float(value) <= most:  # NaN too
        raise ValueError(f"{name} is {value}; it must be from {least:g} to {most:g}")
    return float(value)
