"""Absence marks through a union: it gives nothing only when none of its inputs does."""

from node_agent.core import plan as plans
from node_agent.core.engine.events import Received, ScenarioRunner, Start
from node_agent.core.policies import policy
from node_agent.core.punctuation import ABSENCE

LEFT, RIGHT, WHOLE, EITHER, OUT = range(1, 6)
LINEAGE = (1, 0, 1, 0, 0, 0)


def story() -> ScenarioRunner:
    """left and right, of which a tuple takes one, meet in a union; that joins with the whole."""
    plan = plans.Plan(
        query="either", node="a", index=0, hash=1, epoch=1, policy="fifo", largest_batch=1,
        streams=(
            *(plans.Stream(i, f"s{i}", "json", marked=True, producers=(1,)) for i in (LEFT, RIGHT, WHOLE, EITHER)),
            plans.Stream(OUT, "out", "json"),
        ),
        operators=(
            plans.Operator(1, "U", "union", (LEFT, RIGHT), EITHER, 1),
            plans.Operator(2, "J", "join", (EITHER, WHOLE), OUT, 1, join=True),
        ),
        units=(plans.Unit(1, (1,), 5, 10, exits=(EITHER,)), plans.Unit(2, (2,), 5, 10, exits=(OUT,))),
        outputs=(plans.Output(1, "out", OUT, 10),),
        peers=(plans.Peer(1, "b"),),
    )  # fmt: skip
    return ScenarioRunner(plan, policy("fifo"))


def test_one_absent_branch_does_not_make_the_union_absent() -> None:
    told = story()
    told.handle(Received(1, WHOLE, LINEAGE, "w"), Received(1, LEFT, LINEAGE, ABSENCE))
    assert told.loaded.waiting == 1
    (start,) = told.handle(Received(2, RIGHT, LINEAGE, "r"))
    assert told.loaded.waiting == 1 and isinstance(start, Start) and start.unit == 1


def test_when_all_branches_are_absent_the_union_is() -> None:
    told = story()
    told.handle(Received(1, WHOLE, LINEAGE, "w"), Received(1, LEFT, LINEAGE, ABSENCE))
    told.handle(Received(2, RIGHT, LINEAGE, ABSENCE))
    assert told.loaded.waiting == 0


def test_what_is_remembered_of_absences_is_limited() -> None:
    told = story()
    (union,) = [unit for unit in told.loaded.units if unit.id == 1]
    for seq in range(union.LIMIT + 10):
        told.handle(Received(1, LEFT, (1, 0, seq, 0, 0, 0), ABSENCE))
    assert len(union.absences) == union.LIMIT
