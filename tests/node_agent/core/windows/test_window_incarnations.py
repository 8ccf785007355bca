"""Windows over sources whose nodes have been started again, and over plans that follow each other."""

from dataclasses import replace

from node_agent.core import plan as plans
from node_agent.core.engine.handover import inherit_state
from protos import records
from tests.node_agent.core.simulated.window_node import Node, window, windowed


def test_what_an_incarnation_begins_with_does_not_hold_for_the_next_one() -> None:
    """The second incarnation was first heard of under its second plan, the third one by a tuple."""
    node = Node(windowed(window(wait_ns=1000))).beat(0, 1)
    node.admit(12, 1).run().beat(20, 50, epoch=1, first=50)
    node.admit(41, 50, epoch=1).run().beat(55, 51, epoch=1, first=50)
    for number in range(1, 20):
        node.admit(60 + number, number, epoch=2).run()
    node.beat(100, 20, epoch=2, first=1).expire(5000).run()
    given = {each["window"]: each["xs"] for each in node.results}
    assert given[4] == [50]
    assert 6 not in given, "numbers of the incarnation before may lie in it"
    assert given[7] == list(range(10, 20))


def test_what_is_displaced_under_the_plan_before_is_told_at_once() -> None:
    """Two tuples of the old plan wait; one of the new plan takes the place of one of them."""
    made = windowed(window(length=100, hop=100, wait_ns=1000))
    limit = plans.Limit(2, 1000, '["field", "size"]')
    made = replace(made, sources=(replace(made.sources[0], limit=limit), *made.sources[1:]))
    node = Node(made).beat(5, 1)
    node.admit(101, 1, size=1).admit(102, 2, size=1)
    old, node.loaded = node.loaded, node.load(replace(made, epoch=2, hash=2))
    inherit_state(node.loaded, old)
    node.beat(103, 3, loaded=old).beat(103, 3).admit(104, 3, size=50).run()
    assert [shed for shed in node.shed() if shed[0] == 1] == [(1, 2, records.POLICY_RATE)]
    node.beat(310, 4, first=3).run()
    assert node.ends() == [("skipped", 0), ("abandoned", 1), ("closed", 2)]


def test_an_incarnation_that_is_first_heard_of_by_a_tuple_waits_for_no_number_before_it() -> None:
    node = Node(windowed(window(wait_ns=1000))).beat(0, 1)
    node.admit(12, 1).run().beat(20, 2)
    node.admit(31, 1, epoch=1).run().admit(42, 2, epoch=1).run().admit(51, 3, epoch=1).run()
    assert [(each["window"], each["xs"]) for each in node.results] == [(1, [1]), (4, [2])]


def test_what_is_queued_under_the_plan_before_is_not_missing_where_that_has_another_policy() -> None:
    """Each policy has an engine of its own."""
    made = windowed(window(length=100, hop=100, wait_ns=50))
    old = Node(made).beat(5, 1).admit(101, 1).beat(102, 2)
    new = Node(replace(made, epoch=2, hash=2, policy="fifo"), name="fifo")
    inherit_state(new.loaded, old.loaded)
    new.beat(103, 2).admit(104, 2).run().expire(170).run()
    old.at_ns = 180
    old.run()
    new.beat(310, 3).run()
    assert [(each["window"], each["xs"]) for each in new.results] == [(1, [1, 2]), (2, [])]
