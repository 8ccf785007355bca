"""An age and a reaction that a query asks: judged in its plan, told in sentences, and rechecked."""

from dataclasses import replace
from pathlib import Path

from coordinator.explain import explanation
from coordinator.plan import deadline_breakdown, reopen
from coordinator.plan.deadline_breakdown import MISSED, guarantee_status
from coordinator.solve.audit.audit import audit
from protos import plan_document
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written

QUERY = """\
shimekiri: 1
query: sampled
sources:
  left:  {at: a, type: json, arrival: {burst: 1, period: 50 ms}, max_age: 5 ms, tolerance: 0 s}
  right: {at: a, type: json, arrival: {burst: 1, period: 100 ms}, max_age: 5 ms, tolerance: 0 s}
operators:
  both: {run: join, in: [left, right], sync: all, cost: 2 ms}
outputs:
  arm: {from: both, at: a, deadline: 80 ms, ASKED}
"""


def _plan(asked: str) -> Plan:
    return written(QUERY.replace("ASKED", asked), cluster())


def test_what_is_asked_is_judged_beside_the_deadline() -> None:
    """5 on admission, a wait of 50 at most; a change at the left waits for the right, 100. Then one set or two, 2."""
    claim = _plan("age: 80 ms, reaction: {limit: 120 ms, without: [right]}").guarantee["arm"]
    assert claim.guaranteed and claim.is_fresh
    assert claim.age_bound_ns == claim.bound_ns
    took_ns = (claim.bound_ns or 0) - 55 * MS
    assert took_ns in (2 * MS, 4 * MS)
    assert claim.reaction_bound_ns == 105 * MS + took_ns
    assert [(path.of, path.source) for path in claim.data_paths] == [
        ("age", "left"), ("age", "right"), ("reaction", "left")
    ]  # fmt: skip
    assert all(path.bound_ns == sum(step.ns for step in path.steps) for path in claim.data_paths)


def test_a_deadline_that_holds_is_not_enough() -> None:
    plan = _plan("reaction: 90 ms")
    claim = plan.guarantee["arm"]
    assert not claim.guaranteed and claim.bound_ns is not None and claim.bound_ns <= claim.deadline_ns
    assert guarantee_status(claim) == MISSED
    assert claim.why.startswith("the deadline holds, but not its reaction (90 ms): ")
    lines = deadline_breakdown.sentences(plan, "arm")
    assert any(line.strip().startswith("reaction of 90 ms: at most ") and "not guaranteed" in line for line in lines)
    assert any(line.strip().startswith("reaction to left: at most ") for line in lines)
    assert deadline_breakdown.document(plan, "arm")["reaction"]["limit_ns"] == 90 * MS
    assert any("reaction of 90 ms" in line for line in explanation.explain(plan)["What is guaranteed"])


def test_nothing_is_said_where_nothing_is_asked() -> None:
    plan = _plan("wait: 1 s")
    assert "age" not in deadline_breakdown.document(plan, "arm") and "data_paths" not in plan.text()
    assert not any(
        " age of " in line for line in deadline_breakdown.sentences(plan, "arm") if "on admission" not in line
    )


def test_a_plan_keeps_what_is_asked(tmp_path: Path) -> None:
    plan = _plan("age: {limit: 90 ms, without: [right]}, reaction: 1 s")
    assert plan_document.parse(plan.text().encode()) == plan
    query, *_ = reopen.inputs(plan, tmp_path / "plan.json")
    age, reaction = query.outputs[0].age, query.outputs[0].reaction
    assert age is not None and (age.limit_ns, age.without) == (90 * MS, ("right",))
    assert reaction is not None and (reaction.limit_ns, reaction.without) == (1000 * MS, ())


def test_the_audit_finds_a_bound_that_its_paths_do_not_make() -> None:
    plan = _plan("age: 80 ms")
    assert audit(plan) == []
    claim = plan.guarantee["arm"]
    lower = replace(claim, age_bound_ns=(claim.age_bound_ns or 0) - 1)
    other = replace(claim, age_ns=100 * MS)
    stale = replace(claim, age_bound_ns=90 * MS)
    for changed, said in ((lower, "not that of its data paths"), (other, "another age"), (stale, "but not its age")):
        assert any(said in line for line in audit(replace(plan, guarantee={"arm": changed})))
