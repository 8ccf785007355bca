"""The benchmark of policies: what it says, not how much."""

import pytest

from infra.bench import policies
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
    assert len(figures) == len(POLICIES) * 2 * 4
    assert all(each.name.startswith(policies.NAMED) and each.value > 0 and each.goal is None for each in figures)
    assert policies.table(figures).row_count == len(POLICIES)
