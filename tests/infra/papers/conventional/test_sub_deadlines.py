"""The rules on ways that a pencil does, and where [P]'s own assignment is one of them."""

from infra.papers.conventional.collision_query import collision_query
from infra.papers.conventional.sub_deadlines import (
    effective,
    equal_flexibility,
    equal_slack,
    from_events,
    from_releases,
    ultimate,
)
from infra.papers.conventional.transactions import Activity, Event, Output, Release, Step, Transactions


def test_a_way_of_1_2_and_3_with_a_deadline_of_12() -> None:
    costs = (1, 2, 3)
    assert ultimate(costs, 12) == [12, 12, 12]
    assert effective(costs, 12) == [7, 9, 12]
    assert equal_slack(costs, 12) == [3, 7, 12]
    assert equal_flexibility(costs, 12) == [2, 6, 12]


def tree() -> Transactions:
    """1, then 2 until 20 (a link of 4 on the way), or 3 until 8."""
    event = Event(100)
    return Transactions(
        (
            Activity("trunk", "a", event, (Step(1, 0),)),
            Activity("long", "b", event, (Step(2, 0),), Release(0, 1, 4)),
            Activity("short", "a", event, (Step(3, 0),), Release(0, 1, 0)),
        ),
        (Output("late", 1, 1, 0, 20), Output("soon", 2, 1, 0, 8)),
    )


def test_what_several_outputs_need_is_due_as_the_most_urgent_asks_and_links_take_their_time() -> None:
    """(1) of the long way: 16 in 1 to 2, 5 and 10 after the release; of the short one: 8 in 1 to 3."""
    assert from_releases(tree(), equal_flexibility) == (2, 11, 6)
    assert from_events(tree(), equal_flexibility) == (2, 16, 8)
    assert from_releases(tree(), ultimate) == (8, 16, 8)
    assert from_releases(tree(), effective) == (5, 16, 8)


def test_equal_flexibility_is_equation_1_of_the_paper() -> None:
    """d = c D / c', of whole bursts: O1 30, O2 300 times 15 of 158, the rest what is left."""
    found = from_releases(collision_query(15).transactions, equal_flexibility)
    assert found == (30_000_000, 300_000_000 * 15 // 158, 3_000_000_000, 300_000_000 - 300_000_000 * 15 // 158)
