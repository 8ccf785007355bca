"""Checks that a plan's operators know the roads and the origin of the scene that is replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protos.plan_document import Plan
from sim_vehicles.operators.place import LATITUDE, LONGITUDE
from sim_vehicles.world.scene import Scene

ON_THE_PLANE = ("vehicle.closing", "vehicle.plane")  # operators that make places of latitudes and longitudes
SAME_DEG = 1e-6  # 0.1 m


def misfits(plan: Plan, scene: Scene) -> list[str]:
    """Why a verdict on this scene says nothing about the plan, a sentence each; nothing where it does."""
    return [*foreign_maps(plan, scene), *foreign_origin(plan, scene)]


def foreign_origin(plan: Plan, scene: Scene) -> list[str]:
    """A sentence where operators of the plan count from another origin than the scene's: to them everybody who is
    talked of is elsewhere."""
    named = [
        name
        for name, operator in plan.graph.operators.items()
        if operator.run in ON_THE_PLANE and _origin(operator.parameters) != _rounded(scene)
    ]
    if not named:
        return []
    where = f"latitude: {scene.latitude_deg:g}, longitude: {scene.longitude_deg:g}"
    return [f"{' and '.join(named)} count from another origin than {scene.name}; plan a query with `{where}`"]


def _origin(given: Mapping[str, Any]) -> tuple[int, int]:
    latitude, longitude = float(given.get("latitude", LATITUDE)), float(given.get("longitude", LONGITUDE))
    return round(latitude / SAME_DEG), round(longitude / SAME_DEG)


def _rounded(scene: Scene) -> tuple[int, int]:
    return round(scene.latitude_deg / SAME_DEG), round(scene.longitude_deg / SAME_DEG)


def foreign_maps(plan: Plan, scene: Scene) -> list[str]:
    """A sentence where operators of the plan (parameter `map`) know the roads of another scene; else nothing.

    Nobody is on a road of such a map, so a prediction goes straight on instead of round the bend, or along a road that
    is not there: warnings come late, or never, and the verdict says nothing about the plan.
    """
    named: dict[str, list[str]] = {}
    for name, operator in plan.graph.operators.items():
        map_ = operator.parameters.get("map")
        if isinstance(map_, str) and map_ not in ("", scene.name):
            named.setdefault(map_, []).append(name)
    mend = f"plan a query with `map: {scene.name}`" if scene.raw.get("roads") else 'plan a query with `map: ""`'
    return [
        f"{' and '.join(names)} know the roads of {map_}, not those of {scene.name}; {mend}"
        for map_, names in named.items()
    ]
