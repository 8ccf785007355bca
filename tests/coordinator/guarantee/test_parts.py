"""Where the time of a bound goes: parts that sum up, and the tightest inequality of each node."""

from hypothesis import given, settings

from coordinator.guarantee.bounds import documents
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, paper
from tests.simulation.random_plans import documents as random_plans


@settings(max_examples=20, deadline=None)
@given(random_plans())
def test_parts_sum_up_and_are_split_into_work_blocking_and_waiting(plan: Plan) -> None:
    guarantee, _ = documents(plan, MEASURED)
    for claim in guarantee.values():
        if claim.from_admission_ns is None:
            assert not claim.trail
            continue
        bound_ns = claim.from_admission_ns if claim.bound_ns is None else claim.bound_ns
        assert sum(part.ns for part in claim.trail) == bound_ns
        for part in claim.trail:
            assert min(part.work_ns, part.waiting_ns, part.blocking_ns) >= 0
            assert part.work_ns + part.waiting_ns + part.blocking_ns == part.ns
            if part.kind == "unit":
                assert part.work_ns > 0
                assert part.waiting_ns == 0 or part.ahead


def test_a_unit_waits_for_named_others() -> None:
    """[P] at n = 15: O2's last tuple waits for 14 of its own; O1 is due later."""
    plan = paper(15, ages=True, O1=30, O2=16)
    claim = documents(plan, MEASURED)[0]["warning"]
    first = next(part for part in claim.trail if part.kind == "unit")
    assert first.what == "unit 2 (O2) on a"
    own = next(each for each in first.ahead or () if each.what == "unit 2 (O2)")
    assert (own.jobs, first.work_ns) == (14, 1 * MS + 20_000)
    assert first.blocking_ns == 1 * MS + 20_000


def test_the_result_is_of_a_tuple_that_passes() -> None:
    """Half of O3's inputs are dropped and the last of a burst may be one; a result has run through all 17 operators."""
    claim = documents(paper(15, ages=True, O1=30, O2=16), NOTHING)[0]["warning"]
    last = [part for part in claim.trail if part.kind == "unit"][-1]
    assert last.work_ns == 17 * MS
    ahead = sum(each.ns for each in last.ahead or ())
    assert last.waiting_ns == ahead - (last.done_before_ns or 0)


def test_the_tightest_inequality_of_a_node_that_holds_is_told() -> None:
    nodes = documents(paper(15, ages=True, O1=30, O2=16), NOTHING)[1].nodes
    tightest = nodes["a"].tightest
    assert tightest is not None and nodes["a"].sub_deadlines_hold and tightest.demand_ns <= tightest.u_ns
    blocked_ns = tightest.blocker.ns if tightest.blocker else 0
    assert sum(each.ns for each in tightest.of) + blocked_ns == tightest.demand_ns
