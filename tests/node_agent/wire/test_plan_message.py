"""A local plan from the wire is checked once, with limits; what breaks one is refused with the reason."""

from collections.abc import Callable
from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2
from tests.sentences import Wording

SAID = Wording("deploy", "local plan")


def good() -> plan_pb2.LocalPlan:
    return plan_pb2.LocalPlan(
        version=1,
        query="q",
        node="a",
        policy=plan_pb2.Policy(name="edf", largest_batch=1),
        streams=[plan_pb2.Stream(id=1, name="in", codec="json"), plan_pb2.Stream(id=2, name="O1", codec="json")],
        sources=[plan_pb2.Source(id=1, name="in", stream=1)],
        operators=[plan_pb2.Operator(id=1, name="O1", run="pass", inputs=[1], output=2, cost_ns=1)],
        units=[plan_pb2.Unit(id=1, operators=[1], sub_deadline_ns=5, deadline_ns=9, exits=[2])],
        outputs=[plan_pb2.Output(id=1, name="out", stream=2, deadline_ns=9)],
        cpu=-1,
    )


def test_a_good_plan_comes_through_whole() -> None:
    plan = core_plan(good(), plan_hash=7, epoch=3)
    assert (plan.hash, plan.epoch, plan.policy, plan.units[0].exits) == (7, 3, "edf", (2,))
    assert plan.operators[0].hang_ns == 1_000_000_000
    assert plan.operators[0].with_json == "{}"


def test_a_last_deadline_stands_beside_the_least_one_or_is_the_same() -> None:
    message = good()
    assert core_plan(message, 7, 3).units[0].last_ns == 9
    message.units[0].last_deadline_ns = 300
    message.streams[1].MergeFrom(plan_pb2.Stream(deadline_ns=9, last_deadline_ns=9))
    plan = core_plan(message, 7, 3)
    assert (plan.units[0].deadline_ns, plan.units[0].last_ns) == (9, 300)
    assert [stream.last_ns for stream in plan.streams] == [0, 9]


def _exits(message: plan_pb2.LocalPlan) -> None:
    message.units[0].exits.extend([1])


def _apart(message: plan_pb2.LocalPlan) -> None:
    """A second operator in the unit that reads the source, not the first operator."""
    message.streams.add(id=3, name="O2", codec="json")
    message.operators.add(id=2, name="O2", run="pass", inputs=[1], output=3)
    message.units[0].operators.append(2)


def _no_unit(message: plan_pb2.LocalPlan) -> None:
    del message.units[:]


BREAKS: list[tuple[Callable[[plan_pb2.LocalPlan], object], str]] = [
    (lambda m: setattr(m, "version", 2), "other_version"),
    (lambda m: setattr(m.policy, "name", "edff"), "unknown_policy edff"),
    (lambda m: m.policy.MergeFrom(plan_pb2.Policy(name="edf-e2e", largest_batch=2)), "not_in_batches edf-e2e"),
    (lambda m: m.policy.MergeFrom(plan_pb2.Policy(name="bts", largest_batch=2)), "not_in_batches bts"),
    (lambda m: setattr(m.policy, "phi_ns", -1), "out_of_range policy edf"),
    (lambda m: setattr(m.policy, "share_ppm", 1_000_000), "out_of_range policy edf"),
    (lambda m: setattr(m.policy, "first_k", 1_000_001), "out_of_range policy edf"),
    (lambda m: m.units[0].service.add(latency_ns=-1), "out_of_range unit 1"),
    (lambda m: m.units[0].service.add(period_ns=5), "out_of_range unit 1"),
    (lambda m: m.units[0].arrivals.add(ahead_ns=5), "out_of_range unit 1"),
    (lambda m: m.units[0].service.extend([plan_pb2.Service()] * 17), "too_many unit 1"),
    (lambda m: setattr(m, "index", 70_000), "out_of_range"),
    (lambda m: m.peers.add(index=65_535, name="b"), "out_of_range"),
    (lambda m: setattr(m.streams[0], "deadline_ns", -1), "out_of_range stream in"),
    (lambda m: setattr(m.outputs[0], "deadline_ns", 2 * 10**18), "out_of_range output out"),
    (lambda m: setattr(m.streams[0], "last_deadline_ns", 2 * 10**18), "out_of_range stream in"),
    (lambda m: setattr(m.streams[0], "last_deadline_ns", 9), "deadlines_in_wrong_order stream in"),
    (lambda m: setattr(m.units[0], "last_deadline_ns", -1), "out_of_range unit 1"),
    (lambda m: setattr(m.units[0], "last_deadline_ns", 8), "deadlines_in_wrong_order unit 1"),
    (_apart, "not_a_chain unit 1"),
    (lambda m: setattr(m.streams[1], "id", 1), "bad_ids stream"),
    (lambda m: setattr(m.streams[1], "id", 70_000), "bad_ids stream"),
    (lambda m: setattr(m.operators[0], "output", 9), "not_described"),
    (lambda m: m.operators[0].ClearField("inputs"), "no_input operator O1"),
    (lambda m: m.sends.add(stream=2, peer=4), "not_described"),
    (lambda m: setattr(m.units[0], "sub_deadline_ns", -1), "out_of_range unit 1"),
    (lambda m: m.units[0].operators.extend([8]), "not_its_own unit 1"),
    (_exits, "not_its_own unit 1"),
    (_no_unit, "not_in_one_unit"),
]


@pytest.mark.parametrize(("break_it", "why"), BREAKS)
def test_a_broken_plan_is_refused_with_the_reason(break_it: Callable[[plan_pb2.LocalPlan], object], why: str) -> None:
    message = good()
    break_it(message)
    with SAID.refuses(why):
        core_plan(message, 1, 1)


def test_how_a_node_makes_a_source_s_tuples_is_read() -> None:
    message = good()
    message.sources[0].pull.MergeFrom(plan_pb2.Pull(every_ns=10**8, offset_ns=3, run="t.x", with_json='{"a":1}'))
    plan = core_plan(message, 1, 1)
    assert plan.sources[0].pull == core.Pull(10**8, 3, "t.x", '{"a":1}') and plan.runs == {"pass", "t.x"}
    assert core_plan(good(), 1, 1).sources[0].pull is None


@pytest.mark.parametrize(
    ("pull", "why"),
    [
        ({}, "not_made_here source in"),
        ({"every_ns": -1}, "out_of_range source in"),
        ({"every_ns": 999_999}, "out_of_range source in"),
        ({"every_ns": 86_400 * 10**9 + 1}, "out_of_range source in"),
        ({"every_ns": 10**6, "offset_ns": 10**6}, "out_of_range source in"),
        ({"every_ns": 10**6, "offset_ns": -1}, "out_of_range source in"),
        ({"run": "t.x", "offset_ns": 1}, "out_of_range source in"),
    ],
)
def test_a_source_that_nothing_can_make_is_refused(pull: dict[str, Any], why: str) -> None:
    message = good()
    message.sources[0].pull.CopyFrom(plan_pb2.Pull(**pull))
    with SAID.refuses(why):
        core_plan(message, 1, 1)
