"""[P] figure 6: T1 = (O1, O2) with sub-deadline 2, T2 = (O3) with 5, cost 1; p1 at 1 (O3's input at 2), p2 at 3."""

from node_agent.core import plan as plans
from node_agent.core.engine.events import Admitted, Command, Ended, Finished, ScenarioRunner, Start
from node_agent.core.policies import policy
from protos import records

IN, MIDDLE, T1_OUT, T2_OUT = 1, 2, 3, 4


def figure6_plan() -> plans.Plan:
    """O1's output goes to O2 (same unit) and to O3 (its own unit)."""
    return plans.Plan(
        query="figure6",
        node="a",
        index=0,
        hash=6,
        epoch=1,
        policy="edf",
        largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json") for i in (IN, MIDDLE, T1_OUT, T2_OUT)),
        sources=(plans.Source(1, "in", IN),),
        operators=(
            plans.Operator(1, "O1", "pass", (IN,), MIDDLE, 1),
            plans.Operator(2, "O2", "pass", (MIDDLE,), T1_OUT, 1),
            plans.Operator(3, "O3", "pass", (MIDDLE,), T2_OUT, 1),
        ),
        units=(
            plans.Unit(1, (1, 2), 2, 100, exits=(MIDDLE, T1_OUT)),
            plans.Unit(2, (3,), 5, 100, exits=(T2_OUT,)),
        ),
        outputs=(plans.Output(1, "out1", T1_OUT, 100), plans.Output(2, "out2", T2_OUT, 100)),
    )


def lineage(seq: int, at_ns: int) -> tuple[int, int, int, int, int, int]:
    return 1, 0, seq, 0, at_ns, at_ns


def started(commands: list[Command]) -> list[tuple[int, int]]:
    return [(each.lineage[2], each.unit) for each in commands if isinstance(each, Start)]


def play(policy_name: str) -> list[records.Ran]:
    """Both tuples through the node, operator by operator; returns the RAN facts."""
    story = ScenarioRunner(figure6_plan(), policy(policy_name))
    arrivals = {1: Admitted(1, 1, lineage(1, 1)), 3: Admitted(3, 1, lineage(2, 3))}
    running, began = 0, 0
    for now in range(1, 9):
        events: list[object] = []
        if running:
            ran = now - began
            ends = {1: 2, 2: 1}[running]
            events.append(Ended(now, ran - 1))
            if ran == ends:
                events.append(Finished(began, now))
                running = 0
        if now in arrivals:
            events.append(arrivals[now])
        if events:
            for _, unit in started(story.handle(*events)):  # type: ignore[arg-type]
                running, began = unit, now
    return [r for r in records.unpack_records(story.facts.data()) if isinstance(r, records.Ran)]


def test_edf_completes_as_printed_and_meets_every_sub_deadline() -> None:
    ran = play("edf")
    assert [(r.seq, r.unit, r.end_ns) for r in ran] == [(1, 1, 3), (2, 1, 5), (1, 2, 6), (2, 2, 7)]
    assert all(r.end_ns <= r.due_ns for r in ran)


def test_fifo_misses_the_second_tuple_of_t1() -> None:
    ran = play("fifo")
    late = [(r.seq, r.unit, r.end_ns, r.due_ns) for r in ran if r.end_ns > r.due_ns]
    assert late == [(2, 1, 6, 5)]
