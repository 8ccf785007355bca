"""What may be late, divided among operators: never more than there is, and against every way to divide it."""

from __future__ import annotations

from itertools import product
from random import Random

from coordinator.guarantee.confidence.late_budget import Spender, divided, evenly, least_late
from coordinator.guarantee.confidence.quantile_limits import Limit


def _drawn(dice: Random) -> dict[str, Spender]:
    found = {}
    for number in range(dice.randint(1, 4)):
        costs = sorted(dice.sample(range(1, 100), 4), reverse=True)
        chances = sorted(dice.uniform(0, 0.02) for _ in costs)
        choices = [Limit(cost, chance) for cost, chance in zip(costs, chances, strict=True)]
        found[f"O{number}"] = Spender(dice.randint(1, 6), dice.randint(0, 5), choices)
    return found


def _used(spenders: dict[str, Spender], limits: dict[str, Limit]) -> float:
    return sum(spenders[name].runs * limit.exceeded for name, limit in limits.items())


def _waited(spenders: dict[str, Spender], limits: dict[str, Limit]) -> int:
    return sum(spenders[name].waited * limit.cost_ns for name, limit in limits.items())


def test_no_more_is_used_than_may_be_late_and_the_best_is_near(seed: int) -> None:
    dice = Random(seed)
    found, best = 0, 0
    for _ in range(300):
        spenders = _drawn(dice)
        late = least_late(spenders) + dice.uniform(0, 0.1)
        limits = divided(spenders, late)
        assert _used(spenders, limits) <= late + 1e-12
        every = (
            dict(zip(spenders, each, strict=True)) for each in product(*(one.choices for one in spenders.values()))
        )
        least = min(_waited(spenders, each) for each in every if _used(spenders, each) <= late)
        largest = sum(one.waited * one.choices[0].cost_ns for one in spenders.values())
        assert least <= _waited(spenders, limits) <= largest
        found, best = found + largest - _waited(spenders, limits), best + largest - least
    assert found >= 0.9 * best


def test_nothing_more_fits_that_would_save(seed: int) -> None:
    dice = Random(seed)
    for _ in range(100):
        spenders = _drawn(dice)
        late = least_late(spenders) + dice.uniform(0, 0.1)
        limits = divided(spenders, late)
        left = late - _used(spenders, limits)
        for name, one in spenders.items():
            cheaper = [each for each in one.choices if each.cost_ns < limits[name].cost_ns and one.waited]
            assert all(one.runs * (each.exceeded - limits[name].exceeded) > left - 1e-12 for each in cheaper)


def test_even_shares_are_within_it_where_the_largest_costs_are(seed: int) -> None:
    dice = Random(seed)
    for _ in range(100):
        spenders = _drawn(dice)
        late = len(spenders) * max(one.runs * one.choices[0].exceeded for one in spenders.values())
        assert _used(spenders, evenly(spenders, late)) <= late + 1e-12
