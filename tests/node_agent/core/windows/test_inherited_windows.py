"""Which windows go on in the next plan: those whose sources' numbers go on."""

from dataclasses import replace
from typing import Any

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.handover import inherit_state, inherited
from node_agent.core.windows.sequence import NEVER
from tests.node_agent.core.simulated.window_node import Node, window, windowed


def _plan(epoch: int, feeds: tuple[tuple[int, int], ...], names: tuple[str, ...], **changes: Any) -> plans.Plan:
    window = replace(plans.Window("time", 10, 10, 9, feeds, names=names), **changes)
    streams = tuple(plans.Stream(number, name, "json") for number, name in ((1, "s"), (2, "t"), (3, "W.add")))
    operator = plans.Operator(5, "W.add", "aggregate", (1, 2), 3, 0, window=window)
    return plans.Plan("q", "b", 0, epoch, epoch, "edf", 1, streams, (), (operator,), ())


OLD = _plan(1, ((1, 0), (2, 1)), ("s@a", "t@a"))


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (_plan(2, ((1, 0), (2, 1)), ("s@a", "t@a")), True),
        (_plan(2, ((4, 0), (3, 1)), ("s@a", "t@a"), source=7, useful_ns=3, wait_ns=4), True),
        (_plan(2, ((1, 0), (2, 1)), ("s@c", "t@a")), False),  # another node numbers it
        (_plan(2, ((1, 1), (2, 0)), ("s@a", "t@a")), False),
        (_plan(2, ((1, 0), (2, 1)), ("t@a", "s@a")), False),
        (_plan(2, ((1, 0), (2, 1)), ("s@a", "t@a"), hop=5), False),
        (_plan(2, ((1, 0), (2, 1)), ("s@a", "t@a"), lateness_ns=1), False),
    ],
)
def test_windows_go_on_where_their_sources_do(new: plans.Plan, kept: bool) -> None:
    assert inherited(new, OLD) == ({5: 5} if kept else {})


def test_without_names_sources_are_known_by_their_ids() -> None:
    old = _plan(1, ((1, 0),), ("",))
    assert inherited(_plan(2, ((1, 0),), ("",)), old) == {5: 5}
    assert inherited(_plan(2, ((2, 0),), ("",)), old) == {}
    assert inherited(_plan(2, ((1, 0),), ("s@a",)), old) == {}


def test_a_tuple_of_no_known_age_costs_the_windows_that_it_may_lie_in() -> None:
    """Its sender's clock was not compared; the offset that a further node adds does not make it any better."""
    for unknown_ns in (NEVER, NEVER + 1_000_000):
        node = Node(windowed()).beat(5, 1)
        node.admit(11, 1).run()
        node.engine.admit(13, node.loaded.source_routes[1], (1, 0, 2, 0, unknown_ns, 12), {"x": 2}, 0)
        node.run().admit(21, 3).admit(31, 4).run()
        assert [each["window"] for each in node.results] == [2]
        assert node.loaded.windows[0].state.counts["abandoned"] == 1


def test_a_plan_that_drains_gives_up_no_window_for_want_of_heartbeats() -> None:
    node = Node(windowed(window(useful_ns=20))).beat(5, 1)
    node.admit(11, 1).admit(12, 2).run()
    node.loaded.windows[0].drains()
    node.expire(500)
    assert node.ends() == [("skipped", 0)] and node.engine.due_ns is None
    node.beat(510, 3, 20).run()
    assert [each["window"] for each in node.results] == [1]


def test_windows_that_go_on_in_the_next_plan_keep_their_deadlines() -> None:
    plan = windowed(window(useful_ns=20))
    node = Node(plan).beat(5, 1).admit(11, 1).run()
    old, new = node.loaded, node.load(replace(plan, hash=7, epoch=2))
    inherit_state(new, old)
    for each in old.windows:
        each.drains()
    node.expire(500)
    assert ("abandoned", 1) in node.ends()
