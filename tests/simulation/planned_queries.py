"""Plans for simulations: made by the planner from query and cluster files, as a user would."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Choices
from coordinator.model.task_units import Units
from coordinator.solve import planner
from infra.papers.placement.collision_plans import MS, QUERIES, with_sub_deadlines
from infra.papers.placement.collision_plans import plan as paper
from node_agent.operators.registry import Registry
from protos.plan_document import Plan


def planned(
    query: str,
    cluster: str,
    place: dict[str, str] | None = None,
    registry: Registry | None = None,
    units: Units = "path",
) -> Plan:
    """The plan of a query and a cluster given as text, operators held to nodes, no deadline being too tight."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text(json.dumps((registry or Registry()).describe()))
        choices = Choices(
            allocator="sqpr",
            units=units,
            place=place or {},
            sub_deadlines="proportional",
        )
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


__all__ = ["MS", "QUERIES", "paper", "planned", "with_sub_deadlines"]
