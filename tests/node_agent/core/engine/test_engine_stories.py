"""Event stories: these events, these commands, these facts."""

from dataclasses import replace

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.events import (
    Admitted,
    Command,
    Deliver,
    Ended,
    Failed,
    Finished,
    Received,
    ScenarioRunner,
    Send,
    Start,
)
from node_agent.core.meters import NodeMeter
from node_agent.core.model import Job, Queue, Unit
from node_agent.core.plan import DEFAULTS
from node_agent.core.policies import POLICIES, policy
from node_agent.core.policies.fixed_batches import Fixed
from node_agent.core.policies.policy_parts import Dropper
from node_agent.core.punctuation import ABSENCE
from protos import records
from tests.sentences import Wording
from tests.traces import Kind, of

SAID = Wording("engine", "policies")

Lineage = tuple[int, int, int, int, int, int]


def lineage(seq: int, origin_ns: int = 0) -> Lineage:
    return 1, 0, seq, 0, origin_ns, origin_ns


def stream(number: int, marked: bool = False) -> plans.Stream:
    return plans.Stream(number, f"s{number}", "json", marked=marked)


def base(**changes: object) -> plans.Plan:
    empty = plans.Plan(query="q", node="a", index=0, hash=1, epoch=3, policy="edf", largest_batch=1)
    return replace(empty, **changes)  # type: ignore[arg-type]


def facts(story: ScenarioRunner, kind: type[Kind]) -> list[Kind]:
    return of(kind, records.unpack_records(story.facts.data()))


def starts(commands: list[Command]) -> list[tuple[int, int]]:
    return [(each.unit, each.lineage[2]) for each in commands if isinstance(each, Start)]


def two_units() -> plans.Plan:
    """Source 1 -> unit 1 (sub-deadline 10, end to end 100); source 2 -> unit 2 (sub-deadline 4, end to end 500)."""
    return base(
        streams=tuple(stream(i) for i in range(1, 5)),
        sources=(plans.Source(1, "one", 1), plans.Source(2, "two", 2)),
        operators=(plans.Operator(1, "O1", "pass", (1,), 3, 1), plans.Operator(2, "O2", "pass", (2,), 4, 1)),
        units=(plans.Unit(1, (1,), 10, 100, exits=(3,)), plans.Unit(2, (2,), 4, 500, exits=(4,))),
        outputs=(plans.Output(1, "out1", 3, 100), plans.Output(2, "out2", 4, 500)),
    )


def test_an_idle_engine_starts_the_earliest_of_all_arrivals_of_the_instant() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    assert starts(story.handle(Admitted(0, 1, lineage(1)), Admitted(0, 2, lineage(2)))) == [(2, 2)]


@pytest.mark.parametrize(
    ("name", "order"), [("edf", [2, 1]), ("edf-op", [2, 1]), ("fifo", [1, 2]), ("edf-e2e", [1, 2])]
)
def test_each_policy_orders_by_its_own_key(name: str, order: list[int]) -> None:
    story = ScenarioRunner(two_units(), policy(name))
    first = story.handle(Admitted(0, 1, lineage(1)), Admitted(1, 2, lineage(2, 1)))
    second = story.handle(Ended(2, 0), Finished(1, 2))
    assert [unit for unit, _ in starts(first + second)] == order


def test_a_running_instance_is_not_interrupted_by_an_earlier_deadline() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    assert starts(story.handle(Admitted(0, 1, lineage(1)))) == [(1, 1)]
    assert story.handle(Admitted(1, 2, lineage(2))) == []
    assert starts(story.handle(Ended(5, 0), Finished(0, 5))) == [(2, 2)]


def relay(*, sent: bool) -> plans.Plan:
    """Source 1 -> unit 1 -> unit 2 (sub-deadline 6); source 2 -> unit 3 (sub-deadline 4). sent: what unit 1 gives also
    goes to peer 7."""
    return base(
        streams=tuple(stream(i) for i in range(1, 6)),
        sources=(plans.Source(1, "one", 1), plans.Source(2, "two", 2)),
        operators=(
            plans.Operator(1, "O1", "pass", (1,), 3, 1),
            plans.Operator(2, "O2", "pass", (3,), 4, 1),
            plans.Operator(3, "O3", "pass", (2,), 5, 1),
        ),
        units=(
            plans.Unit(1, (1,), 10, 100, exits=(3,)),
            plans.Unit(2, (2,), 6, 100, exits=(4,)),
            plans.Unit(3, (3,), 4, 100, exits=(5,)),
        ),
        outputs=(plans.Output(1, "out1", 4, 100), plans.Output(2, "out2", 5, 100)),
        sends=((3, 7),) if sent else (),
        peers=(plans.Peer(7, "b"),),
    )


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize(("name", "keys"), [("edf", [7, 11]), ("edf-op", [7, 11]), ("fifo", [3, 5]), ("bts", [7, 11])])
def test_what_an_instance_triggers_is_released_when_it_ends(name: str, keys: list[int], sent: bool) -> None:
    """Unit 1 runs from 0 to 5. Released at its start, unit 2 would be due at 6, before unit 3, released at 3."""
    story = ScenarioRunner(relay(sent=sent), policy(name))
    story.handle(Admitted(0, 1, lineage(1)))
    story.handle(Admitted(3, 2, lineage(2)))
    told = [story.handle(Ended(5, 0), Finished(0, 5)), story.handle(Ended(6, 0), Finished(5, 6))]
    started = [each for commands in told for each in commands if isinstance(each, Start)]
    assert [each.unit for each in started] == [3, 2]
    assert [each.key for each in started] == keys


def test_ties_go_to_the_earlier_release_then_the_earlier_arrival() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(9)))
    story.handle(Admitted(6, 2, lineage(1)), Admitted(6, 2, lineage(2)))  # due at 10
    story.handle(Admitted(0, 1, lineage(3)))  # due at 10 as well, released at 0
    order = []
    for at_ns in (7, 8, 9):
        order += starts(story.handle(Finished(at_ns - 1, at_ns)))
    assert order == [(1, 3), (2, 1), (2, 2)]


def test_edf_on_the_end_to_end_deadline_orders_by_origin_inside_a_unit() -> None:
    story = ScenarioRunner(two_units(), policy("edf-e2e"))
    story.handle(Admitted(0, 2, lineage(9)))
    story.handle(Admitted(1, 1, lineage(1, 90)), Admitted(1, 1, lineage(2, 30)), Admitted(1, 1, lineage(3, 60)))
    order = [starts(story.handle(Finished(at, at + 1)))[0] for at in (1, 2, 3)]
    assert order == [(1, 2), (1, 3), (1, 1)]
    assert story.handle(Finished(4, 5)) == []


def test_a_result_is_delivered_and_written_down() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)))
    assert story.handle(Ended(5, 0, "x"), Finished(0, 5)) == [Deliver(5, 1, lineage(1), "x")]
    (ran,) = facts(story, records.Ran)
    assert (ran.unit, ran.release_ns, ran.start_ns, ran.end_ns, ran.due_ns, ran.flags) == (1, 0, 0, 5, 10, 3)
    assert records.per_exit(ran.outputs, 1) == (1,)
    (output,) = facts(story, records.Output)
    assert (output.output, output.at_ns, output.deadline_ns) == (1, 5, 100)


def test_a_filtered_tuple_leaves_a_fact_without_outputs() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)))
    assert story.handle(Finished(0, 5)) == []
    (ran,) = facts(story, records.Ran)
    assert records.per_exit(ran.outputs, 1) == (0,)


def test_an_operator_that_fails_costs_its_tuple_only() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)), Admitted(0, 1, lineage(2)))
    assert starts(story.handle(Failed(0, 3, records.CAUSE_OPERATOR_ERROR))) == [(1, 2)]
    (lost,) = facts(story, records.Lost)
    assert (lost.seq, lost.unit, lost.at_ns, lost.cause) == (1, 1, 3, records.CAUSE_OPERATOR_ERROR)


def test_beyond_the_limit_an_arrival_is_lost_and_counted() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    story.engine.limit_to(1)
    story.handle(Admitted(0, 1, lineage(1)), Admitted(0, 1, lineage(2)))
    story.handle(Admitted(1, 1, lineage(3)))
    assert [(each.seq, each.unit, each.cause) for each in facts(story, records.Lost)] == [
        (2, records.NO_REF, records.CAUSE_QUEUE_FULL)
    ]


def diamond() -> plans.Plan:
    """Stream 1 -> O1 -> 2 and O2 -> 3; O3 joins 2 and 3 -> 4 -> out. 2 also goes to peer 7."""
    return base(
        streams=(stream(1, marked=True), stream(2, marked=True), stream(3, marked=True), stream(4)),
        sources=(plans.Source(1, "in", 1),),
        operators=(
            plans.Operator(1, "O1", "pass", (1,), 2, 1),
            plans.Operator(2, "O2", "pass", (1,), 3, 1),
            plans.Operator(3, "O3", "join", (2, 3), 4, 1, join=True),
        ),
        units=(
            plans.Unit(1, (1,), 1, 100, exits=(2,)),
            plans.Unit(2, (2,), 2, 100, exits=(3,)),
            plans.Unit(3, (3,), 3, 100, exits=(4,)),
        ),
        outputs=(plans.Output(1, "out", 4, 100),),
        sends=((2, 7),),
        peers=(plans.Peer(7, "b"),),
    )


def test_a_join_waits_for_both_branches_and_every_contributor_ends() -> None:
    story = ScenarioRunner(diamond(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)))
    assert story.handle(Ended(1, 0, "left"), Finished(0, 1)) == [
        Send(1, 7, 2, lineage(1), "left"),
        Start(2, lineage(1), 2, None),
    ]
    (start,) = story.handle(Ended(2, 0, "right"), Finished(1, 2))
    assert start == Start(3, lineage(1), 5, ("left", "right"))
    (merged,) = facts(story, records.Merged)
    assert (merged.unit, merged.partner_absent, merged.parent_seq) == (3, 0, 1)
    assert story.loaded.waiting == 0


def test_a_filtered_branch_sends_an_absence_mark_and_the_partner_ends() -> None:
    story = ScenarioRunner(diamond(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)))
    assert story.handle(Finished(0, 1)) == [Send(1, 7, 2, lineage(1), ABSENCE), Start(2, lineage(1), 2, None)]
    assert story.handle(Ended(2, 0, "right"), Finished(1, 2)) == []
    (merged,) = facts(story, records.Merged)
    assert merged.partner_absent == 1
    assert story.loaded.waiting == 0


def test_a_lost_branch_sends_an_absence_mark_too() -> None:
    story = ScenarioRunner(diamond(), policy("edf"))
    story.handle(Admitted(0, 1, lineage(1)))
    story.handle(Failed(0, 1, records.CAUSE_OPERATOR_ERROR))
    story.handle(Ended(2, 0), Finished(1, 2))
    assert [each.partner_absent for each in facts(story, records.Merged)] == [1]


def test_a_join_without_its_partner_expires() -> None:
    story = ScenarioRunner(diamond(), policy("edf"))
    story.handle(Received(0, 2, lineage(1), "left"))
    story.engine.expire(10)
    assert story.loaded.waiting == 1
    story.engine.expire(2 * 100 + 1_000_000_000)
    assert story.loaded.waiting == 0
    assert [each.cause for each in facts(story, records.Lost)] == [records.CAUSE_JOIN_EXPIRED]


def test_the_joined_result_takes_the_oldest_origin() -> None:
    story = ScenarioRunner(diamond(), policy("edf"))
    story.handle(Received(5, 2, (1, 0, 1, 0, 10, 14), "left"))
    (start,) = story.handle(Received(6, 3, (1, 0, 1, 0, 9, 16), "right"))
    assert isinstance(start, Start)
    assert start.lineage == (1, 0, 1, 0, 9, 14)


def test_a_side_input_is_stored_before_releases_and_triggers_nothing() -> None:
    plan = base(
        streams=tuple(stream(i) for i in range(1, 4)),
        sources=(plans.Source(1, "in", 1), plans.Source(2, "state", 2)),
        operators=(plans.Operator(1, "O1", "x", (1,), 3, 1, sides=(("ego", 2),)),),
        units=(plans.Unit(1, (1,), 5, 100, exits=(3,)),),
        outputs=(plans.Output(1, "out", 3, 100),),
    )
    story = ScenarioRunner(plan, policy("edf"))
    (slot,) = story.loaded.units[0].chain[0].sides
    assert slot.value is None
    assert story.handle(Admitted(0, 2, (2, 0, 1, 0, 0, 0), "newest")) == []
    assert slot.value == "newest"
    assert [each.ref for each in facts(story, records.Absorbed)] == [1]


def chain_of_two() -> plans.Plan:
    """Unit 1 = (O1, O2), sub-deadline 10; unit 2 = (O3), sub-deadline 4."""
    return base(
        streams=tuple(stream(i) for i in range(1, 6)),
        sources=(plans.Source(1, "one", 1), plans.Source(2, "two", 2)),
        operators=(
            plans.Operator(1, "O1", "pass", (1,), 3, 1),
            plans.Operator(2, "O2", "pass", (3,), 4, 1),
            plans.Operator(3, "O3", "pass", (2,), 5, 1),
        ),
        units=(plans.Unit(1, (1, 2), 10, 100, exits=(4,)), plans.Unit(2, (3,), 4, 100, exits=(5,))),
        outputs=(plans.Output(1, "out1", 4, 100), plans.Output(2, "out2", 5, 100)),
    )


def test_edf_op_switches_at_the_operators_boundary_and_goes_on_with_its_deadline() -> None:
    story = ScenarioRunner(chain_of_two(), policy("edf-op"))
    assert starts(story.handle(Admitted(0, 1, lineage(1)))) == [(1, 1)]
    story.handle(Admitted(1, 2, lineage(2)))  # due at 5, earlier than 10
    story.engine.suspend("between")
    assert starts(story.handle(Finished(0, 2))) == [(2, 2)]
    (start,) = (each for each in story.handle(Ended(3, 0), Finished(2, 3)) if isinstance(each, Start))
    assert (start.unit, start.key, start.payload) == (1, 10, "between")
    story.handle(Ended(4, 0), Finished(3, 4))
    assert [(each.unit, each.unfinished) for each in facts(story, records.Ran)] == [
        (1, True), (2, False), (1, False),
    ]  # fmt: skip


def test_a_batch_runs_the_whole_burst_as_one_instance_and_accounts_for_each_tuple() -> None:
    story = ScenarioRunner(two_units(), policy("edf", largest_batch=0))
    burst = [Admitted(0, 1, lineage(seq, 0)) for seq in (1, 2, 3)]
    other = Admitted(0, 1, lineage(4, 7))
    story.handle(*burst, other)
    assert [job.lineage[2] for job in story.engine.jobs] == [1, 2, 3]
    assert starts(story.handle(Finished(0, 9))) == [(1, 4)]
    assert [(each.seq, each.end_ns) for each in facts(story, records.Ran)] == [(1, 9), (2, 9), (3, 9)]


def test_a_batch_is_no_larger_than_the_plan_allows() -> None:
    story = ScenarioRunner(two_units(), policy("edf", largest_batch=2))
    story.handle(*(Admitted(0, 1, lineage(seq, 0)) for seq in (1, 2, 3)))
    assert [job.lineage[2] for job in story.engine.jobs] == [1, 2]
    assert starts(story.handle(Finished(0, 9))) == [(1, 3)]


def test_two_plans_run_side_by_side_and_an_unloaded_one_leaves_nothing() -> None:
    story = ScenarioRunner(two_units(), policy("edf"))
    other = story.engine.load(replace(two_units(), hash=2, epoch=4), {1: (str, True), 2: (str, True)})
    story.engine.admit(0, other.source_routes[1], lineage(50), None, 0)
    story.handle(Admitted(0, 2, lineage(1)))
    assert (other.ready, story.loaded.ready) == (1, 0)
    story.engine.unload(other, 3)
    assert story.handle(Finished(0, 4)) == []
    assert [(each.seq, each.cause, each.flags) for each in facts(story, records.Lost)] == [
        (50, records.CAUSE_STOPPED, 4)
    ]


def test_unknown_policy_names_those_that_exist() -> None:
    with SAID.refuses("unknown_policy edff", kind=ValueError):
        policy("edff")
    assert POLICIES["edf"].guaranteed and not POLICIES["fifo"].guaranteed


@pytest.mark.parametrize("name", ["edf", "edf-e2e"])
def test_a_dropper_sheds_what_is_not_worth_running_and_the_next_job_starts(name: str) -> None:
    """Past its sub-deadline a job is shed; a partner that waits for it in a join ends."""

    class Overdue(Dropper):
        def judge(self, job: Job, at_ns: int, ahead: int) -> int:
            return records.POLICY_EXCESS if at_ns > job.release_ns + job.unit.sub_deadline_ns else 0

    late = replace(policy(name), dropper=Overdue())
    story = ScenarioRunner(two_units(), late)
    story.handle(Admitted(0, 1, lineage(1)), Admitted(0, 2, lineage(2)), Admitted(0, 1, lineage(3)))
    running = [each.seq for each in facts(story, records.Ran)]
    assert running == []
    story.handle(Admitted(19, 2, lineage(4, 19)))
    assert starts(story.handle(Finished(0, 20))) == [(2, 4)]
    shed = [(each.kind, each.at_ns, each.policy) for each in facts(story, records.Shed)]
    assert shed == [(records.SHED, 20, records.POLICY_EXCESS)] * 2
    assert story.handle(Finished(20, 21)) == []
    assert story.engine.ready.released == story.engine.dispatched == 4


def test_a_shed_branch_sends_an_absence_mark() -> None:
    class OfUnitTwo(Dropper):
        def judge(self, job: Job, at_ns: int, ahead: int) -> int:
            return job.unit.id == 2

    story = ScenarioRunner(diamond(), replace(policy("edf"), dropper=OfUnitTwo()))
    story.handle(Admitted(0, 1, lineage(1)))
    story.handle(Ended(1, 0, "left"), Finished(0, 1))
    assert [each.ref for each in facts(story, records.Shed)] == [2]
    assert [each.partner_absent for each in facts(story, records.Merged)] == [1]
    assert story.loaded.waiting == 0


class Doubling(Fixed):
    """A tuner that lets each batch be twice as large as the one before."""

    def __init__(self) -> None:
        super().__init__(NodeMeter(), DEFAULTS)
        self.largest = 1
        self.told: list[tuple[int, int, int]] = []

    def behind(self, head: Job, queue: Queue) -> int:
        return min(self.largest - 1, len(queue))

    def eligible_ns(self, head: Job) -> int:
        return 0

    def ended(self, unit: Unit, jobs: int, ran_ns: int, decision_ns: int) -> None:
        self.told.append((jobs, ran_ns, decision_ns))
        self.largest *= 2


def test_a_tuner_forms_the_batches_and_is_told_what_they_cost() -> None:
    tuner = Doubling()
    story = ScenarioRunner(two_units(), replace(policy("edf"), tuner=lambda meter, parameters: tuner))
    story.handle(*(Admitted(0, 1, lineage(seq)) for seq in range(1, 8)))
    for start_ns in (1, 12, 23):
        story.handle(Finished(start_ns, start_ns + 10))
    assert tuner.told == [(1, 10, 1), (2, 10, 1), (4, 10, 1)]
    assert [each.seq for each in facts(story, records.Ran)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_policy_that_contradicts_itself_is_refused() -> None:
    for wrong, code in (
        ({"key": lambda unit, each: 0}, "given_twice"),
        ({"offset": None}, "given_twice"),
        ({"tuner": Doubling, "yields": True}, "not_in_batches"),
        ({"tuner": Doubling, "batch": lambda head, queue: 0}, "given_twice"),
    ):
        with SAID.refuses(code, kind=ValueError):
            replace(policy("edf"), **wrong)
