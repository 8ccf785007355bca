"""What is too late: shed before an operator starts, wherever it stands, or given to a cheaper one in its place."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.engine.handover import inherit_state
from node_agent.core.plan import Late
from protos.records import POLICY_LATE, POLICY_OUTDATED, Admitted, Degraded, Ran, per_exit
from tests.node_agent.core.simulated.limited_node import (
    DEADLINE_NS,
    EVERY_POLICY,
    Arrival,
    Node,
    conserved,
    counted,
    plan_of,
    with_operators,
)
from tests.sampling import examples

POLICIES = st.sampled_from(EVERY_POLICY)
GAPS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 30), st.integers(0, 150)), max_size=50)
DROP = Late(100)


def arrivals(gaps: list[tuple[int, int, int]]) -> list[Arrival]:
    at_ns, made = 1000, []
    for source, gap, age in gaps:
        at_ns += gap
        made.append(Arrival(source, at_ns, age, {"from": "client"}))
    return made


def dropping(late_ns: int = 100, *names: str) -> plans.Plan:
    return with_operators(plan_of(), **dict.fromkeys(names or ("O1", "O3", "O4", "O5"), Late(late_ns)))


# -- shed before an instance


def test_late_tuples_go_in_one_decision_and_cost_nothing() -> None:
    """While the first one runs for 2000 ns the others of its unit get late, and so does its own result; the other
    source's one is in time."""
    node = Node(dropping(1000, "O3", "O5"), cost_ns=lambda number: 2000 if number == 3 else 10)
    node.run([Arrival(1, 0), Arrival(1, 1), Arrival(1, 2), Arrival(2, 1990)])
    late = node.shed(POLICY_LATE)
    assert [(each.unit, each.seq, each.at_ns) for each in late] == [(2, 2, late[0].at_ns), (2, 3, late[0].at_ns)]
    assert [(each.seq, each.operator) for each in node.shed(POLICY_OUTDATED)] == [(1, 3)]
    assert [each.seq for each in node.of(Ran) if each.ref == 2] == [1]
    assert node.engine.ledger.shed_by == {POLICY_LATE: 2, POLICY_OUTDATED: 1}
    conserved(node)


def test_only_the_lower_bound_of_the_age_counts() -> None:
    node = Node(dropping(100, "O5"))
    for seq, newest_ns in ((1, 900), (2, 899)):
        node.engine.admit(1000, node.loaded.source_routes[2], (2, 1, seq, 0, 0, newest_ns), None, 0)
    node.now_ns = 1000
    node.run([])
    assert [each.seq for each in node.shed(POLICY_LATE)] == [2]


def test_what_waits_behind_more_urgent_units_is_shed_when_it_is_late_and_not_when_its_turn_comes() -> None:
    """Unit 2 has a later deadline than unit 4's tuples, which keep the node busy."""
    node = Node(dropping(70, "O3"), cost_ns=lambda number: 10 if number == 5 else 0)
    node.run([Arrival(1, 0), *(Arrival(2, 0) for _ in range(20))])
    (shed,) = [each for each in node.shed(POLICY_LATE) if each.ref == 2]
    assert shed.at_ns == 80


@settings(deadline=None, max_examples=examples(120, 4))
@given(POLICIES, GAPS, st.integers(1, 200), st.integers(1, 40))
def test_no_instance_starts_late_and_nothing_waits_for_longer(
    name: str, gaps: list[tuple[int, int, int]], late_ns: int, cost_ns: int
) -> None:
    """On no decision time: age at the start at most D, waiting at most D and the longest instance."""
    node = Node(dropping(late_ns), name, cost_ns=lambda _: cost_ns).run(arrivals(gaps))
    admitted = {(each.source, each.seq): each for each in node.of(Admitted)}
    heads = {1, 2, 3, 4}
    begun: dict[tuple[int, int, int], int] = {}
    longest_ns = max((each.end_ns - each.start_ns for each in node.of(Ran)), default=0)
    for each in node.of(Ran):
        key = (each.ref, each.source, each.seq)
        first = key not in begun  # else it goes on
        begun[key] = each.start_ns
        if first and each.ref in heads:
            assert each.start_ns - admitted[each.source, each.seq].origin_hi_ns <= late_ns
            assert each.start_ns - each.release_ns <= late_ns + longest_ns
    if name != "edf-e2e":  # whose queues are not in the order of release
        for shed in node.shed(POLICY_LATE):
            if shed.unit != 3:
                assert shed.at_ns - admitted[shed.source, shed.seq].at_ns <= late_ns + longest_ns
    conserved(node)
    counted(node)


def test_a_queue_that_is_a_heap_sheds_what_is_late_as_well() -> None:
    node = Node(dropping(100, "O5"), "edf-e2e", cost_ns=lambda _: 60)
    node.run([Arrival(2, 0, 0), Arrival(2, 0, 30), Arrival(2, 0, 10), Arrival(2, 0, 90)])
    assert [each.seq for each in node.of(Ran)] == [4, 2] and [each.seq for each in node.shed()] == [3, 1]
    conserved(node)


# -- a result, as its operator ends


@pytest.mark.parametrize(("names", "given"), [(("O5",), [2, 3]), (("O1",), [1, 2, 3])])
def test_a_result_that_is_late_for_sure_is_not_given_whatever_was_declared(
    names: tuple[str, ...], given: list[int]
) -> None:
    """O5 begins in time and takes longer than its plan says: of the first tuple all origins are too old as it ends, of
    the second only some, of the third none. Without `on_late` it gives all of them."""
    node = Node(dropping(DEADLINE_NS - 1, *names), cost_ns=lambda number: DEADLINE_NS // 2 if number == 5 else 0)
    for seq, age_ns in ((1, DEADLINE_NS // 2 + 1), (2, DEADLINE_NS // 2), (3, 0)):
        node.now_ns += DEADLINE_NS
        oldest_ns = node.now_ns - (DEADLINE_NS * 3 // 4 if seq < 3 else 0)
        node.engine.admit(
            node.now_ns, node.loaded.source_routes[2], (2, 1, seq, 0, oldest_ns, node.now_ns - age_ns), 0, 0
        )
        node.run([])
    assert [seq for _, seq, _ in node.delivered] == given
    assert [(each.seq, each.policy, each.operator) for each in node.shed()] == [(1, POLICY_OUTDATED, 5)] * (
        3 - len(given)
    )
    conserved(node)


# -- within a unit


def test_within_a_unit_it_is_shed_as_a_result_of_the_operator_before() -> None:
    node = Node(dropping(100, "O2"), cost_ns=lambda number: 150 if number == 1 else 1)
    node.run([Arrival(1, 1000)])
    (shed,) = node.shed()
    assert (shed.unit, shed.policy, shed.operator) == (1, POLICY_LATE, 1)
    (ran,) = [each for each in node.of(Ran) if each.ref == 1]
    assert ran.policed_results == 1 and per_exit(ran.outputs, 1) == (0,) and ran.end_ns - ran.start_ns == 150
    assert not [each for each in node.of(Ran) if each.ref == 3]
    conserved(node)


@settings(deadline=None, max_examples=examples(100, 4))
@given(POLICIES, GAPS, st.integers(1, 200), st.integers(1, 40), st.booleans())
def test_within_units_every_tuple_ends_once(
    name: str, gaps: list[tuple[int, int, int]], late_ns: int, cost_ns: int, degrade: bool
) -> None:
    late = Late(late_ns, "cheap") if degrade else Late(late_ns)
    plan = with_operators(plan_of(), O2=late, O4=Late(late_ns), O5=Late(late_ns // 2 + 1, "cheap"))
    node = Node(plan, name, cost_ns=lambda number: cost_ns if number > 0 else 1).run(arrivals(gaps))
    conserved(node)
    counted(node)
    assert sum(node.engine.ledger.degraded.values()) == len(node.of(Degraded))


# -- degraded


def test_a_late_tuple_gets_the_cheaper_operator() -> None:
    plan = with_operators(plan_of(), O5=Late(100, "cheap", "{}", 1))
    made = {5: lambda _: "dear", -5: lambda _: "cheap"}
    node = Node(plan, cost_ns=lambda number: 60 if number > 0 else 1, calls=made)
    node.run([Arrival(2, 1000 + i) for i in range(4)])
    assert [value for _, _, value in node.delivered] == ["dear", "dear", "cheap", "cheap"]
    assert [(each.unit, each.operator, each.seq) for each in node.of(Degraded)] == [(4, 5, 3), (4, 5, 4)]
    assert node.engine.ledger.degraded == {"O5": 2} and not node.shed()
    conserved(node)


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_degrading_is_decided_as_the_operator_starts(name: str) -> None:
    """Within a unit: the first operator takes long, so the second one is late although its instance was not."""
    plan = with_operators(plan_of(), O2=Late(100, "cheap"))
    made = {2: lambda _: "dear", -2: lambda _: "cheap"}
    node = Node(plan, name, cost_ns=lambda number: 150 if number == 1 else 1, calls=made)
    node.run([Arrival(1, 1000)])
    assert [value for output, _, value in node.delivered if output == 1] == ["cheap"]
    conserved(node)


def test_what_raises_in_an_operators_place_loses_its_tuple() -> None:
    def fails(_: Any) -> None:
        raise ValueError

    node = Node(with_operators(plan_of(), O5=Late(100, "cheap")), calls={-5: fails})
    node.run([Arrival(2, 1000, 300)])
    assert not node.delivered and len(node.of(Degraded)) == 1
    conserved(node)


# -- plans


def test_what_runs_in_an_operators_place_is_the_same_instance_under_the_next_plan() -> None:
    node = Node(with_operators(plan_of(), O5=Late(100, "cheap")))
    for late, same in ((Late(50, "cheap"), True), (Late(50, "cheap", '{"a": 1}'), False), (Late(50, "dear"), False)):
        old = node.loaded
        node.loaded = node.load(with_operators(plan_of(), O5=late))
        inherit_state(node.loaded, old)
        one, other = (next(step.late for step in each.steps if step.operator_id == 5) for each in (old, node.loaded))
        assert one is not None and other is not None and one.variant is not None and other.variant is not None
        assert (one.variant.call is other.variant.call) is same and other.late_ns == 50


def test_an_operator_that_goes_on_is_asked_by_the_new_plans_limits() -> None:
    node = Node(plan_of(), cost_ns=lambda _: 10)
    for late, delivered in ((Late(100), 0), (Late(100, "cheap"), 1), (None, 1)):
        old = node.loaded
        node.loaded = node.load(with_operators(plan_of(), **({"O2": late, "O5": late} if late else {})))
        inherit_state(node.loaded, old)
        node.engine.unload(old, node.now_ns)
        node.delivered.clear()
        node.run([Arrival(2, node.now_ns + 1000, 150)])
        assert len(node.delivered) == delivered
        sheds = late == Late(100)
        assert node.engine.ready.selects == sheds, "without what sheds at its head nothing is asked at a choice"
