"""Limits of sources and of queues: what passes conforms, nothing is held beyond a limit, every tuple ends once."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.engine.handover import inherit_state
from node_agent.core.job_queues import KeyQueue
from node_agent.core.model import new_job
from node_agent.core.queues import take, take_oldest
from node_agent.core.shedding.memory_limit import JOB_BYTES, QueueLimit, size_estimate
from node_agent.core.shedding.policing import PacePolice
from node_agent.core.shedding.source_admission import implied
from protos.records import NO_REF, POLICY_ARRIVALS, POLICY_MEMORY, POLICY_RATE, Ran
from tests.node_agent.core.simulated.limited_node import (
    EVERY_POLICY,
    Arrival,
    Node,
    conserved,
    counted,
    plan_of,
    survivors,
)
from tests.sampling import examples

VALUE = '["field", "v"]'
ARRIVALS = st.lists(
    st.builds(
        lambda source, gap, age, v: (source, gap, age, {"v": v, "text": "x" * (v * 40)}),
        st.integers(1, 2), st.integers(0, 30), st.integers(0, 120), st.integers(0, 9),
    ),
    max_size=50,
)  # fmt: skip
POLICIES = st.sampled_from(EVERY_POLICY)


def arrivals(gaps: list[tuple[int, int, int, Any]]) -> list[Arrival]:
    at_ns, made = 1000, []
    for source, gap, age, payload in gaps:
        at_ns += gap
        made.append(Arrival(source, at_ns, age, payload))
    return made


def limited(tuples: int, span_ns: int, value: str = VALUE, **changes: Any) -> plans.Plan:
    made = plan_of()
    first = replace(made.sources[0], limit=plans.Limit(tuples, span_ns, value), **changes)
    return replace(made, sources=(first, made.sources[1]))


def within(instants: list[int], tuples: int, span_ns: int) -> bool:
    return all(later - first >= span_ns for first, later in zip(instants, instants[tuples:], strict=False))


# -- the limit of a source


def test_the_least_valuable_that_waits_makes_room_and_leaves_all_its_queues() -> None:
    """Three wait behind a tuple that runs; the fourth takes the place of the least valuable of them."""
    node = Node(limited(4, 10_000), cost_ns=lambda _: 100)
    node.run([Arrival(1, 0, 0, {"v": v}) for v in (9, 1, 5, 3)] + [Arrival(1, 1, 0, {"v": 4})])
    (shed,) = node.shed()
    assert (shed.ref, shed.policy, shed.stream, shed.seq) == (NO_REF, POLICY_RATE, 1, 2)
    assert {each.seq for each in node.of(Ran)} == {1, 3, 4, 5}
    conserved(node)


def test_what_has_begun_anywhere_is_not_had_back() -> None:
    """The first tuple is worth the least, but one of its two units has run."""
    node = Node(limited(2, 10_000), cost_ns=lambda _: 100)
    node.run([Arrival(1, 0, 0, {"v": 0}), Arrival(1, 0, 0, {"v": 5}), Arrival(1, 10, 0, {"v": 3})])
    (shed,) = node.shed()
    assert shed.seq == 3
    conserved(node)


def test_without_a_value_the_latest_go() -> None:
    node = Node(limited(2, 1000, value=""), cost_ns=lambda _: 100)
    node.run([Arrival(1, at_ns) for at_ns in (0, 1, 2, 3, 1005)])
    assert [each.seq for each in node.shed()] == [3, 4]


def test_policing_is_asked_about_what_displaces_nobody_only() -> None:
    """The limit's own pace: a displacing tuple together with the survivors conforms, and policing never sheds."""
    pace = plans.Pace(2, 1000, 0)
    node = Node(limited(2, 1000, paces=(pace,)), cost_ns=lambda _: 300)
    node.run([Arrival(1, 10 * i, 0, {"v": i}) for i in range(20)])
    assert node.shed(POLICY_RATE) and not node.shed(POLICY_ARRIVALS)
    police = PacePolice(pace)
    for at_ns in survivors(node, 1, (POLICY_RATE,)):
        assert police.conforms(at_ns)
        police.count(at_ns)
    conserved(node)


@pytest.mark.parametrize(
    ("source", "free"),
    [
        ({"paces": (plans.Pace(3, 900, 0),)}, True),
        ({"paces": (plans.Pace(6, 2000, 0),)}, True),
        ({"paces": (plans.Pace(6, 2001, 0),)}, False),
        ({"paces": (plans.Pace(3, 1001, 5),)}, False),
        ({"paces": (plans.Pace(1, 1, 0),)}, False),
        ({"spans": ((4, 1000), (7, 2000))}, True),
        ({"spans": ((3, 1),)}, False),
        ({}, True),
    ],
)
def test_nothing_is_displaced_where_a_source_declares_more_than_its_limit(source: dict[str, Any], free: bool) -> None:
    assert implied(plans.Limit(3, 1000), plans.Source(1, "s", 1, **source)) is free


@settings(deadline=None, max_examples=examples(100, 4))
@given(POLICIES, st.integers(1, 6), st.integers(1, 400), ARRIVALS, st.booleans())
def test_what_passes_a_limit_conforms_and_every_tuple_ends_once(
    name: str, tuples: int, span_ns: int, gaps: list[Any], valued: bool
) -> None:
    node = Node(limited(tuples, span_ns, VALUE if valued else ""), name)
    node.run(arrivals(gaps))
    assert within(survivors(node, 1, (POLICY_RATE,)), tuples, span_ns)
    conserved(node)
    counted(node)


@settings(deadline=None, max_examples=examples(100, 4))
@given(POLICIES, ARRIVALS, st.integers(1, 4), st.integers(1, 300), st.integers(0, 60))
def test_a_promise_of_arrivals_stays_true_behind_a_limit(
    name: str, gaps: list[Any], tuples: int, span_ns: int, gap_ns: int
) -> None:
    """Whether or not the limit implies it, what goes on conforms to what is policed; guarantees rest on that."""
    pace = plans.Pace(1, gap_ns or 1, 0)
    for paces in ((pace,), (plans.Pace(tuples, span_ns, 0),)):
        node = Node(limited(tuples, span_ns, paces=paces), name).run(arrivals(gaps))
        police = PacePolice(paces[0])
        for at_ns in survivors(node, 1, (POLICY_RATE, POLICY_ARRIVALS)):
            assert police.conforms(at_ns)
            police.count(at_ns)
        conserved(node)


@pytest.mark.parametrize("name", ["edf", "edf-e2e"])
def test_a_new_plan_goes_on_with_the_limit_and_what_waits_under_the_old_one_can_be_displaced(name: str) -> None:
    plan = replace(limited(2, 10_000), policy=name)
    node = Node(plan, name, cost_ns=lambda _: 100)
    node.admit(0, 1, Arrival(1, 0, 0, {"v": 1}))
    node.admit(0, 2, Arrival(1, 0, 0, {"v": 5}))
    old, node.loaded = node.loaded, node.load(replace(plan, epoch=2, hash=2))
    inherit_state(node.loaded, old)
    node.admit(1, 3, Arrival(1, 1, 0, {"v": 0}))
    node.admit(2, 4, Arrival(1, 2, 0, {"v": 3}))
    assert [(each.seq, each.flags) for each in node.shed()] == [(3, 2), (1, 1)]
    node.run([])
    assert {each.seq for each in node.of(Ran)} == {2, 4}
    conserved(node)


# -- limits of queues


def gated(most: int, on_full: str) -> plans.Plan:
    made = plan_of()
    first, *others = made.units
    return replace(made, units=(replace(first, queue_bytes=most, on_full=on_full), *others))


def queued_bytes(node: Node) -> int:
    unit = next(each for each in node.loaded.units if each.gate is not None)
    return sum(JOB_BYTES + size_estimate(job.payload) for job in unit.queue)


@settings(deadline=None, max_examples=examples(100, 4))
@given(POLICIES, st.sampled_from(["drop-tail", "front"]), st.integers(1, 6000), ARRIVALS)
def test_a_queue_never_holds_more_than_its_limit(name: str, on_full: str, most: int, gaps: list[Any]) -> None:
    node = Node(gated(most, on_full), name)
    largest = max((JOB_BYTES + size_estimate(payload) for *_, payload in gaps), default=0)
    mean = largest if name == "edf-e2e" else 0  # whose heap is compared with its queue now and then only

    def watch() -> None:
        assert queued_bytes(node) <= most + mean * (1 + len(gaps) // 8)

    node.watch = watch
    node.run(arrivals(gaps))
    assert all(each.ref == 1 for each in node.shed(POLICY_MEMORY)), "only that unit's tuples, elsewhere they run"
    conserved(node)
    counted(node)


def test_drop_tail_keeps_the_oldest_and_front_the_youngest() -> None:
    room = 3 * (JOB_BYTES + size_estimate(7)) + JOB_BYTES // 2
    shed = {}
    for on_full in ("drop-tail", "front"):
        node = Node(gated(room, on_full), cost_ns=lambda _: 1000)
        node.run([Arrival(1, 10 * i, 0, 7) for i in range(7)])
        shed[on_full] = [each.seq for each in node.shed()]
        conserved(node)
    assert shed == {"drop-tail": [5, 6, 7], "front": [2, 3, 4]}


def test_what_is_larger_than_the_limit_displaces_nothing() -> None:
    node = Node(gated(2000, "front"), cost_ns=lambda _: 1000)
    node.run([Arrival(1, 0, 0, 1), Arrival(1, 1, 0, 2), Arrival(1, 2, 0, "x" * 5000)])
    assert [each.seq for each in node.shed()] == [3]


def test_a_gate_before_a_heap_knows_what_has_left() -> None:
    gate, queue = QueueLimit(10**6, False), KeyQueue()
    for number in range(100):
        gate.add(number, 100)
        queue.append(new_job(0, 0, number, None, (1, 1, number, 0, 0, 0), None))
    assert gate.held(queue) == 10_000
    take(queue, [job.lineage for job in queue if not job.number % 2])
    assert gate.held(queue) == 5000 and len(gate._numbers) == 50
    take_oldest(queue, 3)
    assert gate.held(queue) == 4700 and len(gate._numbers) == 50
    queue.clear()
    assert gate.held(queue) == 0


# -- the node's memory


def shedding(on_full: str) -> plans.Plan:
    made = plan_of()
    return replace(made, sources=(replace(made.sources[0], on_full=on_full), made.sources[1]))


@settings(deadline=None, max_examples=examples(100, 4))
@given(POLICIES, st.sampled_from(["drop-tail", "front"]), ARRIVALS)
def test_a_full_node_admits_and_sheds(name: str, on_full: str, gaps: list[Any]) -> None:
    """It is full with eight jobs; a tuple of the first source makes two."""
    only = [(1, *each[1:]) for each in gaps]
    node = Node(shedding(on_full), name, full=lambda node: node.jobs >= 8)

    def watch() -> None:
        assert node.jobs <= 10

    node.watch = watch
    node.run(arrivals(only))
    conserved(node)
    counted(node)


def test_a_full_node_sheds_the_latest_or_the_oldest() -> None:
    shed = {}
    for on_full in ("refuse", "drop-tail", "front"):
        node = Node(shedding(on_full), cost_ns=lambda _: 1000, full=lambda node: node.jobs >= 4)
        node.run([Arrival(1, i, 0, i) for i in range(1, 5)])
        shed[on_full] = [(each.ref, each.seq) for each in node.shed()]
        conserved(node)
    assert shed["refuse"] == [], "who refuses does so before admission"
    assert shed["drop-tail"] == [(NO_REF, 3), (NO_REF, 4)], "the first one's results and the second one are four jobs"
    assert shed["front"][:3] == [(1, 2), (2, 1), (2, 2)], "what the first one has not begun goes with the second"


def test_where_nothing_of_its_own_is_queued_the_newcomer_goes() -> None:
    node = Node(shedding("front"), full=lambda _: True)
    node.run([Arrival(2, 0), Arrival(1, 0)])
    assert [(each.ref, each.seq, each.policy) for each in node.shed()] == [(NO_REF, 2, POLICY_MEMORY)]


# -- weights


@pytest.mark.parametrize(
    ("payload", "least", "most"),
    [
        (None, 0, 0),
        (7, 28, 32),
        ("x" * 1000, 1000, 1100),
        (b"x" * 1000, 1000, 1100),
        ({"speed": 3.5}, 200, 350),
        ([1.5] * 1000, 32_000, 48_000),
        ([{"x": 1.5, "y": 2.5}] * 100, 20_000, 60_000),
    ],
)
def test_what_a_payload_weighs(payload: Any, least: int, most: int) -> None:
    assert least <= size_estimate(payload) <= most


def test_a_payload_within_itself_is_weighed() -> None:
    payload: list[Any] = []
    payload.append(payload)
    assert size_estimate(payload) > 0
