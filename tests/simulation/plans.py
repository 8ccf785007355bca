"""Plans for simulations: made by the planner from query and cluster files, as a user would."""

import copy
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coordinator import planner
from coordinator.placement.units import Units
from node_agent.registry import Registry

MS = 1_000_000
QUERIES = Path(__file__).parents[2] / "sim_vehicles" / "queries"


@cache
def paper(n: int, allocator: planner.Allocator = "deadline", units: Units = "path") -> dict[str, Any]:
    """The paper's query with n V2V tuples per burst. Existing placement: sub-deadlines of the deadline allocator."""
    text = (QUERIES / "collision_paper.yaml").read_text()
    assert "burst: 20" in text
    with TemporaryDirectory() as folder:
        query = Path(folder) / "query.yaml"
        query.write_text(text.replace("burst: 20", f"burst: {n}"))
        choices = planner.Choices(allocator=allocator, units=units, sub_deadlines="deadline")
        if allocator == "deadline":
            choices = planner.Choices(units=units)
        return planner.make_plan(query, QUERIES / "cluster_paper.yaml", choices)


def planned(
    query: str,
    cluster: str,
    place: dict[str, str] | None = None,
    registry: Registry | None = None,
    units: Units = "path",
) -> dict[str, Any]:
    """The plan of a query and a cluster given as text, operators held to nodes, no deadline being too tight."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text(json.dumps((registry or Registry()).describe()))
        choices = planner.Choices(
            allocator="sqpr",
            units=units,
            place=place or {},
            sub_deadlines="proportional",
        )
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


def with_sub_deadlines(document: dict[str, Any], **sub_deadlines_ns: int) -> dict[str, Any]:
    """The plan with other sub-deadlines for the units that begin with the named operators."""
    changed = copy.deepcopy(document)
    for local in changed["nodes"].values():
        names = {operator["id"]: operator["name"] for operator in local["operators"]}
        for unit in local["units"]:
            head = names[unit["operators"][0]]
            if head in sub_deadlines_ns:
                unit["sub_deadline_ns"] = str(sub_deadlines_ns[head])
    return changed
