"""What `slack` gives up of what waits: nothing where all of it can be met, the dearest where not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.policies import policy
from node_agent.core.policies.excess import look
from tests.node_agent.core.simulated.policy_node import Node, Shape

waiting = st.lists(
    st.tuples(st.integers(1, 9), st.integers(10, 90), st.lists(st.integers(0, 20), min_size=1, max_size=6)),
    min_size=1,
    max_size=4,
)  # of each unit: cost, deadline, ages of its tuples


def looked_at(units: list[tuple[int, int, list[int]]]) -> list[int]:
    """How many each unit gives up, of tuples that wait at 20 with those ages; the first one is the head."""
    node = Node([Shape(deadline_ns, deadline_ns, cost_ns) for cost_ns, deadline_ns, _ in units], policy("slack"))
    number = 0
    for unit, (_, _, ages) in enumerate(units, 1):
        for age_ns in sorted(ages, reverse=True):
            number += 1
            at_ns = 20 - age_ns
            node.engine.admit(at_ns, node.loaded.source_routes[unit], (unit, 1, number, 0, at_ns, at_ns), None, 0)
    head = node.loaded.units[0].queue.popleft()
    look(head, 20)
    meters = [unit.meter for unit in node.loaded.units]
    return [meter.excess for meter in meters if meter is not None]


@settings(max_examples=60, deadline=None, print_blob=True)
@given(waiting)
def test_where_all_that_waits_can_be_met_nothing_is_given_up(units: list[tuple[int, int, list[int]]]) -> None:
    """By a schedule that is never interrupted, the earliest deadline first."""
    jobs = sorted((20 - age + deadline, cost) for cost, deadline, ages in units for age in ages)
    ends_ns, met = 20, True
    for due_ns, cost_ns in jobs:
        ends_ns += cost_ns
        met = met and ends_ns <= due_ns
    found = looked_at(units)
    assert all(0 <= gone <= len(ages) for gone, (_, _, ages) in zip(found, units, strict=True))
    if met:
        assert found == [0] * len(units)


def test_the_dearest_goes() -> None:
    """Nine of 2 and two of 9 within 27 of now: one of 9 is too many."""
    assert looked_at([(9, 27, [0, 0]), (2, 27, [0] * 9)]) == [1, 0]


def test_what_is_urgent_gives_up_nothing_for_what_has_time() -> None:
    """The dear ones are due within 20, the cheap ones, which are too many beside them, within 60."""
    assert looked_at([(9, 20, [0, 0]), (2, 60, [0] * 25)]) == [0, 4]
