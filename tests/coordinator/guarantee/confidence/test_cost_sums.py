"""What instances in a row take at most: against the exact distribution of their sum."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from random import Random

import pytest

from coordinator.calculus.curves import Bursts
from coordinator.calculus.demand import Task
from coordinator.calculus.selectivity import ONE, Selectivity
from coordinator.guarantee.confidence.cost_sums import GRID, sums
from coordinator.guarantee.confidence.quantile_limits import Limit


def _rows(choices: list[Limit], certain_ns: int, length: int) -> list[dict[int, Fraction]]:
    """The distribution of each sum, of calls that take the larger end of their step."""
    one, before, longer = {}, certain_ns, Fraction(0)
    for each in choices:
        one[before] = one.get(before, Fraction(0)) + Fraction(each.exceeded) - longer
        before, longer = each.cost_ns, Fraction(each.exceeded)
    one[before] = one.get(before, Fraction(0)) + 1 - longer
    found = [{0: Fraction(1)}]
    for _ in range(length):
        row: dict[int, Fraction] = defaultdict(Fraction)
        for a, chance in found[-1].items():
            for b, other in one.items():
                row[a + b] += chance * other
        found.append(row)
    return found[1:]


@pytest.mark.parametrize("exceeded", [0.2, 1e-3, 1e-7])
def test_sums_are_exceeded_as_seldom_as_asked_and_no_larger_than_the_grid_makes_them(
    exceeded: float, seed: int
) -> None:
    dice = Random(seed)
    for _ in range(5):
        costs = sorted(dice.sample(range(1, 2000), 3), reverse=True)
        chances = sorted(dice.choice([1e-6, 1e-3, 0.05, 0.3]) * dice.uniform(0.5, 1) for _ in costs)
        choices = [Limit(cost, chance) for cost, chance in zip(costs, chances, strict=True)]
        certain = costs[0] + dice.randrange(500)
        found = sums(choices, certain, 5, exceeded)
        cell = -(-certain // GRID)
        for n, (most, row) in enumerate(zip(found, _rows(choices, certain, 5), strict=True), start=1):
            assert sum(chance for total, chance in row.items() if total > most) <= exceeded
            smaller = most - n * cell - 1
            assert smaller < 0 or sum(chance for total, chance in row.items() if total > smaller) > exceeded * 0.999
            assert most <= n * certain


def test_sums_of_a_task_take_the_place_of_its_costs() -> None:
    twice = Selectivity(((1, 2),))
    one = Task("unit", Bursts(1, 100), 50, ((10, ONE), (5, twice)), sums=((10, 14, 17), ()))
    assert [one.work(jobs) for jobs in (0, 1, 2, 3, 4, 7)] == [0, 20, 34, 47, 17 + 10 + 40, 2 * 17 + 10 + 70]
    assert one.work(2, 1) == 14
    assert one.utilisation == Fraction(17, 300) + Fraction(2 * 5, 100)
    assert all(one.work(a + b) <= one.work(a) + one.work(b) for a in range(8) for b in range(8))
