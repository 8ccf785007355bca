"""A scenario: recorded motion and the scene it happened in (who is who, buildings, roads, how far sensors reach)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import Motion


@dataclass(frozen=True)
class Scene:
    """Ids of vehicles; polygons in metres; the plane's origin in degrees; the sensors' reach in metres."""

    name: str
    ego: str
    stations: tuple[str, ...]
    crossing: str | None = None
    occluders: tuple[tuple[Point, ...], ...] = ()
    range_m: float = 150.0
    latitude_deg: float = 35.0
    longitude_deg: float = 137.0
    start_s: float | None = None
    raw: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Scenario:
    """A recording: the motion of its vehicles and the scene that they drive through."""

    motion: Motion
    scene: Scene
