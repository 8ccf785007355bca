"""The runtime's loop inside the test: several plans and policies at once, draining, what does not fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from node_agent.core import plan as core
from node_agent.core.policies import POLICIES
from node_agent.core.policies.policy_parts import Asked
from node_agent.host.trace_ring import TAKEN, WRITTEN
from node_agent.runtime.deployments.deployed_plan import COMMITTED, DRAINING
from node_agent.runtime.in_process import in_process, run_queued
from node_agent.runtime.loop import Runtime
from protos import records
from tests.sentences import Wording

SAID = Wording("deploy", "operators of a plan")

SECOND = 10**9


def _plan(hash_: int = 1 << 60, epoch: int = 1, query: str = "q", policy: str = "edf", run: str = "pass") -> core.Plan:
    return core.Plan(
        query, "a", 0, hash_, epoch, policy, 1,
        (core.Stream(1, "in", "json", False, SECOND), core.Stream(2, "O1", "json", False, SECOND)),
        (core.Source(1, "in", 1),),
        (core.Operator(1, "O1", run, (1,), 2, 0),),
        (core.Unit(1, (1,), 10**8, SECOND, (2,)),),
        (core.Output(1, "out", 2, SECOND),),
    )  # fmt: skip


def _add(runtime: Runtime, plan: core.Plan) -> str:
    plan_hash = f"{plan.hash:016x}".ljust(64, "0")
    runtime.add_plan(runtime.plans.load(plan, plan_hash), ())
    assert runtime.plans.commit(plan_hash) == (True, "")
    return plan_hash


def _records(runtime: Runtime) -> list[records.Record]:
    runtime.facts.publish()
    return list(records.unpack_records(runtime.facts.ring.take(1 << 24)))


def test_queued_tuples_run_to_their_end(tmp_path: Path) -> None:
    with in_process(_plan(), tmp_path) as runtime:
        assert run_queued(runtime, 100)[0] == 100
        assert runtime.backpressure.ready == 0
        found = _records(runtime)
        assert [record.seq for record in found if isinstance(record, records.Output)] == list(range(1, 101))


@pytest.mark.parametrize("query", ["q", "q+other"])
def test_a_new_plan_drains_the_old_one_whatever_its_queries_are_called(tmp_path: Path, query: str) -> None:
    with in_process(_plan(), tmp_path) as runtime:
        old = next(iter(runtime.plans.by_hash.values()))
        for seq in range(5):
            old.engine_slot.engine.admit(1, old.loaded.source_routes[1], (1, 1, seq, 0, 1, 1), 0, 0)
        new = _add(runtime, _plan(2 << 60, 2, query))
        assert (old.state, runtime.plans.state(new)) == (DRAINING, COMMITTED)
        found = runtime.plans.source("in")
        assert found is not None and found[0].hash == new
        while runtime.step(wait=False):
            pass
        runtime.tick(10**15)
        assert list(runtime.plans.by_hash) == [new]
        states = [
            (records.STATES[each.state], each.plan_epoch)
            for each in _records(runtime)
            if isinstance(each, records.Plan)
        ]
        assert states[2:] == [("prepared", 2), ("draining", 1), ("committed", 2), ("drained", 1)]


def test_plans_under_different_policies_take_turns(tmp_path: Path) -> None:
    with in_process(_plan(), tmp_path) as runtime:
        _add(runtime, _plan(2 << 60, 2, policy="edf-e2e"))
        assert len(runtime.plans.engine_slots) == 2
        for deployed in runtime.plans.by_hash.values():
            for seq in range(300):
                deployed.engine_slot.engine.admit(1, deployed.loaded.source_routes[1], (1, 1, seq, 0, 1, 1), 0, 0)
        while runtime.step(wait=False):
            pass
        ran = [record.flags for record in _records(runtime) if isinstance(record, records.Ran)]
        assert ran.count(1) == ran.count(2) == 300


@pytest.mark.parametrize(
    ("policy", "batch"),
    [*((each, 1) for each in sorted(POLICIES)), ("edf", 0), ("fifo", 0), ("spt", 0)],
)
def test_stopping_a_plan_gives_up_what_is_queued_and_what_was_chosen(tmp_path: Path, policy: str, batch: int) -> None:
    with in_process(replace(_plan(policy=policy), largest_batch=batch), tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()
        for seq in range(5):
            deployed.engine_slot.engine.admit(1, deployed.loaded.source_routes[1], (1, 1, seq, 0, 1, 1), 0, 0)
        deployed.engine_slot.parked = deployed.engine_slot.engine.next(1)
        assert deployed.ready >= 1
        runtime.plans.unload(deployed, 2, records.STATE_ENDED)
        lost = [record for record in _records(runtime) if isinstance(record, records.Lost)]
        assert sorted(record.seq for record in lost) == list(range(5))
        assert not runtime.plans.engine_slots and not runtime.meter.costs


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_runs_in_the_live_loop(tmp_path: Path, policy: str) -> None:
    """Nothing is shed: a second is enough for 200 operators that do nothing."""
    with in_process(_plan(policy=policy), tmp_path) as runtime:
        assert run_queued(runtime, 200)[0] == 200
        found = _records(runtime)
        assert [record.seq for record in found if isinstance(record, records.Output)] == list(range(1, 201))
        (lane,) = runtime.plans.engine_slots
        meter = lane.engine.ready.meter
        counted = POLICIES[policy].metered and Asked.COSTS in POLICIES[policy].asks
        assert meter.ended == (200 if counted else 0)


def test_plans_with_other_parameters_of_the_same_policy_have_a_lane_of_their_own(tmp_path: Path) -> None:
    with in_process(_plan(policy="bts"), tmp_path) as runtime:
        _add(runtime, replace(_plan(2 << 60, 2, policy="bts"), parameters=core.Parameters(first_k=4)))
        assert [lane.engine.policy.parameters.first_k for lane in runtime.plans.engine_slots] == [1, 4]


def test_an_emulated_node_uses_the_cost_it_is_to_have(tmp_path: Path) -> None:
    with in_process(replace(_plan(), emulate_cost_ns=2_000_000), tmp_path) as runtime:
        instances, took_ns = run_queued(runtime, 5)
        assert instances == 5 and took_ns >= 10_000_000
        (cost,) = next(iter(runtime.plans.by_hash.values())).costs
        assert cost.tuples == 5 and 0 < cost.total_ns < 10_000_000, "its own cost, without what is filled up"
        ran = [record for record in _records(runtime) if isinstance(record, records.Ran)]
        # A little less than 2 ms: CPU time is counted from just before the start's stamp, and by another clock.
        assert all(record.end_ns - record.start_ns >= 1_900_000 for record in ran)


def test_what_is_not_installed_is_refused(tmp_path: Path) -> None:
    with in_process(_plan(), tmp_path) as runtime:
        with SAID.refuses("unknown_operator t.none"):
            runtime.plans.load(_plan(2 << 60, run="t.none"), "2" * 64)
        odd = replace(_plan(3 << 60), streams=(core.Stream(1, "in", "none"), core.Stream(2, "O1", "json")))
        with SAID.refuses("unknown_codec none", worded=False):
            runtime.plans.load(odd, "3" * 64)
        assert len(runtime.plans.by_hash) == 1


def test_the_last_load_record_counts_what_was_written_before_it(tmp_path: Path) -> None:
    with in_process(_plan(), tmp_path) as runtime:
        run_queued(runtime, 10)
        cells = runtime.facts.ring.cells
        cells[TAKEN] = cells[WRITTEN]
        before = runtime.facts.written_records
        runtime.backpressure.write(1)
        (load,) = (record for record in _records(runtime) if isinstance(record, records.Load))
        assert load.records_before == before
