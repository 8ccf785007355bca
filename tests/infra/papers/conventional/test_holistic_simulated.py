"""No story makes a transaction longer than the holistic analysis says, by any scheduling."""

from itertools import product
from random import Random

import pytest

from infra.papers.conventional.edf import Edf
from infra.papers.conventional.holistic import bounds_ns
from infra.papers.conventional.priorities import by
from infra.papers.conventional.transactions import Activity, Event, Output, Step, Transactions
from tests.infra.papers.conventional.small_cluster import Key, Story, worst
from tests.infra.papers.conventional.small_transactions import drawn, schedulings, worst_of_some


def broken(seed: int, stories: int) -> tuple[int, list[str]]:
    """Bounds looked at, and those that a story breaks."""
    dice = Random(seed)
    of = drawn(dice)
    looked, found = 0, []
    for scheduling, key in schedulings(of, dice):
        bounds = bounds_ns(of, scheduling)
        if any(each is None for each in bounds.values()):
            continue
        seen = worst_of_some(of, key, dice, stories)
        looked += len(seen)
        found += [
            f"set {seed}, {scheduling}, {name}: {seen[name]} > {bounds[name]}"
            for name in seen
            if seen[name] > (bounds[name] or 0)
        ]
    return looked, found


def test_no_story_is_longer_than_its_bound(seed: int) -> None:
    results = [broken(1000 * seed + number, 20) for number in range(25)]
    assert sum(looked for looked, _ in results) > 15
    assert [text for _, found in results for text in found] == []


@pytest.mark.soak
def test_no_story_of_many_is_longer_than_its_bound(seed: int) -> None:
    results = [broken(100_000 * seed + number, 150) for number in range(400)]
    assert sum(looked for looked, _ in results) > 300
    assert [text for _, found in results for text in found] == []


def _one_node(tasks: list[tuple[int, int]]) -> Transactions:
    """(C, T) each."""
    activities = tuple(
        Activity(str(number), "a", Event(period), (Step(cost, cost),)) for number, (cost, period) in enumerate(tasks)
    )
    return Transactions(activities, tuple(Output(str(number), number, 1, 0, 100) for number in range(len(tasks))))


def _exhaustive(of: Transactions, key: Key, last: int) -> dict[str, int]:
    found = {output.name: 0 for output in of.outputs}
    periods = [each.event.period_ns for each in of.activities]
    for phases in product(*(range(period) for period in periods)):
        events = {
            number: range(phase, last, period)
            for number, (phase, period) in enumerate(zip(phases, periods, strict=True))
        }
        for late in range(len(periods)):
            for name, took in worst(of, key, Story(events, 0, frozenset({late}), 0)).items():
                found[name] = max(found[name], took)
    return found


@pytest.mark.parametrize("tasks", [[(1, 4), (2, 6), (1, 5)], [(3, 8), (2, 5)], [(2, 4), (3, 7)]], ids=str)
def test_on_one_node_every_bound_is_reached_but_for_the_instant_that_a_blocker_begins_before(
    tasks: list[tuple[int, int]],
) -> None:
    """All phases in whole ticks: a blocker begins a whole tick before, not an instant."""
    of = _one_node(tasks)
    rank = by([period for _, period in tasks])
    due = tuple(2 * period for _, period in tasks)
    for scheduling, key in (
        (rank, lambda number, released, event: rank.rank[number]),
        (Edf(due), lambda number, released, event: released + due[number]),
    ):
        bounds = bounds_ns(of, scheduling)
        seen = _exhaustive(of, key, 60)
        for name, bound in bounds.items():
            assert bound is not None and bound - 1 <= seen[name] <= bound
