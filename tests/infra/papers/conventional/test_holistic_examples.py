"""Figures that others have published, or that a pencil gives."""

from infra.papers.conventional.edf import Edf
from infra.papers.conventional.fixed_priority import FixedPriorities
from infra.papers.conventional.holistic import bounds_ns
from infra.papers.conventional.transactions import Activity, Event, Output, Release, Step, Transactions


def one_node(*tasks: tuple[int, int]) -> Transactions:
    """(C, T) each."""
    activities = [Activity(f"t{i}", "a", Event(period), (Step(cost, 0),)) for i, (cost, period) in enumerate(tasks)]
    return Transactions(
        tuple(activities), tuple(Output(f"t{i}", i, 1, 0, period) for i, (_, period) in enumerate(tasks))
    )


def test_messages_of_davis_burns_bril_and_lukkien_2007() -> None:
    """Table 1: 1 ms each, periods of 2.5, 3.5 and 3.5 ms: C's second message takes 3.5 ms, not the 3 of its first."""
    found = bounds_ns(one_node((1000, 2500), (1000, 3500), (1000, 3500)), FixedPriorities((0, 1, 2)))
    assert found == {"t0": 2000, "t1": 3000, "t2": 3500}


def test_the_set_of_the_theory_under_edf() -> None:
    """(C, T) = (79, 120), (11, 34), (1, 190) with d = 50, 100, 120: 90, 91, 121 in continuous time."""
    of = one_node((79, 120), (11, 34), (1, 190))
    assert bounds_ns(of, Edf((50, 100, 120))) == {"t0": 90, "t1": 91, "t2": 121}
    assert bounds_ns(of, Edf((50, 100, 120), "global")) == {"t0": 90, "t1": 91, "t2": 121}


def transaction(period: int) -> Transactions:
    """Two activities on two nodes, a rival on each: C = 2 and 3, the rivals 4 every 20 and 1 every 4."""
    event = Event(period)
    return Transactions(
        (
            Activity("first", "a", event, (Step(2, 1),)),
            Activity("beside", "a", Event(20), (Step(4, 0),)),
            Activity("second", "b", event, (Step(3, 0),), Release(0, 1, 1)),
            Activity("before", "b", Event(4), (Step(1, 0),)),
        ),
        (Output("out", 2, 1, 2, 40),),
    )


def test_a_transaction_over_two_nodes_by_hand() -> None:
    """First: blocked for 4, ends at 6; released on b at 7 at most and 1 at least, so with a jitter of 6. Period 20:
    one job of its own; starts behind the rival's of 0, ends 4 after its release: 7 + 4, and the link of 2. Period 6:
    two jobs may come at once, the second with an event 6 later: it starts at 5 (rivals at 0, 4), ends at 8: 7 + 8 - 6;
    the first ends later after its event. So both are 13."""
    first = FixedPriorities((0, 1, 3, 2))
    assert bounds_ns(transaction(20), first) == {"out": 13}
    assert bounds_ns(transaction(6), first) == {"out": 13}


def test_a_filter_lets_the_jobs_behind_it_come_half_as_often() -> None:
    """Three events at once: O3 takes 1 for each, the rest 10 for the two that pass; on b these two."""
    event = Event(100, 3)
    of = Transactions(
        (
            Activity("filter", "a", event, (Step(1, 0), Step(10, 0, 2))),
            Activity("behind", "b", event, (Step(5, 0),), Release(0, 2, 0), 2),
        ),
        (Output("on the way", 0, 2, 0, 100), Output("out", 1, 1, 0, 100)),
    )
    assert bounds_ns(of, FixedPriorities((0, 1))) == {"on the way": 23, "out": 33}
