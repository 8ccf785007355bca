"""What a run tells of a bound that a share of the results is to keep."""

from __future__ import annotations

from math import comb

import pytest

from coordinator.report.summary.confidence_counts import DOUBT, held_share


def _at_most(n: int, k: int, p: float) -> float:
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize(("results", "beyond"), [(1, 0), (20, 0), (20, 1), (50, 50), (60, 7)])
def test_limits_are_those_of_the_binomial_distribution(results: int, beyond: int) -> None:
    found = held_share(0.99, results, beyond)
    assert found.least <= beyond / results <= found.most
    if beyond < results:
        assert _at_most(results, beyond, found.most) == pytest.approx(DOUBT, rel=1e-3)
    if beyond:
        assert 1 - _at_most(results, beyond - 1, found.least) == pytest.approx(DOUBT, rel=1e-3)


def test_a_run_shows_that_it_is_kept_that_it_is_not_or_is_too_small() -> None:
    needed = held_share(0.999, 0, 0).needed
    assert held_share(0.999, needed, 0).says == "kept"
    assert held_share(0.999, needed - 1, 0).says == "open"
    assert held_share(0.999, 0, 0).says == "open"
    assert held_share(0.999, 10_000, 30).says == "broken"
    assert held_share(0.999, 10_000, 10).says == "open"
    assert held_share(0.999, 100_000, 10).says == "kept"
