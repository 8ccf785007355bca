"""How likely a call takes longer than a cost, at most: against exact sums over all samples that there can be."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb, factorial, prod
from random import Random

import pytest

from coordinator.guarantee.confidence import quantile_limits
from coordinator.guarantee.confidence.quantile_limits import ENOUGH, of_sample, of_samples, upper_limit
from protos.plan.costs import CostDistribution


def _tail(n: int, most: int, p: Fraction) -> Fraction:
    return sum((comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(most + 1)), Fraction(0))


def _calls(values: dict[int, int], speed: float = 1.0) -> CostDistribution:
    return CostDistribution(node="a", speed=speed, calls=tuple(sorted((ns, n) for ns, n in values.items() if n)))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 25])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001, 1e-6])
def test_limits_are_those_of_exact_binomials(n: int, alpha: float) -> None:
    for above in range(n):
        p = Fraction(upper_limit(n, above, alpha))
        assert _tail(n, above, p) <= alpha
        assert _tail(n, above, p * Fraction(1 - 3 * ENOUGH)) > alpha
    assert upper_limit(n, n, alpha) == 1


def test_the_binomial_sum_of_a_large_sample_is_that_of_exact_ones() -> None:
    for n, most, of_256 in ((2000, 3, 1), (2000, 1000, 133), (1000, 950, 246), (500, 0, 2)):
        exact = sum(comb(n, k) * of_256**k * (256 - of_256) ** (n - k) for k in range(most + 1))
        found = quantile_limits.binomial_tail(n, most, of_256 / 256)
        assert found == pytest.approx(float(Fraction(exact, 256**n)), rel=1e-9)


@pytest.mark.parametrize("chances", [(1, 1, 1), (90, 9, 1), (1, 50, 49), (997, 2, 1)])
def test_of_all_samples_at_most_so_many_have_a_limit_that_is_wrong(chances: tuple[int, int, int]) -> None:
    """Every sample of a distribution of three costs, with its exact probability."""
    n, alpha, whole = 14, 0.1, sum(chances)
    wrong = Fraction(0)
    for first in range(n + 1):
        for second in range(n + 1 - first):
            counts = (first, second, n - first - second)
            ways = factorial(n) // prod(factorial(each) for each in counts)
            chance = ways * prod(Fraction(one, whole) ** k for one, k in zip(chances, counts, strict=True))
            found = of_sample(_calls(dict(zip((10, 20, 30), counts, strict=True))), alpha)
            longer = {step.cost_ns: sum(chances[step.cost_ns // 10 :]) / whole for step in found.steps}
            if any(longer[step.cost_ns] > step.exceeded for step in found.steps):
                wrong += chance
    assert wrong <= alpha


def test_steps_descend_and_say_of_any_cost_what_the_next_smaller_says(seed: int) -> None:
    dice = Random(seed)
    values = {dice.randrange(1, 10**6): dice.randrange(1, 50) for _ in range(60)}
    found = of_sample(_calls(values), 0.01)
    assert found.largest_ns == max(values)
    assert all(one.cost_ns > other.cost_ns and one.exceeded < other.exceeded for one, other in pairwise(found.steps))
    for cost in [*values, 0, 1, 10**7]:
        smaller = [step.exceeded for step in found.steps if step.cost_ns <= cost]
        assert found.exceeded(cost) == (min(smaller) if smaller else 1)


def test_of_two_nodes_the_worse_says_what_is_so() -> None:
    slow, quick = _calls({10: 500, 90: 500}), _calls({10: 990, 90: 10}, speed=2.0)
    both = of_samples([slow, quick], 0.01)
    assert both.largest_ns == 180  # 90 ns on a node of speed 2
    assert both.exceeded(180) >= max(of_sample(each, 0.005).exceeded(180) for each in (slow, quick))
    assert both.exceeded(20) >= 0.5


def test_so_many_calls_are_needed_and_one_fewer_does_not_do() -> None:
    for p in (0.3, 0.01, 2e-4):
        n = quantile_limits.samples_needed(p, 0.01)
        one = quantile_limits.share_of_alpha(0.01, 0)
        assert (1 - p) ** n <= one < (1 - p) ** (n - 1)
        assert upper_limit(n, 0, one) <= p * (1 + 2 * ENOUGH)


def test_ranks_share_no_more_than_there_is() -> None:
    count = len(list(quantile_limits.ranks(10**6)))
    assert sum(quantile_limits.share_of_alpha(0.01, position) for position in range(count)) <= 0.01
