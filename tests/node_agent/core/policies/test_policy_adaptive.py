"""Event stories of `adaptive`: it goes on with a unit as long as decisions are dear, and not before what is urgent."""

from node_agent.core.plan import Parameters
from node_agent.core.policies import policy
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape

DECISION_NS = 5


def play(shapes: list[Shape], arrivals: list[Arrival], decision_ns: int = DECISION_NS, share_ppm: int = 20_000) -> Node:
    return Node(shapes, policy("adaptive", parameters=Parameters(share_ppm=share_ppm)), decision_ns).run(arrivals)


def decisions(node: Node) -> int:
    return sum(each.decided for each in node.started)


def by_turns(count: int) -> list[Arrival]:
    """Two units whose tuples are due by turns."""
    return [Arrival(1 + i % 2, i, 10) for i in range(count)]


def test_what_is_the_most_urgent_anyway_needs_no_decision() -> None:
    node = play([Shape(1000, 1000, 10)], [Arrival(1, 0, 10) for _ in range(8)])
    assert decisions(node) == 1
    assert [jobs for _, jobs in node.order] == [[number] for number in range(1, 9)]


def test_a_unit_goes_on_until_the_decision_has_had_its_share() -> None:
    """A decision costs 5; at a share of 10 % the unit goes on for 45, four or five tuples of 10."""
    shapes = [Shape(10_000, 10_000, 10), Shape(10_000, 10_000, 10)]
    node = play(shapes, by_turns(60), share_ppm=100_000)
    assert len(node.order) == 60
    assert 12 <= decisions(node) <= 18


def test_where_decisions_cost_nothing_the_order_is_that_of_slack() -> None:
    shapes = [Shape(500, 500, 10), Shape(400, 400, 10)]
    slack = Node(shapes, policy("slack"), 0).run(by_turns(60))
    assert play(shapes, by_turns(60), 0).order == slack.order


def test_a_burst_does_not_stand_before_what_is_urgent() -> None:
    """Thirty of 10 wait, and one that is due 25 after it has come at 55: it is begun by 65, and met."""
    shapes = [Shape(10_000, 10_000, 10), Shape(25, 25, 5)]
    node = play(shapes, [*(Arrival(1, 0, 10) for _ in range(30)), Arrival(2, 55, 5)])
    [urgent] = [each for each in node.started if each.unit == 2]
    assert urgent.end_ns <= 80
    assert len(node.order) == 31


def test_what_cannot_be_met_is_shed_on_the_way() -> None:
    """Each takes 10 and is due at 25: two of four are met, and no time is lost on the others."""
    node = play([Shape(25, 25, 10)], [Arrival(1, 0, 10) for _ in range(4)], 0)
    assert len(node.order) == 2
