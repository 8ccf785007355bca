"""Plans of [P]'s collision-warning query, made by the planner from the files that users have."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Allocator, Choices
from coordinator.model.task_units import Units
from coordinator.solve import planner
from protos.plan_document import Plan
from protos.plan_pb2 import LocalPlan

MS = 1_000_000
QUERIES = Path(__file__).parents[3] / "sim_vehicles" / "queries"


@cache
def plan(
    n: int,
    allocator: Allocator = "deadline",
    units: Units = "path",
    o3: str | None = None,
    policy: str | None = None,
) -> Plan:
    """The paper's model at n V2V tuples per burst; o3: the node that O3 is held to.

    Existing placement (`sqpr`): sub-deadlines of the deadline allocator, as [P] 6.1 has it. policy: None: edf. Bounds
    are computed for edf only and take long with an operator per unit: where simulations name their policy, say fifo.
    """
    text = (QUERIES / "collision_paper.yaml").read_text()
    if "burst: 20" not in text:
        raise AssertionError("collision_paper.yaml has no burst of 20 to replace")
    with TemporaryDirectory() as folder:
        query = Path(folder) / "query.yaml"
        query.write_text(text.replace("burst: 20", f"burst: {n}"))
        choices = Choices(
            allocator=allocator,
            model="paper",
            units=units,
            place={} if o3 is None else {"O3": o3},
            sub_deadlines="model" if allocator == "deadline" else "deadline",
            policy=policy,
        )
        return planner.make_plan(query, QUERIES / "cluster_paper.yaml", choices)


def with_sub_deadlines(made: Plan, **sub_deadlines_ns: int) -> Plan:
    """The plan with other sub-deadlines for the units that begin with the named operators; its hash is as before."""
    changed = {}
    for node, local in made.nodes.items():
        changed[node] = LocalPlan()
        changed[node].CopyFrom(local)
        names = {operator.id: operator.name for operator in local.operators}
        for unit in changed[node].units:
            unit.sub_deadline_ns = sub_deadlines_ns.get(names[unit.operators[0]], unit.sub_deadline_ns)
    return replace(made, nodes=changed)
