"""More work, more jitter, a rival more: no bound is less. And beside the product's analysis of the same plans."""

from dataclasses import replace
from random import Random

import pytest

from coordinator.guarantee.analysis import unit_by_unit
from coordinator.guarantee.bounds import claims
from coordinator.spec.runtime_charges import NOTHING
from infra.bench.tightness.attack import Attack, Slow, Which
from infra.bench.tightness.edf_cluster import EdfCluster
from infra.papers.conventional.drawn_transactions import case
from infra.papers.conventional.edf import Edf
from infra.papers.conventional.holistic import Scheduling, bounds_ns
from infra.papers.conventional.placed_query import PlacedQuery
from infra.papers.conventional.sub_deadlines import equal_flexibility, from_releases
from infra.papers.conventional.transactions import Activity, Transactions
from tests.infra.papers.conventional.small_transactions import drawn, schedulings
from tests.sampling import sample


def more(of: Transactions, dice: Random) -> Transactions:
    """One activity costs more, or the events that release it come with more jitter, or in larger bursts."""
    chosen, kind = dice.randrange(len(of.activities)), dice.choice(("cost", "jitter", "burst"))

    def changed(number: int, activity: Activity) -> Activity:
        event = activity.event
        if kind == "cost" and number == chosen:
            first = activity.steps[0]
            return replace(activity, steps=(replace(first, cost_ns=first.cost_ns + 1), *activity.steps[1:]))
        if event is of.activities[chosen].event and kind == "jitter":
            return replace(activity, event=replace(event, jitter_ns=event.jitter_ns + 2))
        if event is of.activities[chosen].event and kind == "burst":
            return replace(activity, event=replace(event, burst=event.burst + 1))
        return activity

    return replace(of, activities=tuple(changed(number, each) for number, each in enumerate(of.activities)))


def largest(bound: int | None) -> int:
    return 10**9 if bound is None else bound


def test_more_of_anything_never_makes_a_bound_less(seed: int) -> None:
    for number in range(10):
        dice = Random(1000 * seed + number)
        of = drawn(dice)
        loaded = more(of, dice)
        for scheduling, _ in schedulings(of, dice):
            before, after = bounds_ns(of, scheduling), bounds_ns(loaded, scheduling)
            assert all(largest(before[name]) <= largest(after[name]) for name in before), number


def bounds(query: PlacedQuery) -> tuple[dict[str, int | None], dict[str, int | None], dict[str, int | None]]:
    """By holistic analysis, by the product's unit by unit, and as it promises, of the same sub-deadlines."""
    dues_ns = from_releases(query.transactions, equal_flexibility)
    scheduling: Scheduling = Edf(dues_ns)
    system = query.candidate.with_deadlines(dict(zip(query.system.order, dues_ns, strict=True)))
    summed = {name: claim.from_admission_ns for name, claim in claims(unit_by_unit(system, NOTHING, 1)).items()}
    return bounds_ns(query.transactions, scheduling), summed, dict(query.our_bounds_ns(dues_ns))


@pytest.mark.parametrize("query_seed", sample(range(1, 21), 10))
def test_without_least_costs_the_holistic_bound_is_ours_unit_by_unit_or_below_it(query_seed: int) -> None:
    """It is ours where no jitter is above its period: two implementations of one analysis, from the same papers."""
    for utilisation in (0.2, 0.4):
        query = PlacedQuery.of(case(query_seed, utilisation))
        holistic, summed, ours = bounds(query)
        for name, ns in holistic.items():
            if ns is not None and (own_ns := summed[name]) is not None:
                assert ns <= own_ns and largest(ours[name]) <= own_ns
                if all(each.event.jitter_ns + ns < each.event.period_ns for each in query.transactions.activities):
                    assert ns == own_ns


def test_whole_ways_count_once_what_holistic_analysis_counts_unit_by_unit() -> None:
    """So what plans promise is below it on some query here, and sums of units are above it on some."""
    found = [bounds(PlacedQuery.of(case(number, 0.4))) for number in range(1, 4)]
    triples = [(holistic[name], summed[name], ours[name]) for holistic, summed, ours in found for name in holistic]
    known = [(ns, sum_ns, own_ns) for ns, sum_ns, own_ns in triples if ns and sum_ns and own_ns]
    assert any(ns < sum_ns for ns, sum_ns, _ in known) and any(own_ns < ns for ns, _, own_ns in known)


@pytest.mark.parametrize("query_seed", sample(range(1, 13), 12))
def test_no_drawn_attack_is_longer_than_the_holistic_bound(query_seed: int) -> None:
    """On the cluster that measures how tight the product's bounds are; it reads plans and knows no transactions."""
    query = PlacedQuery.of(case(query_seed, 0.5))
    dues_ns = from_releases(query.transactions, equal_flexibility)
    holistic = bounds_ns(query.transactions, Edf(dues_ns))
    system = query.candidate.with_deadlines(dict(zip(query.system.order, dues_ns, strict=True)))
    seen = attacked(EdfCluster(system, 400 * 10**6), Random(query_seed))
    for name, ns in holistic.items():
        assert ns is None or seen.get(name, 0) <= ns


def attacked(cluster: EdfCluster, dice: Random) -> dict[str, int]:
    """The longest of each output in phases and pauses that are drawn, all at their worst costs or some at their
    least."""
    found: dict[str, int] = {}
    operators = [stage.operator for unit in cluster.system.units.values() for stage in unit.stages]
    for turn in range(30):
        attack = Attack(
            phase_ns={name: dice.randrange(200 * 10**6) for name in cluster.system.sources},
            slow={
                name: Slow(dice.choice(list(Which)), dice.randrange(8))
                for name in operators
                if turn and dice.random() < 0.5
            },
            first=frozenset(unit for unit in cluster.system.units if dice.random() < 0.5),
        )
        for name, longest in cluster.run(attack).took.items():
            found[name] = max(found.get(name, 0), longest.ns)
    return found
