"""Windows over sources whose nodes have been started again, and over plans that follow each other."""

from tests.node_agent.core.windowed_play import Node, window, windowed


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
