"""Whether a plan's operators know the roads of the scene that is replayed."""

from __future__ import annotations

from typing import Any

from sim_vehicles.scene import Scene


def foreign_maps(plan: dict[str, Any], scene: Scene) -> list[str]:
    """A sentence where operators of the plan (parameter `map`) know the roads of another scene; else nothing.

    Nobody is on a road of such a map, so a prediction goes straight on instead of round the bend, or along a road that
    is not there: warnings come late, or never, and the verdict says nothing about the plan.
    """
    named: dict[str, list[str]] = {}
    for name, operator in plan["graph"]["operators"].items():
        map_ = (operator.get("with") or {}).get("map")
        if isinstance(map_, str) and map_ not in ("", scene.name):
            named.setdefault(map_, []).append(name)
    mend = f"plan a query with `map: {scene.name}`" if scene.raw.get("roads") else 'plan a query with `map: ""`'
    return [
        f"{' and '.join(names)} know the roads of {map_}, not those of {scene.name}; {mend}"
        for map_, names in named.items()
    ]
