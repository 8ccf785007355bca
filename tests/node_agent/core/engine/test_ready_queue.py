"""The ready queue by itself, against a list of what is queued: random jobs come, run, are shed and withdrawn."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.engine.ready_queue import ReadyQueue
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job
from node_agent.core.policies import policy
from node_agent.core.policies.policy_parts import Dropper, Policy
from tests.node_agent.core.simulated.policy_node import Shape, plan_of
from tests.sampling import examples

SHAPES = (Shape(5, 40, 1), Shape(9, 30, 1), Shape(9, 60, 1))


def loaded_queue(chosen: Policy, late_ns: int = 0) -> tuple[ReadyQueue, CompiledPlan]:
    plan = plan_of(SHAPES)
    late = plans.Late(late_ns) if late_ns else None
    plan = replace(plan, operators=tuple(replace(each, late=late) for each in plan.operators))
    loaded = compile_plan(plan, dict.fromkeys(range(1, len(SHAPES) + 1), (id, True)), chosen)
    ready = ReadyQueue(chosen)
    ready.load(loaded, [loaded])
    return ready, loaded


def tuple_(source: int, number: int, origin_ns: int = 0) -> Lineage:
    return source, 1, number, 0, origin_ns, origin_ns


class Model:
    """A ready queue, and all its jobs in a list."""

    def __init__(self, name: str) -> None:
        self.ready, self.loaded = loaded_queue(policy(name))
        self.jobs: list[Job] = []
        self.at_ns = self.number = 0

    def release(self, unit: int, age_ns: int) -> None:
        self.number += 1
        queue = self.loaded.units[unit].queue
        known = set(map(id, queue))
        lineage = tuple_(unit + 1, self.number, self.at_ns - age_ns)
        self.ready.release(self.at_ns, self.loaded.units[unit], lineage, None)
        self.jobs += [job for job in queue if id(job) not in known]

    def pop(self) -> None:
        expected = min(self.jobs, default=None)
        assert self.ready.pop(self.at_ns) is expected is self.ready.running
        if expected is not None:
            self.jobs.remove(expected)

    def leave(self, unit: int, most: int, how: str) -> None:
        mine = sorted((job for job in self.jobs if job.unit is self.loaded.units[unit]), key=lambda job: job.number)
        if how == "oldest":
            gone = self.ready.take_oldest(self.loaded.units[unit], most)
            assert gone == mine[:most]
        elif how == "youngest":
            gone = self.ready.take_youngest(self.loaded.units[unit], most)
            assert gone == mine[max(0, len(mine) - most) :]
        elif how == "tuples":
            gone = self.ready.take(self.loaded.units[unit], {job.lineage for job in mine[::2]})
            assert gone == mine[::2]
        else:
            gone = mine[most : most + 1]
            for job in gone:
                self.ready.withdraw(job)
        self.jobs = [job for job in self.jobs if job not in gone]

    def check(self) -> None:
        ready, units = self.ready, self.loaded.units
        assert ready.released - ready.dispatched == len(self.jobs) == sum(len(unit.queue) for unit in units)
        for source in (1, 2, 3):
            waiting = [job.lineage[2] for job in self.jobs if job.lineage[0] == source]
            running = ready.running
            waiting += [running.lineage[2]] if running is not None and running.lineage[0] == source else []
            assert min(ready.in_flight(units, source, 1), default=None) == min(waiting, default=None)
            assert not list(ready.in_flight(units, source, 2))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("release", "release", "release", "pop", "oldest", "youngest", "tuples", "one")),
        st.integers(0, 2), st.integers(0, 4),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.parametrize("name", ["edf", "fifo", "edf-e2e", "qed"])
@settings(max_examples=examples(60, 4), deadline=None)
@given(STEPS)
def test_what_runs_is_the_least_of_what_is_queued(name: str, steps: list[tuple[str, int, int]]) -> None:
    model = Model(name)
    for what, unit, number in steps:
        model.at_ns += number
        if what == "release":
            model.release(unit, number)
        elif what == "pop":
            model.pop()
        else:
            model.leave(unit, number, what)
        model.check()
    while model.jobs:
        model.pop()
    model.pop()
    assert model.ready.running is None


def test_what_is_late_leaves_one_by_one_and_before_anything_is_chosen() -> None:
    """Each is out of its queue as it is given, the next one is still in it: so it is in flight."""
    ready, loaded = loaded_queue(policy("edf"), late_ns=10)
    assert ready.selects
    for number in (1, 2, 3):
        ready.release(0, loaded.units[0], tuple_(1, number), None)
    ready.release(0, loaded.units[1], tuple_(2, 1, 15), None)
    assert not list(ready.expired(10))
    for count, job in enumerate(ready.expired(20), 1):
        assert job.lineage[2] == count
        assert list(ready.in_flight(loaded.units[:1], 1, 1)) == [count + 1][: 3 - count]
    chosen = ready.candidate(20)
    assert chosen is not None and chosen.unit is loaded.units[1] and not ready.judge(chosen, 20)
    ready.begin(chosen.unit, chosen)
    assert ready.running is chosen and ready.candidate(20) is None


def test_a_batch_is_its_burst_and_a_job_of_it_that_fails_leaves_it() -> None:
    ready, loaded = loaded_queue(policy("edf", 0))
    for number, origin_ns in ((1, 5), (2, 5), (3, 5), (4, 6)):
        ready.release(7, loaded.units[0], tuple_(1, number, origin_ns), None)
    assert not list(ready.expired(7))
    assert ready.choose_batch(7) and not ready.shed
    assert ready.begin_batch() is ready.running
    assert [job.number for job in ready.batch] == [1, 2, 3]
    ready.drop(1)
    assert [job.number for job in ready.batch] == [1, 3]
    assert sorted(ready.in_flight(loaded.units, 1, 1)) == [1, 3, 4]
    assert ready.goes_on(9) is None and ready.batch == []


def test_a_candidate_that_a_dropper_refuses_makes_way_for_the_next() -> None:
    class First(Dropper):
        def judge(self, job: Job, at_ns: int, ahead: int) -> int:
            return 15 * (job.lineage[2] == 1)

    ready, loaded = loaded_queue(replace(policy("edf"), dropper=First()))
    for number in (1, 2):
        ready.release(0, loaded.units[0], tuple_(1, number), None)
    assert not list(ready.expired(0))
    first = ready.candidate(7)
    assert first is not None and first.number == 1 and ready.judge(first, 7) == 15
    ready.begin(first.unit, None)
    second = ready.candidate(7)
    assert second is not None and not ready.judge(second, 7)
    ready.begin(second.unit, second)
    assert ready.running is second


def test_an_instance_that_is_put_back_keeps_its_key_and_its_number() -> None:
    plan = replace(plan_of(SHAPES[:1]), operators=(
        plans.Operator(1, "O1", "pass", (1,), 2, 1), plans.Operator(2, "O2", "pass", (2,), 3, 1),
    ), units=(plans.Unit(1, (1, 2), 5, 40, (3,)),), streams=tuple(plans.Stream(i, f"s{i}", "json") for i in (1, 2, 3)),
        outputs=(plans.Output(1, "out", 3, 40),))  # fmt: skip
    chosen = policy("edf-op")
    loaded = compile_plan(plan, {1: (id, True), 2: (id, True)}, chosen)
    ready = ReadyQueue(chosen)
    ready.load(loaded, [loaded])
    rest, first = loaded.units
    for number in (1, 2):
        ready.release(0, first, tuple_(1, number), None)
    running = ready.pop(0)
    assert running is not None and first.rest is rest
    ready.put_back(rest, "more")
    again = ready.pop(1)
    assert again is not None and again.unit is rest and again.payload == "more"
    assert (again.key_ns, again.number, again.lineage) == (running.key_ns, running.number, running.lineage)


def test_a_plan_that_is_unloaded_leaves_nothing() -> None:
    ready, loaded = loaded_queue(policy("slack"))
    for unit in (0, 1, 1):
        ready.release(0, loaded.units[unit], tuple_(unit + 1, 1), None)
    assert [len(ready.take_all(unit)) for unit in loaded.units] == [1, 2, 0]
    ready.unload(loaded, [])
    assert ready.released == ready.dispatched and not ready.heads and not ready.meter.units
    assert ready.candidate(7) is None
