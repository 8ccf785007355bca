"""Files for the planner's tests: the paper's query for any n, small queries, one of every kind of window."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from protos.plan_document import Plan

QUERIES = Path(__file__).parents[2] / "sim_vehicles" / "queries"
SPEC = Path(__file__).parent / "spec"
EXAMPLE = SPEC / "example_query.yaml", SPEC / "example_cluster.yaml"


@pytest.fixture
def paper(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """query.yaml and cluster.yaml of the collision query with n V2V tuples in a burst."""

    def write(n: int) -> tuple[Path, Path]:
        text = (QUERIES / "collision_paper.yaml").read_text()
        assert "burst: 20" in text
        query, cluster = tmp_path / f"query_{n}.yaml", tmp_path / "cluster.yaml"
        query.write_text(text.replace("burst: 20", f"burst: {n}"))
        cluster.write_text((QUERIES / "cluster_paper.yaml").read_text())
        (tmp_path / "operators.json").write_text((QUERIES / "operators.json").read_text())
        return query, cluster

    return write


@pytest.fixture
def paper_plan(paper: Callable[..., tuple[Path, Path]]) -> Callable[..., Plan]:
    """The plan of the collision query with n V2V tuples in a burst and these choices, model `paper` unless given."""

    def make(n: int, **choices: Any) -> Plan:
        return planner.make_plan(*paper(n), Choices(**({"model": "paper"} | choices)))

    return make


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str, str], tuple[Path, Path]]:
    """query.yaml and cluster.yaml with the given text."""

    def write(query: str, cluster: str) -> tuple[Path, Path]:
        paths = tmp_path / "query.yaml", tmp_path / "cluster.yaml"
        paths[0].write_text(query)
        paths[1].write_text(cluster)
        return paths

    return write


@cache
def _planned(model: str) -> Plan:
    return planner.make_plan(*EXAMPLE, Choices(model=model, quick=True))  # type: ignore[arg-type]


@pytest.fixture
def example_plan() -> Callable[..., Plan]:
    """The plan of example_query.yaml, which has every kind of window, a limit and what becomes of late tuples, on two
    nodes; by model (`sound` unless given); not to be changed."""
    return lambda model="sound": _planned(model)
