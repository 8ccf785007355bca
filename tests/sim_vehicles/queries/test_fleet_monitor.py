"""The fleet's query beside the collision warning: one operator more, and every output of both is guaranteed."""

from __future__ import annotations

from pathlib import Path

from coordinator.guarantee import bounds
from coordinator.model.choices import Choices
from coordinator.plan import running_plan
from coordinator.solve import planner
from coordinator.spec import input_files
from coordinator.spec.sharing import compose

QUERIES = Path(__file__).parents[3] / "sim_vehicles" / "queries"
TOGETHER = [QUERIES / "collision_guaranteed.yaml", QUERIES / "fleet_monitor.yaml"]


def test_the_fleet_costs_the_warning_nothing() -> None:
    """Deadlines and bounds in ms, charges for the runtime as assumed: control and warning are as they are alone."""
    plan = planner.make_plan(TOGETHER, QUERIES / "cluster_paper.yaml", Choices())
    alone = planner.make_plan(TOGETHER[:1], QUERIES / "cluster_paper.yaml", Choices())
    both = {name: (claim.bound_ns or 0) / 1e6 for name, claim in plan.guarantee.items()}
    assert all(claim.guaranteed for claim in plan.guarantee.values())
    assert set(both) == {"control", "warning", "advisory", "whereabouts", "tracks"}
    for name in ("control", "warning"):
        assert both[name] * 1e6 == alone.guarantee[name].bound_ns
    assert {name: round(both[name], 2) for name in ("control", "warning")} == {"control": 14.92, "warning": 293.16}
    assert both["whereabouts"] == both["control"], "the same results of the same operator"
    assert both["advisory"] > (alone.guarantee["advisory"].bound_ns or 0) / 1e6, "which the sample stands before"
    assert {name: claim.guaranteed for name, claim in bounds.bounds(plan).items()} == dict.fromkeys(both, True)
    found = running_plan.read(plan)
    assert list(found.members) == ["collision_guaranteed", "fleet_monitor"]
    assert [one.name for one in found.query.operators if one.name not in found.composite.shared][-1] == "sample"


def test_all_but_the_sample_is_shared_whatever_it_is_called() -> None:
    query, cluster, _ = input_files.read_files(TOGETHER, QUERIES / "cluster_paper.yaml")
    assert cluster is not None
    members = query.parts["fleet_monitor"]
    shared = compose.of(query).shared
    assert list(shared) == ["O1", "O2", "O3", "O4", *(f"O{number}" for number in range(7, 14))]
    assert members.operators == (*shared, "sample")
    assert members.called["O13"] == "sure"
