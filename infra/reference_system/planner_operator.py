"""The one node of the reference system that no built-in operator does: it reads the latest of six inputs."""

from typing import Any

from node_agent.sdk import operator

LATEST = ("estimated", "located", "planned", "mapped", "parking", "lane")


@operator("reference.planner", inputs={"tick": "json"}, side=dict.fromkeys(LATEST, "json"), output="json")
def planner(
    tick: Any, *, estimated: Any, located: Any, planned: Any, mapped: Any, parking: Any, lane: Any
) -> dict[str, object]:
    """Which of them have come; the merged history of all would grow with every cycle."""
    latest = (estimated, located, planned, mapped, parking, lane)
    return {"tick": tick, "seen": sum(value is not None for value in latest)}
