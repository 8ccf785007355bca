"""A union may bring one lineage twice to a join: each arrival waits for a partner of its own."""

from node_agent.core import plan as plans
from node_agent.core.engine.events import Admitted, Ended, Finished, ScenarioRunner
from node_agent.core.model import Join
from node_agent.core.policies import policy
from protos import records

TWICE, ONCE, OUT = 1, 2, 3


def story() -> ScenarioRunner:
    plan = plans.Plan(
        query="twice", node="a", index=0, hash=1, epoch=1, policy="fifo", largest_batch=1,
        streams=(plans.Stream(TWICE, "t", "json", marked=True), plans.Stream(ONCE, "o", "json", marked=True),
                 plans.Stream(OUT, "out", "json")),
        sources=(plans.Source(1, "t", TWICE), plans.Source(2, "o", ONCE)),
        operators=(plans.Operator(1, "J", "join", (TWICE, ONCE), OUT, 1, join=True),),
        units=(plans.Unit(1, (1,), 5, 10, exits=(OUT,)),),
        outputs=(plans.Output(1, "out", OUT, 10),),
    )  # fmt: skip
    return ScenarioRunner(plan, policy("fifo"))


def facts(told: ScenarioRunner) -> list[tuple[int, int]]:
    return [(r.kind, r.cause if isinstance(r, records.Lost) else 0) for r in records.unpack_records(told.facts.data())]


def test_two_arrivals_at_one_port_make_no_result_and_both_are_accounted_for() -> None:
    told = story()
    lineage = (1, 0, 1, 0, 0, 0)
    assert not told.handle(Admitted(1, 1, lineage, "x"), Admitted(1, 1, lineage, "y"))
    (start,) = told.handle(Admitted(2, 2, lineage, "z"))
    assert start.payload == ("x", "z")
    told.handle(Ended(3, 0, "xz"), Finished(2, 3))
    assert told.loaded.waiting == 1
    told.engine.expire(told.loaded.joins[0].wait_ns + 1)
    assert told.loaded.waiting == 0
    assert [kind for kind, _ in facts(told)] == [
        records.ADMITTED, records.ADMITTED, records.ADMITTED, records.MERGED, records.OUTPUT, records.RAN, records.LOST,
    ]  # fmt: skip
    assert facts(told)[-1] == (records.LOST, records.CAUSE_JOIN_EXPIRED)


def test_as_many_partners_as_arrivals_make_as_many_results() -> None:
    told = story()
    lineage = (1, 0, 1, 0, 0, 0)
    told.handle(Admitted(1, 1, lineage, "x"), Admitted(1, 1, lineage, "y"), Admitted(1, 2, lineage, "z"))
    told.handle(Admitted(2, 2, lineage, "w"))
    (second,) = told.handle(Finished(1, 3))
    assert second.payload == ("y", "w")
    assert told.loaded.waiting == 0


def test_expiry_takes_all_arrivals_of_a_lineage() -> None:
    told = story()
    lineage = (1, 0, 1, 0, 0, 0)
    told.handle(*(Admitted(1, 1, lineage, each) for each in "xyz"))
    told.engine.expire(told.loaded.joins[0].wait_ns + 1)
    assert facts(told)[3:] == [(records.LOST, records.CAUSE_JOIN_EXPIRED)] * 3


def test_a_lineage_that_comes_again_and_again_waits_in_a_bounded_row() -> None:
    told = story()
    lineage = (1, 0, 1, 0, 0, 0)
    told.handle(*(Admitted(1, 1, lineage, number) for number in range(2 * Join.IN_A_ROW)))
    lost = [each for each in facts(told) if each == (records.LOST, records.CAUSE_JOIN_EXPIRED)]
    assert len(lost) == Join.IN_A_ROW, "what would begin one more"
    told.engine.expire(told.loaded.joins[0].wait_ns + 1)
    lost = [each for each in facts(told) if each == (records.LOST, records.CAUSE_JOIN_EXPIRED)]
    assert len(lost) == 2 * Join.IN_A_ROW and told.loaded.waiting == 0
