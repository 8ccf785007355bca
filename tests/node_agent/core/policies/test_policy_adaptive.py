"""Event stories of what `adaptive` sheds: a batch is judged by its end, and what is dear gives way."""

import pytest

from node_agent.core.plan import Parameters
from node_agent.core.policies import policy
from protos import records
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape

PHI = Parameters(phi_ns=1000)


def shed(node: Node) -> list[int]:
    return [each.seq for each in records.unpack_records(node.facts.data()) if each.kind == records.SHED]


def play(shapes: list[Shape], arrivals: list[Arrival]) -> Node:
    return Node(shapes, policy("adaptive", parameters=PHI)).run(arrivals)


def test_results_of_a_batch_are_there_when_it_ends_so_its_end_decides() -> None:
    """At 20 three tuples wait, of 10 each: together they end at 50. The first is due at 46: alone it would be met, at
    30, but not in this batch; the others then end at 40."""
    shapes = [Shape(5, 45, 10), Shape(1000, 1000, 20)]
    node = play(shapes, [Arrival(2, 0, 20), Arrival(1, 1, 10), Arrival(1, 9, 10), Arrival(1, 10, 10)])
    assert shed(node) == [2]
    assert node.order == [(2, [1]), (1, [3, 4])]


@pytest.mark.parametrize(("busy_ns", "lost"), [(140, []), (145, [202])])
def test_what_is_dear_gives_way_where_it_has_little_room_left(busy_ns: int, lost: list[int]) -> None:
    """What costs 50, where others cost 10, comes at 5001 and is due at 5201. The node is busy until 5140 or 5145, so it
    would end at 5190 or 5195, in time; but (100 - 50) / 4 (1 - 10.5 / 50) = 9.5 of room have to be left."""
    shapes = [Shape(100, 200, 10), Shape(100, 200, 50), Shape(100, 5000, 110)]
    cheap = [Arrival(1, 20 * i, 10) for i in range(200)]
    late = [Arrival(3, 5000, busy_ns), Arrival(2, 5001, 50), Arrival(1, 5001, 10)]
    node = play(shapes, cheap + late)
    assert shed(node) == lost


def test_on_an_idle_node_nothing_that_comes_in_time_is_shed_however_dear() -> None:
    """90 of a sub-deadline of 100, ninety times what the others cost."""
    shapes = [Shape(100, 100, 1), Shape(100, 100, 90)]
    cheap = [Arrival(1, 10 * i, 1) for i in range(300)]
    node = play(shapes, [*cheap, *[Arrival(2, 4000 + 200 * i, 90) for i in range(5)]])
    assert shed(node) == []
