"""A query with every kind of window, a limit and what becomes of late tuples, on two nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from protos.plan_document import Plan

FOLDER = Path(__file__).parent
EXAMPLE = FOLDER / "example_query.yaml", FOLDER / "example_cluster.yaml"


@cache
def _planned(model: str) -> Plan:
    return planner.make_plan(*EXAMPLE, Choices(model=model, quick=True))  # type: ignore[arg-type]


@pytest.fixture
def example_plan() -> Callable[..., Plan]:
    """The plan of example_query.yaml, by model (`sound` unless given); not to be changed."""
    return lambda model="sound": _planned(model)
