"""`coordinator explain --time-limit`: seconds of all that is planned, the query's own plan among it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.cli.commands import explain
from coordinator.errors import Mistake, OutOfTimeError
from coordinator.solve import planner
from coordinator.solve.repair import repair_search
from tests.command_line import run
from tests.coordinator.solve.repair.infeasible_cases import CASES


@pytest.fixture
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the search for what would mend it gets; planning takes seven of a made-up clock."""
    (tmp_path / "query.yaml").write_text(CASES["deadline"].query)
    (tmp_path / "cluster.yaml").write_text(CASES["deadline"].cluster)
    found: list[float] = []
    instants = iter([100.0, 107.0])
    monkeypatch.setattr(explain, "time", SimpleNamespace(monotonic=lambda: next(instants)))

    def find(_case: object, seconds: float, _tell: Callable[[str], None], now: Any) -> repair_search.Findings:
        found.append(seconds)
        return repair_search.Findings(now)

    monkeypatch.setattr(repair_search, "find", find)
    return found


@pytest.mark.parametrize(("limit", "left"), [(10, 3.0), (5, 0.0)])
def test_the_plan_counts(looked: list[float], tmp_path: Path, limit: int, left: float) -> None:
    assert run(tmp_path, f"coordinator explain query.yaml cluster.yaml --time-limit {limit}").code == 0
    assert looked == [left]


def test_a_query_without_a_plan_in_time_is_not_called_infeasible(
    looked: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*_: object) -> None:
        raise OutOfTimeError(Mistake("out_of_time", "no placement was found"))

    monkeypatch.setattr(planner, "plan", plan)
    done = run(tmp_path, "coordinator explain query.yaml cluster.yaml --time-limit 10")
    assert done.code == 0 and "Query q has no plan yet" in done.out and looked == [3.0]
