"""Event stories of `slack`: end-to-end deadlines, what has come furthest, and what is shed."""

from dataclasses import replace
from typing import Any

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.model import CompiledPlan, Unit
from node_agent.core.policies import policy
from node_agent.core.policies.slack import TRIAL
from protos import records
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape

MS = 1_000_000


class Nowhere:
    """What leaves is not looked at."""

    def send(self, *_: Any) -> None:
        pass

    def deliver(self, *_: Any) -> None:
        pass


def chain(length: int, cost_ns: int, deadline_ns: int, **more: Any) -> plans.Plan:
    """Source 1 -> operators 1..length, a unit each -> output 1."""
    whole = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="slack", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json", deadline_ns=deadline_ns) for i in range(1, length + 2)),
        sources=(plans.Source(1, "in", 1),),
        operators=tuple(plans.Operator(i, f"O{i}", "pass", (i,), i + 1, cost_ns) for i in range(1, length + 1)),
        units=tuple(plans.Unit(i, (i,), 1, deadline_ns, (i + 1,)) for i in range(1, length + 1)),
        outputs=(plans.Output(1, "out", length + 1, deadline_ns),),
    )  # fmt: skip
    return replace(whole, **more)


def loaded(plan: plans.Plan) -> tuple[Engine, CompiledPlan]:
    engine = Engine(policy("slack"), MemoryFacts(), Nowhere())
    return engine, engine.load(plan, dict.fromkeys(range(1, len(plan.operators) + 1), (id, True)))


def run(engine: Engine, at_ns: int, cost_ns: int) -> list[tuple[int, int]]:
    """(unit, tuple) of all instances, until nothing is left."""
    ran, job = [], engine.next(at_ns)
    while job is not None:
        ran.append((job.unit.id, job.lineage[2]))
        engine.emit(at_ns + cost_ns, job.unit.exits[0], job.lineage, None)
        at_ns += cost_ns
        job = engine.step(at_ns - cost_ns, at_ns)
    return ran


def shed(engine: Engine) -> list[tuple[int, int]]:
    facts = engine.facts
    assert isinstance(facts, MemoryFacts)
    return [(each.ref, each.seq) for each in records.unpack_records(facts.data()) if each.kind == records.SHED]


def admit(engine: Engine, of: CompiledPlan, seq: int, origin_ns: int = 0, youngest_ns: int | None = None) -> None:
    newest_ns = origin_ns if youngest_ns is None else youngest_ns
    engine.admit(newest_ns, of.source_routes[1], (1, 1, seq, 0, origin_ns, newest_ns), None, 0)


def slacks(of: CompiledPlan) -> dict[int, int | None]:
    def slack(unit: Unit) -> int | None:
        assert unit.meter is not None
        return unit.meter.slack_ns if unit.meter.ends else None

    return {unit.id: slack(unit) for unit in of.units}


def test_the_tuples_own_deadline_counts_not_the_units_share_of_it() -> None:
    """edf would take unit 1 first: its sub-deadline is shorter."""
    node = Node([Shape(2, 90, 1), Shape(9, 30, 1)], policy("slack"))
    assert node.run([Arrival(1, 0, 1), Arrival(2, 0, 1)]).order == [(2, [2]), (1, [1])]


def test_of_one_burst_what_has_come_furthest_comes_first() -> None:
    engine, of = loaded(chain(3, MS, 100 * MS))
    for seq in (1, 2):
        admit(engine, of, seq)
    assert run(engine, 0, MS) == [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2)]


def test_before_a_join_the_older_tuple_comes_first_on_both_branches() -> None:
    """Source 1 -> 1 -> join, and 1 -> 2 -> 3 -> join. By units left alone both tuples would take the short branch
    before either took the long one, and neither would have a result after 4 ms."""
    streams = tuple(plans.Stream(i, f"s{i}", "json", marked=i < 5, deadline_ns=50 * MS) for i in range(1, 6))
    reads, gives = {1: (1,), 2: (1,), 3: (3,), 4: (2, 4)}, {1: 2, 2: 3, 3: 4, 4: 5}
    diamond = chain(
        4, MS, 50 * MS, streams=streams, outputs=(plans.Output(1, "out", 5, 50 * MS),),
        operators=tuple(plans.Operator(i, f"O{i}", "pass", reads[i], gives[i], MS, join=i == 4) for i in reads),
        units=tuple(plans.Unit(i, (i,), 1, 50 * MS, (gives[i],)) for i in reads),
    )  # fmt: skip
    engine, of = loaded(diamond)
    for seq in (1, 2):
        admit(engine, of, seq)
    ran = run(engine, 0, MS)
    assert ran == [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (3, 2), (4, 2)]


def test_what_cannot_meet_its_output_is_shed_before_it_takes_anything() -> None:
    """Three steps of 1 ms within 7 ms: two tuples can be met; the third has 1 ms when its turn comes."""
    engine, of = loaded(chain(3, MS, 7 * MS))
    for seq in (1, 2, 3):
        admit(engine, of, seq)
    assert [seq for _, seq in run(engine, 0, MS)] == [1, 1, 1, 2, 2, 2]
    assert shed(engine) == [(1, 3)]
    assert slacks(of) == {1: 4 * MS, 2: 5 * MS, 3: 6 * MS}


def test_what_a_cheaper_operator_can_still_meet_is_not_shed() -> None:
    """21 ms within 50 ms: two tuples at full cost; the third may still be had for 1 ms in place of them."""
    whole = chain(1, 21 * MS, 50 * MS)
    late = plans.Late(29 * MS, "rough", "{}", MS)
    whole = replace(whole, operators=(replace(whole.operators[0], late=late),))
    engine = Engine(policy("slack"), MemoryFacts(), Nowhere())
    of = engine.load(whole, {1: (id, True), -1: (id, True)})
    for seq in (1, 2, 3):
        admit(engine, of, seq)
    assert [seq for _, seq in run(engine, 0, 21 * MS)] == [1, 2, 3]
    assert not shed(engine) and slacks(of) == {1: 49 * MS}


def test_the_lower_bound_of_the_age_counts() -> None:
    """If it was made at 3 ms it can still be met."""
    engine, of = loaded(chain(1, MS, 4 * MS))
    admit(engine, of, 1, 0, 3 * MS)
    admit(engine, of, 2, 0, 2 * MS)
    assert run(engine, 6 * MS, MS) == [(1, 1)]
    assert shed(engine) == [(1, 2)]


def test_a_unit_that_leads_to_two_outputs_runs_for_the_one_with_more_time() -> None:
    two = chain(1, MS, 2 * MS)
    two = replace(two, outputs=(*two.outputs, plans.Output(2, "later", 2, 50 * MS)))
    engine, of = loaded(two)
    admit(engine, of, 1)
    assert run(engine, 30 * MS, MS) == [(1, 1)]
    admit(engine, of, 2)
    assert run(engine, 50 * MS, MS) == [] and shed(engine) == [(1, 2)]


def test_what_another_operator_reads_beside_its_input_is_never_shed() -> None:
    """Unit 1 gives unit 2 its side input, and a result that is long overdue."""
    plan = chain(2, MS, 2 * MS)
    reads = replace(plan.operators[1], inputs=(1,), sides=(("newest", 2),))
    engine, of = loaded(replace(plan, operators=(plan.operators[0], reads)))
    admit(engine, of, 1)
    assert run(engine, 90 * MS, MS) == [(1, 1)]
    assert shed(engine) == [(2, 1)]


def test_a_stream_that_leaves_the_node_has_until_its_deadline_less_the_link() -> None:
    plan = chain(1, MS, 10 * MS)
    engine, of = loaded(replace(plan, outputs=(), sends=((2, 7),), peers=(plans.Peer(7, "b", 2 * MS),)))
    admit(engine, of, 1)
    assert run(engine, 7 * MS, MS) == [(1, 1)]
    assert slacks(of) == {1: 7 * MS}


def test_costs_are_those_measured_and_a_removed_plan_is_forgotten() -> None:
    engine, of = loaded(chain(2, MS, 900 * MS))
    for seq in range(1, 400):
        admit(engine, of, seq)
    run(engine, 0, MS // 10)
    assert slacks(of) == {1: 900 * MS - MS // 5, 2: 900 * MS - MS // 10}
    engine.unload(of, 900 * MS)
    again = engine.load(chain(1, MS, 10 * MS), {1: (id, True)})
    admit(engine, again, 1)
    assert run(engine, 0, MS) == [(1, 1)] and slacks(again) == {1: 9 * MS}


def test_a_long_way_to_the_output_needs_no_deep_stack() -> None:
    engine, of = loaded(chain(3000, 10, MS))
    admit(engine, of, 1)
    assert len(run(engine, 0, 10)) == 3000
    assert slacks(of)[1] == MS - 30_000


def test_units_in_a_circle_are_looked_at_once() -> None:
    """No plan has one; benchmarks do."""
    plan = chain(2, MS, 100 * MS)
    first, second = plan.operators
    circle = (replace(first, inputs=(1, 3)), replace(second, output=3))
    engine, of = loaded(replace(plan, operators=circle, outputs=()))
    admit(engine, of, 1)
    job = engine.next(0)
    assert job is not None and job.unit.id == 1


def test_what_has_twice_the_least_deadline_waits_for_it() -> None:
    """In overload all that waits is on the brink: what is due in 20 lets go first what has come with 30."""
    arrivals = [Arrival(1, 0, 1, age_ns=80), Arrival(2, 0, 1)]
    assert Node([Shape(1, 100, 1), Shape(1, 30, 1)], policy("slack")).run(arrivals).order == [(2, [2]), (1, [1])]


def test_deadlines_nearly_alike_are_ordered_by_when_they_are_due() -> None:
    arrivals = [Arrival(1, 0, 1, age_ns=39), Arrival(2, 0, 1)]
    assert Node([Shape(1, 59, 1), Shape(1, 30, 1)], policy("slack")).run(arrivals).order == [(1, [1]), (2, [2])]


def node_with(*shapes: Shape) -> Node:
    return Node(shapes, policy("slack"))


@pytest.mark.parametrize("before", [1, 200, 255, 256, 300])
def test_an_instance_that_hung_once_does_not_end_its_unit(before: int) -> None:
    """1 ms each within 10, then one of 6 s: the mean says for a while that nothing can be met."""
    hung_ns = 5 * MS * before
    came = [Arrival(1, 5 * MS * i, MS) for i in range(before)] + [Arrival(1, hung_ns, 6000 * MS)]
    came += [Arrival(1, hung_ns + 7000 * MS + 5 * MS * i, MS) for i in range(3000)]
    found = node_with(Shape(10 * MS, 10 * MS, MS)).run(came)
    ended = [at_ns for _, _, at_ns in found.delivered]
    assert sum(at_ns > came[-1000].at_ns for at_ns in ended) >= 999


def test_what_is_hopeless_indeed_takes_a_part_of_the_time_for_trials() -> None:
    """Declared 1 ms within 10, it takes 40; beside it what takes 5 ms every 10, within 60."""
    came = [Arrival(1, 5 * MS * i, 40 * MS) for i in range(8000)]
    came += [Arrival(2, 10 * MS * i, 5 * MS) for i in range(4000)]
    found = node_with(Shape(10 * MS, 10 * MS, MS), Shape(60 * MS, 60 * MS, 5 * MS)).run(came)
    late = [each for each in found.started if each.unit == 1 and each.start_ns > 20_000 * MS]
    assert sum(each.end_ns - each.start_ns for each in late) <= 20_000 * MS // TRIAL + 40 * MS
    assert sum(unit == 2 and at_ns > 20_000 * MS for unit, _, at_ns in found.delivered) >= 1990


@pytest.mark.parametrize("name", ["slack", "adaptive"])
def test_a_unit_whose_tuples_all_come_too_old_is_tried_until_it_is_quick_again(name: str) -> None:
    """Each comes 50 ms old and is due at 100: while it took 60 none could be met, though much of its deadline is left.
    Then it takes 1 ms again."""
    again_ns = 102_000 * MS
    came = [Arrival(1, 10 * MS * i, MS, 50 * MS) for i in range(20)]
    came += [Arrival(1, 1000 * MS + 100 * MS * i, 60 * MS, 50 * MS) for i in range(1000)]
    came += [Arrival(1, again_ns + 10 * MS * i, MS, 50 * MS) for i in range(1000)]
    found = Node([Shape(100 * MS, 100 * MS, MS)], policy(name)).run(came)
    assert sum(at_ns > again_ns + 2000 * MS for _, _, at_ns in found.delivered) >= 799


def test_trials_of_what_comes_too_old_take_a_part_of_the_time() -> None:
    """As before, and it stays slow."""
    came = [Arrival(1, 100 * MS * i, 60 * MS, 50 * MS) for i in range(2000)]
    found = node_with(Shape(100 * MS, 100 * MS, MS)).run(came)
    late = [each for each in found.started if each.start_ns > 100_000 * MS]
    assert 0 < sum(each.end_ns - each.start_ns for each in late) <= 100_000 * MS // TRIAL + 60 * MS


def test_a_declared_cost_beyond_the_deadline_does_not_end_its_unit() -> None:
    """Declared 30 ms within 25, it takes 1."""
    came = [Arrival(1, 10 * MS * i, MS) for i in range(100)]
    assert len(node_with(Shape(25 * MS, 25 * MS, 30 * MS)).run(came).delivered) == 100


def test_what_always_waits_behind_others_is_measured_although_declared_costs_leave_no_time_to_wait() -> None:
    """Declared 60 ms within 100, it takes 1, and each time waits for 45 ms of what is more urgent."""
    came = [Arrival(2, 100 * MS * i, 5 * MS) for i in range(200) for _ in range(9)]
    came += [Arrival(1, 100 * MS * i, MS) for i in range(200)]
    found = node_with(Shape(100 * MS, 100 * MS, 60 * MS), Shape(50 * MS, 50 * MS, 5 * MS)).run(came)
    assert sum(unit == 1 for unit, _, _ in found.delivered) >= 170
