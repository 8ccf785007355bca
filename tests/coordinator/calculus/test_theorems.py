"""[Q]'s theorems and reference values of other tools, exactly: Nancy, DiscoDNC, response-time-analysis; table 3."""

from fractions import Fraction
from itertools import islice

import pytest

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Jcp, RateBurst
from coordinator.calculus.demand import UnboundedError, task
from coordinator.calculus.response import responses
from coordinator.calculus.service import (
    DelayBound,
    RateLatency,
    composite,
    deadlines,
)
from coordinator.calculus.theorems import QosQuery, sharper, theorem4, theorem5
from coordinator.errors import MistakeError
from tests.coordinator.calculus.service_rules import FirstWithin, QueueBound
from tests.sentences import refused

EPSILON = Fraction(1, 10**9)


# -- deadlines, theorem 2


def test_rate_latency_deadlines_are_theorem_2() -> None:
    """D_n = max(a_n + L, D_{n-1}) + 1/P against max over j of a_j + beta^-1(n-j+1); the first is L + 1/P."""
    service = RateLatency(Fraction(3, 20), Fraction(3))
    arrivals = [Fraction(each) for each in (0, 5, 6, 30, 31, 31)]
    found = list(deadlines(arrivals, service))
    assert found[0] == Fraction(29, 3)
    for n in range(1, len(arrivals) + 1):
        assert found[n - 1] == max(arrivals[j - 1] + service.inverse(n - j + 1) for j in range(1, n + 1))


def test_the_other_rules() -> None:
    stream = Bursts(2, 10)
    arrivals = [stream.span(n) for n in range(1, 7)]
    assert list(deadlines(arrivals, DelayBound(4))) == [4, 4, 14, 14, 24, 24]
    assert next(deadlines(arrivals, FirstWithin(7))) == 7
    assert list(deadlines(arrivals, QueueBound(stream, 2))) == [10, 10, 20, 20, 30, 30]  # before two more may come
    both = list(composite(arrivals, [DelayBound(25), RateLatency(Fraction(1, 10), 0)]))
    assert both == [10, 20, 30, 35, 45, 45]  # the rate asks for 10, 20, ... 60


# -- table 3


def table3() -> list[QosQuery]:
    stream = Jcp(Fraction(4), Fraction(5, 4), Fraction(10))
    return [
        QosQuery("Q1", stream, DelayBound(Fraction(10)), Fraction(3, 2)),
        QosQuery("Q2", stream, DelayBound(Fraction(13)), Fraction(2)),
        QosQuery("Q3", stream, DelayBound(Fraction(10)), Fraction(3, 2)),
        QosQuery(
            "Q4", RateBurst(1, Fraction(1, 5), whole=False), RateLatency(Fraction(3, 20), Fraction(3)), Fraction(7, 5)
        ),
    ]


def test_table_3_without_sharing_has_no_plan_at_all() -> None:
    assert theorem4(table3()).utilisation == Fraction(146, 100)
    assert not theorem4(table3()).admitted and theorem4(table3()).t is None


@pytest.mark.parametrize(
    ("test", "threshold"),
    [
        (lambda shared: theorem5(table3(), 3, shared), Fraction(221, 180)),
        (lambda shared: sharper(table3(), 3, shared), Fraction(66, 65)),
        (lambda shared: sharper(table3(), 3, shared, ["Q4"]), Fraction(209, 180)),
    ],
    ids=["theorems 4 and 5", "sharper", "a rate-latency stream always blocks"],
)
def test_table_3_becomes_schedulable_at_exactly(test: object, threshold: Fraction) -> None:
    assert test(threshold).admitted  # type: ignore[operator]
    assert not test(threshold - EPSILON).admitted  # type: ignore[operator]


def test_the_printed_914_us_is_beyond_utilisation_alone() -> None:
    assert sharper(table3(), 3, Fraction(92, 100)).utilisation == 1
    refused = sharper(table3(), 3, Fraction(914, 1000))
    assert refused.utilisation > 1 and not refused.admitted and refused.t is None


def test_more_arrivals_than_service_leave_delay_and_queue_unbounded() -> None:
    assert [query.unbounded for query in table3()] == [False, False, False, True]


def test_a_query_without_cost_is_refused() -> None:
    with refused("not_above_zero", MistakeError):
        QosQuery("Q", Bursts(1, 1), DelayBound(1), 0)


# -- one node


def test_non_preemptive_edf_of_response_time_analysis() -> None:
    tasks = [
        task("1", Bursts(1, 120), 50, 79),
        task("2", Bursts(1, 34), 100, 11),
        task("3", Bursts(1, 190), 120, 1),
    ]
    assert {name: each.end for name, each in responses(tasks).items()} == {"1": 90, "2": 91, "3": 121}
    verdict = demand.test(tasks)
    assert not verdict.holds
    assert (verdict.u, verdict.demand, verdict.excess) == (50, 90, 40)
    assert verdict.terms == (("1", 1, 79),) and verdict.blocker == ("2", 11)


def test_a_full_node_has_no_bound() -> None:
    with refused("overloaded", UnboundedError):
        demand.test([task("1", Bursts(1, 10), 10, 5), task("2", Bursts(1, 10), 10, 5)])


def test_a_nearly_full_node_has_a_finite_horizon() -> None:
    assert demand.test([task("1", Bursts(1, 10), 10, 5), task("2", Bursts(1, 1000), 1000, 499)]).holds is False
    assert demand.test([task("1", Bursts(1, 10), 15, 5), task("2", Bursts(1, 1000), 1000, 5)]).holds


def test_a_busy_period_without_end_in_sight_is_said_to_be_one() -> None:
    with refused("busy_period_too_long", UnboundedError):
        demand.test([task("1", Bursts(1, 10**6), 10, 10**6 - 2), task("2", Bursts(10**6, 10**12), 10, 1)])


@pytest.mark.parametrize("given", [{"cost": 0}, {"deadline": 0}, {"batch": 0}])
def test_zeros_are_refused(given: dict[str, int]) -> None:
    with refused("not_above_zero", MistakeError):
        task(**({"name": "1", "curve": Bursts(1, 10), "deadline": 5, "cost": 1} | given))  # type: ignore[arg-type]


def test_batches_hold_up_others_and_their_own_head() -> None:
    """Two jobs of A, batches of 2; the second is released with the first or just after it: both end together."""
    a, b = task("A", Bursts(2, 100), 50, 10, batch=2), task("B", Bursts(1, 100), 20, 5)
    found = {name: each.end for name, each in responses([a, b]).items()}
    assert found["B"] == 25  # a whole batch of A has just begun
    single = responses([task("A", Bursts(2, 100), 50, 10), b])["B"].end
    assert single == 15


def test_deadlines_are_generated_one_by_one() -> None:
    endless = deadlines(iter(range(0, 10**12)), RateLatency(Fraction(1), 0))
    assert list(islice(endless, 3)) == [1, 2, 3]
