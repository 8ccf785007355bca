"""Marks on their way to windows, windows from plan to plan, and a story of them."""

from dataclasses import replace
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine.events import Admitted, Deliver, Ended, Expired, Finished, Heartbeat, ScenarioRunner, Start
from node_agent.core.engine.handover import inherit_state
from node_agent.core.policies import policy
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from node_agent.core.windows.results import Collecting, result
from protos import records
from tests.node_agent.core.simulated.window_node import WINDOWS, Names, Node, window, windowed

WINDOW = records.POLICY_WINDOW


def boxes(results: list[Any]) -> list[tuple[int, list[Any]]]:
    return [(each["window"], each["xs"]) for each in results]


# -- marks on their way


def chained(counted: bool = True) -> plans.Plan:
    """Two branches of source 1 meet in a join by lineage, whose stream leads to a peer."""
    stream = plans.Stream
    return plans.Plan(
        query="q", node="n", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(stream(i, f"s{i}", "json", True, counted=counted) for i in range(1, 5)),
        sources=(plans.Source(1, "a", 1, spans=((2, 5),)),),
        operators=(
            plans.Operator(1, "A", "pass", (1,), 2, 1), plans.Operator(2, "B", "pass", (1,), 3, 1),
            plans.Operator(3, "J", "join", (2, 3), 4, 1, join=True),
        ),
        units=(
            plans.Unit(1, (1,), 10, 100, exits=(2,)), plans.Unit(2, (2,), 10, 100, exits=(3,)),
            plans.Unit(3, (3,), 10, 100, exits=(4,)),
        ),
        sends=((4, 7),),
    )  # fmt: skip


def marks(node: Node) -> list[tuple[int, str]]:
    return [(lineage[2], repr(payload)) for _, _, lineage, payload in node.sent]


def test_a_join_is_passed_by_heartbeats_and_gives_a_mark_per_number() -> None:
    node = Node(chained())
    node.beat(0, 1)
    assert set(marks(node)) == {(1, "Progress(first=1)")}
    node.sent.clear()
    node.admit(1, 1).admit(2, 2).admit(3, 3).beat(4, 4)
    assert [each for each in marks(node) if each[0] != 4] == [
        (2, "Removal(first=2, exact=False)"), (3, "Removal(first=3, exact=False)"),
    ]  # fmt: skip


def test_one_filtered_branch_is_enough_for_a_join_to_give_nothing() -> None:
    node = Node(chained())
    lineage = (1, 0, 1, 0, 5, 5)
    node.engine.receive(6, node.loaded.routes[2], lineage, Removal(1))
    node.engine.receive(7, node.loaded.routes[3], lineage, ABSENCE)
    node.engine.receive(8, node.loaded.routes[2], (1, 0, 2, 0, 6, 6), Removal(2))
    node.engine.receive(9, node.loaded.routes[3], (1, 0, 2, 0, 6, 6), {"x": 2})
    assert marks(node) == [(1, "ABSENCE"), (2, "Removal(first=2, exact=True)")]
    node.sent.clear()
    node.engine.receive(10, node.loaded.routes[2], (1, 0, 3, 0, 6, 6), {"x": 3})
    node.engine.receive(10, node.loaded.routes[3], (1, 0, 4, 0, 6, 6), ABSENCE)
    node.engine.expire(10**12)
    assert marks(node) == [(3, "Removal(first=3, exact=True)"), (4, "ABSENCE")]


def test_on_a_stream_that_leads_to_no_window_only_absence_travels() -> None:
    node = Node(chained(counted=False))
    node.beat(0, 1).admit(1, 1).admit(2, 2)
    assert node.sent == [] and node.loaded.source_routes[1].delayed_removal is None
    node.engine.receive(3, node.loaded.routes[4], (1, 0, 9, 0, 1, 2), Removal(8))
    assert marks(node) == [(8, "ABSENCE"), (9, "ABSENCE")]
    node.engine.receive(3, node.loaded.routes[4], (1, 0, 9, 0, 1, 2), Progress(1))
    assert len(node.sent) == 2


# -- plans


def second(plan: plans.Plan, **changes: Any) -> plans.Plan:
    return replace(plan, hash=2, epoch=2, **changes)


def test_windows_go_on_under_the_next_plan() -> None:
    plan = windowed()
    node = Node(plan).beat(5, 1)
    node.admit(11, 1).admit(12, 2).run()
    node.admit(13, 3)  # still queued in the old plan
    new = node.load(second(plan))
    inherit_state(new, node.loaded)
    node.beat(14, 4, loaded=new).admit(15, 4, loaded=new).run()
    node.engine.unload(node.loaded, 16)
    node.beat(20, 5, loaded=new).run()
    assert boxes(node.results) == [(1, [1, 2, 3, 4])]
    assert [each.flags for each in node.records(records.Admitted) if each.source == WINDOWS] == [2]
    assert node.ends() == [("skipped", 0), ("closed", 1)]


def test_windows_of_an_operator_that_begins_anew_end_with_its_plan() -> None:
    plan = windowed()
    fresh = tuple(replace(each, fresh=True) for each in plan.operators)
    node = Node(plan).beat(5, 1)
    node.admit(11, 1).run()
    new = node.load(second(plan, operators=fresh))
    inherit_state(new, node.loaded)
    node.beat(14, 2, loaded=new).admit(15, 2, loaded=new).run()
    node.engine.unload(node.loaded, 16)
    node.admit(21, 3, loaded=new).admit(30, 4, loaded=new).run()
    assert [each[:2] for each in node.told() if each[4] == "stopped"] == [("abandoned", 1)]
    assert node.shed() == [], "it is in no ledger"
    assert boxes(node.results) == [(2, [3])]
    node.engine.unload(new, 31)
    assert node.engine.windows.operators == [] and node.engine.due_ns is None
    assert node.told()[-1] == ("abandoned", 3, 30, 40, "stopped", 1)


def test_another_window_is_another_operator() -> None:
    plan = windowed()
    for change, goes_on in (({"length": 20}, False), ({"by": "lane"}, False), ({"useful_ns": 70}, True)):
        node = Node(plan)
        new = node.load(second(windowed(window(**change))))
        inherit_state(new, node.loaded)
        assert (new.windows[0].state is node.loaded.windows[0].state) is goes_on, change


def test_numbers_of_windows_do_not_repeat() -> None:
    plan = windowed(window(hop=5, length=5))
    node = Node(plan).beat(1, 1)
    node.admit(7, 1).admit(11, 2).run()
    new = node.load(second(windowed(window(hop=10, length=10))))
    inherit_state(new, node.loaded)
    node.engine.unload(node.loaded, 12)
    node.beat(13, 3, loaded=new).admit(21, 3, loaded=new).admit(31, 4, loaded=new).run()
    admitted = [each.seq for each in node.records(records.Admitted) if each.source == WINDOWS]
    assert admitted == [1, 2] and [each["window"] for each in node.results] == [1, 2]


# -- as a story


def test_a_story_of_windows() -> None:
    story = ScenarioRunner(windowed(), policy("edf"), {2: (Collecting(Names()), False)})
    story.handle(Heartbeat(5, 1, 1, 5, 1), Admitted(11, 1, (1, 0, 1, 0, 11, 11), {"x": 1}))
    assert story.handle(Ended(12, 0, {"x": 1}), Finished(11, 12)) == [Start(2, (1, 0, 1, 0, 11, 11), 22, {"x": 1})]
    assert story.handle(Finished(12, 13)) == []
    (start,) = story.handle(Heartbeat(20, 1, 2, 20, 1))
    assert isinstance(start, Start) and (start.unit, start.lineage) == (3, (WINDOWS, 0, 1, 0, 20, 20))
    told = result(start.payload)
    assert story.handle(Ended(21, 0, told), Finished(20, 21)) == [
        Deliver(21, 1, (WINDOWS, 0, 1, 0, 20, 20), {"window": 1, "start_ns": 10, "end_ns": 20, "count": 1, "xs": [1]})
    ]
    assert story.handle(Expired(10**9)) == []
