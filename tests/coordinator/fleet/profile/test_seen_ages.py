"""Ages that agents saw: what is told of them, and the `max_age` that follows, which refuses none."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.fleet.profile import seen_ages
from coordinator.fleet.profile.seen_ages import SeenAges
from node_agent.runtime.deployments.cost_meter import FAR_NS, Ages
from protos import agent_pb2
from protos.plan.analysis import ProposedAges
from tests.coordinator.guarantee.test_admission_ages import ONE, SOUND
from tests.coordinator.guarantee.written_plans import MS, cluster, written

FIELDS = ("operator_id", "name", "degraded", "tuples", "total_ns", "elapsed_ns", "worst_ns", "later_worst_ns",
          "squares_ns2", "bucket_ns", "bucket_calls", "of")  # fmt: skip
PLAN = written(ONE, cluster("a"), **SOUND)


def _replies(ages: Ages) -> dict[str, agent_pb2.ProfileReply]:
    row = dict(zip(FIELDS, ages.row(), strict=True))
    return {"a": agent_pb2.ProfileReply(costs=[agent_pb2.OperatorCost(**row)])}  # type: ignore[arg-type]


def _seen(given_ns: list[int], name: str = "s") -> Ages:
    ages = Ages(1, name)
    for age_ns in given_ns:
        ages.add(10**15, 10**15 - age_ns)
    return ages


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40), st.integers(0, 39))
def test_quantiles_are_no_smaller_than_the_true_ones_and_a_sixteenth_larger_at_most(ages: list[int], cut: int) -> None:
    cut = min(cut, len(ages) - 1)
    before = seen_ages.counts(PLAN, _replies(_seen(ages[:cut])))
    found = seen_ages.since(before, seen_ages.counts(PLAN, _replies(_seen(ages))))["s"]
    later = sorted(ages[cut:])
    assert found.tuples == len(later)
    middle = later[(len(later) + 1) // 2 - 1]
    assert middle <= found.p50_ns <= middle * 17 // 16 + 1
    assert later[-1] <= found.worst_ns <= later[-1] * 17 // 16 + 1
    assert found.p50_ns <= found.p999_ns <= found.worst_ns < found.max_age_ns
    assert found.max_age_ns <= max(2, found.worst_ns * 13 // 10)


def test_what_has_no_known_age_is_not_seen() -> None:
    ages = Ages(1, "s")
    ages.add(5, -FAR_NS)
    ages.add(5, 6)
    assert not ages.counts
    assert not seen_ages.since({}, seen_ages.counts(PLAN, _replies(ages)))


def test_a_source_that_the_plan_lacks_is_left_out() -> None:
    assert not seen_ages.counts(PLAN, _replies(_seen([1], "other")))


def test_advice_goes_by_what_the_plan_has_room_for() -> None:
    def said(worst_ns: int, name: str = "s", room_ns: int | None = None) -> str:
        ages = None if room_ns is None else ProposedAges(max_age_ns={"s": room_ns}, outputs=("f",))
        plan = replace(PLAN, analysis=replace(PLAN.analysis, ages=ages))
        (line,) = seen_ages.lines(plan, {name: SeenAges(500, worst_ns // 2, worst_ns, worst_ns)})
        return line.partition("; ")[2]

    assert said(10 * MS, room_ns=30 * MS) == "under 'sources: s:' write 'max_age: 12 ms'; the plan has room for 30 ms"
    assert said(28 * MS, room_ns=30 * MS) == "under 'sources: s:' write 'max_age: 30 ms'; the plan has room for 30 ms"
    refused = "the plan has room for 30 ms, which would refuse the oldest; 'max_age: 40.8 ms' has a margin of 20%"
    assert said(34 * MS, room_ns=30 * MS) == refused
    assert said(10 * MS) == "'max_age: 12 ms' has a margin of 20%"
    assert said(2 * MS, "known").startswith("its max_age, 3 ms, refuses none of them")
    assert said(4 * MS, "known").startswith("its max_age, 3 ms, refuses the oldest")
