"""Event stories of fusions: what fires, under which lineage, and how every input ends."""

from dataclasses import replace

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.events import (
    Admitted,
    Command,
    Committed,
    Drained,
    Ended,
    Expired,
    Finished,
    Prepared,
    ScenarioRunner,
    Stale,
    Start,
)
from node_agent.core.policies import policy
from protos import records
from protos.records import (
    POLICY_REPLACED,
    POLICY_STALE,
    POLICY_UNMATCHED,
    Merged,
    Output,
    Ran,
    Shed,
)
from tests.node_agent.core.engine.test_engine_stories import base, facts, stream

CAMERA, LIDAR = 1, 2


def fused(sync: plans.Sync, **changes: object) -> ScenarioRunner:
    """Sources 1 (camera) and 2 (lidar) -> F -> out."""
    plan = base(
        streams=tuple(stream(i) for i in range(1, 4)),
        sources=(plans.Source(CAMERA, "camera", 1), plans.Source(LIDAR, "lidar", 2)),
        operators=(plans.Operator(1, "F", "join", (1, 2), 3, 1, join=True, sync=sync),),
        units=(plans.Unit(1, (1,), 10, 100, exits=(3,)),),
        outputs=(plans.Output(1, "out", 3, 100),),
        **changes,
    )
    return ScenarioRunner(plan, policy("edf"))


def comes(story: ScenarioRunner, at_ns: int, source: int, number: int, origin_ns: int | None = None) -> list[Command]:
    stamp_ns = at_ns if origin_ns is None else origin_ns
    return story.handle(Admitted(at_ns, source, (source, 0, number, 0, stamp_ns, stamp_ns), f"{source}/{number}"))


def started(commands: list[Command]) -> list[tuple[tuple[int, int], object]]:
    return [(each.lineage[0:3:2], each.payload) for each in commands if isinstance(each, Start)]  # type: ignore[misc]


ALL, ALL_OR_50 = plans.Sync(), plans.Sync(timeout_ns=50)
NEAR = plans.Sync(by_stamp=True, within_ns=4, keep=2)
NEAR_OR_50 = plans.Sync(by_stamp=True, within_ns=4, timeout_ns=50, keep=2)


def test_an_operator_runs_as_soon_as_every_input_is_fresh_under_the_lineage_of_the_oldest() -> None:
    story = fused(ALL)
    assert comes(story, 5, LIDAR, 1) == []
    assert started(comes(story, 7, CAMERA, 1)) == [((LIDAR, 1), ("1/1", "2/1"))]
    story.handle(Ended(9, 0), Finished(7, 9))
    (output,) = facts(story, Output)
    assert (output.source, output.seq, output.origin_lo_ns) == (LIDAR, 1, 5)
    (merged,) = facts(story, Merged)
    assert (merged.source, merged.seq) == (CAMERA, 1)
    assert (merged.parent_source, merged.parent_seq, merged.partner_absent) == (LIDAR, 1, 0)
    assert [ran.source for ran in facts(story, Ran)] == [LIDAR]


def test_what_comes_again_before_a_firing_replaces_its_tuple() -> None:
    story = fused(ALL)
    comes(story, 5, CAMERA, 1)
    comes(story, 6, CAMERA, 2)
    (unit,) = story.loaded.units
    assert (unit.shed, unit.unfused) == (1, 1)
    assert started(comes(story, 7, LIDAR, 1)) == [((CAMERA, 2), ("1/2", "2/1"))]
    (shed,) = facts(story, Shed)
    assert (shed.source, shed.seq, shed.unit, shed.policy) == (CAMERA, 1, 1, POLICY_REPLACED)
    assert story.engine.ledger.shed_by == {POLICY_REPLACED: 1}


def test_on_timeout_the_operator_runs_on_what_is_there() -> None:
    story = fused(ALL_OR_50)
    comes(story, 5, CAMERA, 1)
    comes(story, 20, CAMERA, 2)
    assert story.engine.due_ns == 55  # since the first fresh one, also where that was replaced
    assert story.handle(Expired(54)) == []
    assert started(story.handle(Expired(55))) == [((CAMERA, 2), ("1/2", None))]
    assert story.engine.due_ns is None


def test_what_is_due_fires_before_an_arrival_of_the_same_instant() -> None:
    story = fused(ALL_OR_50)
    comes(story, 5, CAMERA, 1)
    assert started(comes(story, 55, LIDAR, 1)) == [((CAMERA, 1), ("1/1", None))]
    assert story.engine.due_ns == 105


def test_without_a_timeout_a_partner_that_never_comes_ends_what_waits_after_twice_the_deadline_and_a_second() -> None:
    story = fused(ALL)
    comes(story, 5, CAMERA, 1)
    due_ns = 5 + 2 * 100 + 1_000_000_000
    assert story.engine.due_ns == due_ns and story.loaded.waiting == 1
    assert story.handle(Expired(due_ns)) == []
    (shed,) = facts(story, Shed)
    assert (shed.seq, shed.policy) == (1, POLICY_UNMATCHED) and story.loaded.waiting == 0


def test_stamps_within_the_tolerance_fire_and_older_ones_are_replaced() -> None:
    story = fused(NEAR)
    comes(story, 10, CAMERA, 1, origin_ns=0)
    comes(story, 11, CAMERA, 2, origin_ns=8)
    assert started(comes(story, 12, LIDAR, 1, origin_ns=11)) == [((CAMERA, 2), ("1/2", "2/1"))]
    assert [(shed.seq, shed.policy) for shed in facts(story, Shed)] == [(1, POLICY_REPLACED)]


def test_a_stamp_that_runs_backwards_or_lies_ahead_waits_like_any_other() -> None:
    story = fused(NEAR)
    comes(story, 10, CAMERA, 1, origin_ns=500)  # of a clock ahead
    comes(story, 11, CAMERA, 2, origin_ns=9)
    assert started(comes(story, 12, LIDAR, 1, origin_ns=12)) == [((CAMERA, 2), ("1/2", "2/1"))]
    assert story.loaded.waiting == 1 and facts(story, Shed) == []


def test_no_more_than_declared_wait_of_an_input_whose_partner_never_comes() -> None:
    story = fused(NEAR)
    for number in range(1, 100):
        comes(story, 10 * number, CAMERA, number)
    assert story.loaded.waiting == NEAR.keep
    assert [shed.seq for shed in facts(story, Shed)] == list(range(1, 98))


def test_a_tuple_without_near_others_fires_alone_on_timeout() -> None:
    story = fused(NEAR_OR_50)
    comes(story, 10, CAMERA, 1)
    comes(story, 30, LIDAR, 1)
    assert started(story.handle(Expired(60))) == [((CAMERA, 1), ("1/1", None))]
    assert story.engine.due_ns == 80


@pytest.mark.parametrize("sync", [ALL, NEAR])
def test_what_waits_when_the_plan_is_unloaded_is_unmatched(sync: plans.Sync) -> None:
    """No timeout: a draining plan does not wait for it."""
    story = fused(sync)
    comes(story, 5, CAMERA, 1)
    assert (story.loaded.waiting, story.loaded.awaited) == (1, 0)
    story.handle(Drained(9, 1))
    assert [(shed.source, shed.seq, shed.policy) for shed in facts(story, Shed)] == [(CAMERA, 1, POLICY_UNMATCHED)]


def test_a_draining_plan_waits_for_timeouts() -> None:
    story = fused(ALL_OR_50)
    comes(story, 5, CAMERA, 1)
    assert (story.loaded.waiting, story.loaded.awaited) == (1, 1)


def test_what_waits_stays_with_its_plan() -> None:
    story = fused(ALL)
    comes(story, 5, CAMERA, 1)
    story.handle(Prepared(6, replace(story.loaded.plan, hash=2, epoch=4)))
    story.handle(Committed(7, 2))
    assert comes(story, 8, LIDAR, 1) == []
    story.handle(Drained(9, 1))
    assert [(shed.source, shed.policy) for shed in facts(story, Shed)] == [(CAMERA, POLICY_UNMATCHED)]
    assert started(comes(story, 10, CAMERA, 2)) == [((LIDAR, 1), ("1/2", "2/1"))]


def test_a_tuple_whose_side_input_is_too_old_ends_as_a_result_that_is_shed() -> None:
    story = fused(ALL)
    comes(story, 5, CAMERA, 1)
    comes(story, 6, LIDAR, 1)
    story.handle(Stale(6, 0), Finished(6, 7))
    (shed,), (ran,) = facts(story, Shed), facts(story, Ran)
    assert (shed.policy, shed.operator, shed.of_result) == (POLICY_STALE, 1, True)
    assert (ran.policed_results, ran.outputs) == (1, 0)


def test_records_of_a_fusion_are_of_kinds_that_readers_know() -> None:
    assert records.SHED_POLICIES[POLICY_REPLACED] == "replaced"
    assert records.SHED_POLICIES[POLICY_UNMATCHED] == "unmatched"


def test_each_tuple_runs_as_it_comes_with_all_that_are_near() -> None:
    story = fused(plans.Sync(by_stamp=True, within_ns=4, keep=3, each=True))
    assert comes(story, 10, CAMERA, 1) == []
    assert comes(story, 11, CAMERA, 2) == []
    assert started(comes(story, 13, LIDAR, 1)) == [((LIDAR, 1), (["1/1", "1/2"], ["2/1"]))]
    story.handle(Ended(14, 0), Finished(13, 14))
    assert started(comes(story, 15, CAMERA, 3)) == [((CAMERA, 3), (["1/3"], ["2/1"]))]
    assert [(shed.source, shed.seq, shed.policy) for shed in facts(story, Shed)] == [
        (CAMERA, 1, POLICY_UNMATCHED),
        (CAMERA, 2, POLICY_UNMATCHED),
    ]
    assert story.engine.due_ns is None and story.loaded.waiting == 0 and facts(story, Merged) == []
