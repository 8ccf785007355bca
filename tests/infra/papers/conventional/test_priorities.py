"""Audsley's assignment beside every order there is; HOPA beside what it begins with."""

from itertools import permutations
from random import Random

from infra.papers.conventional.holistic import bounds_ns, holds
from infra.papers.conventional.priorities import audsley, by, hopa, rate_monotonic
from infra.papers.conventional.sub_deadlines import equal_flexibility, from_releases
from infra.papers.conventional.transactions import Activity, Event, Output, Step, Transactions
from tests.infra.papers.conventional.small_transactions import drawn


def one_node(dice: Random) -> Transactions:
    """Three to four activities with deadlines around their periods."""
    activities, outputs = [], []
    for number in range(dice.randint(3, 4)):
        period = dice.randint(6, 24)
        event = Event(period, 1, dice.choice((0, 0, period // 2)))
        activities.append(Activity(str(number), "a", event, (Step(dice.randint(1, 4), 0),)))
        outputs.append(Output(str(number), number, 1, 0, dice.randint(period // 3, 3 * period // 2)))
    return Transactions(tuple(activities), tuple(outputs))


def test_audsley_finds_an_order_wherever_there_is_one(seed: int) -> None:
    """On one node, where jitters are given: without preemption, too."""
    dice, with_order = Random(seed), 0
    for _ in range(30):
        of = one_node(dice)
        some = any(holds(of, bounds_ns(of, by(order))) for order in permutations(range(len(of.activities))))
        due = tuple(output.deadline_ns for output in of.outputs)
        assert holds(of, bounds_ns(of, audsley(of, due))) == some
        with_order += some
    assert 3 < with_order < 30


def test_hopa_is_never_farther_from_holding_than_what_it_begins_with(seed: int) -> None:
    for number in range(10):
        of = drawn(Random(1000 * seed + number))
        start = by(from_releases(of, equal_flexibility))
        assert holds(of, bounds_ns(of, hopa(of))) or not holds(of, bounds_ns(of, start))


def test_rate_monotonic_goes_by_periods_and_ties_by_place() -> None:
    activities = tuple(Activity(str(i), "a", Event(period), (Step(1, 0),)) for i, period in enumerate((30, 10, 30)))
    assert rate_monotonic(Transactions(activities, (Output("out", 0, 1, 0, 9),))).rank == (1, 0, 2)
