"""The benchmark of policies: what it says, not how much."""

import pytest

from infra.bench.engine import policies
from node_agent.core.policies import POLICIES


def test_every_policy_has_its_figures_for_every_number_of_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "UNITS", (2, 3))
    monkeypatch.setattr(policies, "TUPLES", 30)
    monkeypatch.setattr(policies, "ROUND_TUPLES", 10)
    monkeypatch.setattr(policies, "ROUNDS", 2)
    policies.lineages.cache_clear()
    try:
        figures = policies.policies()
    finally:
        policies.lineages.cache_clear()
    names = {*POLICIES, "edf:batch=8", "slack:batch=8"}
    assert {each.name for each in figures} == {
        f"policy.{name}.{units}{us}" for name in names for units in (2, 3) for us in ("", "_us")
    }
    assert policies.table(figures).row_count == len(names)


@pytest.mark.parametrize(("path", "goal"), [("/a/job_queues.py", None), ("/a/job_queues.so", 1.5)])
def test_what_is_compiled_has_a_goal_and_the_table_says_what_misses_it(
    monkeypatch: pytest.MonkeyPatch, path: str, goal: float | None
) -> None:
    monkeypatch.setattr(policies.job_queues, "__file__", path)
    monkeypatch.setattr(policies, "UNITS", (10,))
    monkeypatch.setattr(policies, "costs", lambda units, given: [policies.Cost("slack", units, 900.0, 1.6)])
    figures = policies.policies()
    assert [each.goal for each in figures] == [None, goal]
    [cell] = policies.table(figures).columns[1].cells
    assert cell == ("0.90  1.60x" if goal is None else "missed  0.90  1.60x")
