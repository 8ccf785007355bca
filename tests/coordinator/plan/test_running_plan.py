"""Query and cluster rebuilt from plan.json alone: as they were loaded, in all that planning uses, and the same plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.model.choices import Choices
from coordinator.plan import running_plan
from coordinator.solve import planner
from coordinator.spec import core_assignment, graph, input_files
from coordinator.spec.cluster import Cluster
from coordinator.spec.files.query_file import SelectivityFile
from coordinator.spec.query import Operator, Query
from coordinator.spec.sharing import compose
from infra.bench.planner.instances import Recipe, write
from protos import plan_document
from protos.plan_document import Plan
from tests.coordinator.spec.sharing.random_queries import several

QUERIES = Path(__file__).parents[3] / "sim_vehicles" / "queries"


def assert_rebuilt(query: Query, cluster: Cluster, types: dict[str, str], plan: Plan) -> None:
    """Every field but the files and their lines; nodes that an operator may run on as those that are left."""
    found = running_plan.read(plan_document.of(plan.to_json()))
    assert found.cluster == replace(cluster, file=found.cluster.file)
    assert found.types == types
    assert found.members == query.parts
    assert (found.place, found.sub_deadlines_ns) == (plan.placement, plan.sub_deadlines_ns)
    assert [replace(one, keys=()) for one in found.query.sources] == [replace(one, keys=()) for one in query.sources]
    assert [replace(one, keys=()) for one in found.query.outputs] == [replace(one, keys=()) for one in query.outputs]
    assert (found.query.name, found.query.sha256) == (query.name, query.sha256)
    for now, then in zip(found.query.operators, query.operators, strict=True):
        assert core_assignment.allowed(now, found.cluster) == core_assignment.allowed(then, cluster)
        assert replace(now, keys=(), nodes=None) == replace(then, keys=(), nodes=None, selectivity=_needed(then))


def _needed(operator: Operator) -> SelectivityFile | None:
    """What a filter declares is not needed where its parameters say the same."""
    declared, given = operator.selectivity, operator.parameters
    if operator.run != "filter" or declared is None:
        return declared
    keep, of = given.get("keep", 1), given.get("of", 2)
    return None if (declared.mean, declared.at_most) == (keep / of, [(of, keep)]) else declared


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2]), st.booleans())
def test_queries_rebuilt_and_planned_again(seed: int, cores: int, share: bool) -> None:
    """Also the whole plan, hash and all: `paper` and its search are deterministic here."""
    _, queries, cluster = several(seed, 2, cores)
    query = compose.compose(queries, cluster, share).query
    types = dict(graph.types(query, cluster.catalog))
    choices = Choices(allocator="sqpr", sub_deadlines="proportional", quick=True)
    plan = planner.plan(query, cluster, types, choices)
    assert_rebuilt(query, cluster, types, plan)
    found = running_plan.read(plan)
    assert planner.plan(found.query, found.cluster, found.types, choices) == plan


@pytest.mark.parametrize("name", ["collision_paper", "collision_guaranteed", "collision_warning"])
@pytest.mark.parametrize("model", ["paper", "sound"])
def test_the_shipped_queries(name: str, model: Any) -> None:
    query, cluster, types = input_files.read_files(QUERIES / f"{name}.yaml", QUERIES / "cluster_paper.yaml")
    assert cluster is not None
    place = {"O3": "a"} if name != "collision_paper" else {}
    choices = Choices(model=model, best_effort=True, quick=True, place=place)
    plan = planner.plan(query, cluster, types, choices)
    assert_rebuilt(query, cluster, types, plan)
    found = running_plan.read(plan)
    assert planner.plan(found.query, found.cluster, found.types, choices) == plan


def test_a_generated_instance(tmp_path: Path) -> None:
    query, cluster, types = input_files.read_files(*write(Recipe(10, 60), tmp_path))
    assert cluster is not None
    plan = planner.plan(query, cluster, types, Choices(allocator="sqpr", sub_deadlines="proportional"))
    assert_rebuilt(query, cluster, types, plan)
