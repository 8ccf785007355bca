"""A query with every kind of window, a limit and what becomes of late tuples, on two nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator import planner

FOLDER = Path(__file__).parent
EXAMPLE = FOLDER / "example_query.yaml", FOLDER / "example_cluster.yaml"


@cache
def _planned(model: str) -> dict[str, Any]:
    return planner.make_plan(*EXAMPLE, planner.Choices(model=model, quick=True))  # type: ignore[arg-type]


@pytest.fixture
def example_plan() -> Callable[..., dict[str, Any]]:
    """plan.json of example_query.yaml, by model (`sound` unless given); not to be changed."""
    return lambda model="sound": _planned(model)
