"""Windows in the engine, event by event: what goes in, what comes out, and what the ledger says of it."""

from dataclasses import replace
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.windows.aggregates import Grouped, Mean, Together, Users, field
from node_agent.core.windows.gaps import Gaps
from node_agent.core.windows.window_join import Join
from protos import records
from tests.node_agent.core.simulated.window_node import COUNT, WINDOWS, Node, Values, window, windowed

WINDOW = records.POLICY_WINDOW


def boxes(results: list[Any]) -> list[tuple[int, list[Any]]]:
    return [(each["window"], each["xs"]) for each in results]


def test_a_tumbling_window_is_a_tuple_of_its_own_source() -> None:
    node = Node(windowed()).beat(5, 1)
    for number in range(1, 5):
        node.admit(8 + 2 * number, number).run()  # 10, 12, 14, 16
    node.admit(20, 5).run()
    assert node.results == [{"window": 1, "start_ns": 10, "end_ns": 20, "count": 4, "xs": [1, 2, 3, 4]}]
    admitted = [each for each in node.records(records.Admitted) if each.source == WINDOWS]
    assert [
        (each.source_id, each.epoch, each.seq, each.at_ns, each.origin_lo_ns, each.origin_hi_ns) for each in admitted
    ] == [(WINDOWS, 0, 1, 20, 20, 20)]
    ran = [each for each in node.records(records.Ran) if each.source == WINDOWS]
    assert [(each.unit, each.seq, each.release_ns) for each in ran] == [(3, 1, 20)]
    (output,) = node.records(records.Output)
    assert (output.source, output.seq, output.origin_lo_ns) == (WINDOWS, 1, 20)
    assert node.told() == [
        ("skipped", 0, 0, 10, "-", 0), ("opened", 1, 10, 20, "-", 0), ("closed", 1, 10, 20, "-", 4),
        ("opened", 2, 20, 30, "-", 0),
    ]  # fmt: skip
    assert node.loaded.windows[0].state.counts == {
        "opened": 2, "closed": 1, "abandoned": 0, "skipped": 0, "empty": 0, "empty_within": 0,
    }  # fmt: skip
    assert node.loaded.windows[0].name == "W"


def test_sliding_windows_overlap() -> None:
    node = Node(windowed(window(length=10, hop=4))).beat(3, 1)
    for number, at_ns in enumerate(range(4, 24, 4), start=1):
        node.admit(at_ns, number).run()
    assert boxes(node.results) == [(1, [1, 2, 3]), (2, [2, 3, 4])]


def test_windows_by_count_are_of_admitted_numbers() -> None:
    node = Node(windowed(window(kind="count", length=3, hop=3))).beat(0, 1)
    for number in range(1, 10):
        node.admit(10 * number, number, passes=number != 4).run()
    assert node.results == [
        {"window": 0, "first": 1, "last": 3, "count": 3, "xs": [1, 2, 3]},
        {"window": 1, "first": 4, "last": 6, "count": 2, "xs": [5, 6]},
        {"window": 2, "first": 7, "last": 9, "count": 3, "xs": [7, 8, 9]},
    ]
    origins = [each.origin_lo_ns for each in node.records(records.Admitted) if each.source == WINDOWS]
    assert origins == [30, 60, 90], "of the youngest tuple"
    oldest = Node(windowed(window(kind="count", length=3, hop=3, first=True))).beat(0, 1)
    for number in range(1, 7):
        oldest.admit(10 * number, number).run()
    assert [each.origin_lo_ns for each in oldest.records(records.Admitted) if each.source == WINDOWS] == [10, 40]


def test_the_data_says_how_long_a_window_is() -> None:
    spec = window(kind="sized", size="my.length", length=10, hop=20)
    node = Node(windowed(spec), size=lambda payload: payload["long"]).beat(19, 1)
    node.admit(21, 1, long=4).admit(22, 2, long=99).admit(25, 3, long=99).run()
    assert node.results == [{"window": 1, "start_ns": 20, "end_ns": 24, "count": 2, "xs": [1, 2]}]


def test_a_join_of_two_sources_by_key() -> None:
    spec = window(feeds=((1, 0), (2, 1)), on=("k", "k"))
    node = Node(windowed(spec), Join((field("k"), field("k")), 2, frozenset({1})))
    node.beat(3, 1).beat(4, 1, source=2)
    node.admit(11, 1, k="u").admit(12, 1, source=2, k="v").admit(13, 2, source=2, k="u").run()
    node.beat(20, 2).beat(20, 3, source=2).run()
    (only,) = node.results
    assert only["count"] == 3 and only["pairs"] == [{"left": {"x": 1, "k": "u"}, "right": {"x": 2, "k": "u"}}]


def test_groups_and_a_users_own_aggregate() -> None:
    node = Node(windowed(window(by="lane")), Grouped(field("lane"), Together({"m": (Mean, field("x"))}))).beat(3, 1)
    node.admit(10, 1, lane=1).admit(11, 2, lane=2).admit(12, 3, lane=1).admit(20, 4, lane=1).run()
    assert node.results[0]["groups"] == {"1": {"m": 2.0}, "2": {"m": 2.0}}

    class Last:
        def start(self) -> int:
            return 0

        def add(self, state: int, value: Any) -> int:
            return int(value["x"])

        def result(self, state: int) -> int:
            return 10 // (state - 2)  # fails on a window that ends with tuple 2

    own = Node(windowed(), Users(Last())).beat(3, 1)
    own.admit(10, 1).admit(11, 2).admit(21, 3).admit(30, 4).run()
    assert [each["result"] for each in own.results] == [10], "the other one is lost in the operator that closes it"
    (lost,) = own.records(records.Lost)
    assert (lost.source, lost.seq, lost.unit, lost.cause) == (WINDOWS, 1, 3, records.CAUSE_OPERATOR_ERROR)


def test_an_aggregate_that_exits_costs_its_window_and_not_the_node() -> None:
    class Leaves(Values):
        def add(self, source: int, payload: Any) -> None:
            super().add(source, payload)
            if payload["x"] == 2:
                raise SystemExit("enough")

    class Leaving:
        def start(self) -> Leaves:
            return Leaves()

    node = Node(windowed(), Leaving()).beat(5, 1)
    node.admit(11, 1).admit(12, 2).admit(21, 3).admit(30, 4).run()
    assert boxes(node.results) == [(2, [3])] and node.ends() == [("skipped", 0), ("abandoned", 1), ("closed", 2)]
    assert node.records(records.Lost) == []


def test_a_result_that_policing_sheds_is_missing_in_its_window() -> None:
    plan = windowed()
    first = replace(plan.operators[0], at_most=((2, 1),))
    node = Node(replace(plan, operators=(first, *plan.operators[1:]))).beat(5, 1)
    node.admit(11, 1).admit(12, 2).admit(21, 3, passes=False).admit(30, 4).run()
    assert node.shed()[0] == (1, 2, records.POLICY_SELECTIVITY)
    assert node.ends() == [("skipped", 0), ("abandoned", 1), ("closed", 2)]


def test_empty_windows_are_given_by_heartbeats_alone() -> None:
    node = Node(windowed(), COUNT).beat(5, 1)
    for at_ns in range(10, 45, 5):
        node.beat(at_ns, 1).run()
    assert [(each["window"], each["n"]) for each in node.results] == [(1, 0), (2, 0), (3, 0)]


def test_empty_windows_are_counted_and_those_within_a_feed_apart() -> None:
    """Before the feed, within it, and behind its end: only what lies between two windows with tuples is a gap."""
    node = Node(windowed()).beat(5, 1)
    counts = node.loaded.windows[0].state.counts

    def seen() -> tuple[int, int, int]:
        return counts["closed"], counts["empty"], counts["empty_within"]

    node.beat(30, 1).run()  # windows 1 and 2, before the feed
    assert seen() == (2, 2, 0)
    node.admit(35, 1).admit(38, 2, passes=False).run()
    node.beat(70, 3).run()  # 3 with a tuple, then 4 to 6, which may be its end
    assert seen() == (6, 5, 0)
    node.admit(75, 3).run().beat(80, 4).run()  # they were none
    assert seen() == (7, 5, 3)
    node.admit(85, 4, passes=False).run().beat(120, 5).run()  # 8 to 11: what filters leave empty is empty
    assert seen() == (11, 9, 3)


def test_an_empty_window_that_closes_out_of_order_is_within_a_feed_only_behind_one_with_tuples() -> None:
    gaps = Gaps()
    closed = [(5, 1), (3, 0), (6, 1), (9, 0), (8, 1), (10, 1), (11, 0), (12, 0), (13, 2)]
    assert [gaps.closed(number, tuples) for number, tuples in closed] == [0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_what_is_filtered_does_not_hold_a_window_up_and_is_not_in_it() -> None:
    node = Node(windowed()).beat(5, 1)
    node.admit(11, 1).admit(12, 2, passes=False).admit(13, 3).admit(20, 4, passes=False).run()
    node.beat(20, 5).run()
    assert boxes(node.results) == [(1, [1, 3])]


def test_late_is_decided_by_number() -> None:
    node = Node(windowed(window(lateness_ns=3))).beat(5, 1)
    node.admit(14, 1).admit(15, 2, 11).admit(16, 3, 10).admit(23, 4).run()
    assert boxes(node.results) == [(1, [1, 2])]
    assert node.loaded.windows[0].state.intake.sources[0].late == 1


def test_a_number_nobody_tells_of_costs_the_windows_it_may_be_in() -> None:
    node = Node(windowed()).beat(5, 1)
    node.admit(11, 1).run().admit(13, 3).run().admit(22, 4).run()
    assert node.engine.due_ns == 63 and node.results == []
    node.expire(62).run()
    assert node.ends() == [("skipped", 0)]
    node.expire(63).run()
    assert node.engine.due_ns is None
    assert node.ends() == [("skipped", 0), ("abandoned", 1)]
    assert node.shed() == [(WINDOWS, 1, WINDOW)] and node.engine.ledger.shed_by == {WINDOW: 1}
    node.admit(64, 5).run()
    assert [(one, seq) for one, seq in node.ends() if one != "skipped"] == [
        ("abandoned", 1), ("closed", 2), ("closed", 3), ("closed", 4), ("closed", 5)
    ]  # fmt: skip
    assert boxes(node.results)[0] == (2, [4])


def test_a_failed_operator_before_the_window_abandons_it_at_once() -> None:
    node = Node(windowed()).beat(5, 1)
    node.admit(11, 1).admit(12, 2, breaks=True).admit(20, 3).run()
    assert node.ends() == [("skipped", 0), ("abandoned", 1)]
    assert [(each.seq, each.unit) for each in node.records(records.Lost)] == [(2, 1)]
    node.admit(30, 4).run()
    assert boxes(node.results) == [(2, [3])]


def test_a_tuple_that_is_lost_in_the_operator_that_collects_is_known_there() -> None:
    node = Node(windowed()).beat(5, 1).admit(11, 1)
    node.executor.run(node.engine.next(11) or pytest_fails())
    job = node.engine.job
    assert job is not None and job.unit.collects is not None
    node.engine.fail(11, 12, records.CAUSE_OPERATOR_ERROR)
    node.beat(20, 2).run()
    assert node.ends() == [("skipped", 0), ("skipped", 1)] and node.results == []


def pytest_fails() -> Any:
    raise AssertionError("nothing was ready")


def test_marks_overtake_what_is_queued() -> None:
    node = Node(windowed()).beat(5, 1)
    node.admit(11, 1).admit(12, 2)
    node.beat(20, 3)  # both are still queued before the filter
    assert node.loaded.windows[0].state.store.live.open == {}
    node.run()
    assert boxes(node.results) == [(1, [1, 2])]


def policed() -> plans.Plan:
    """At most one tuple in 5 ns."""
    plan = windowed()
    source = replace(plan.sources[0], spans=((2, 5),))
    return replace(plan, sources=(source, *plan.sources[1:]))


def test_what_policing_sheds_is_told_before_the_next_survivor() -> None:
    node = Node(policed()).beat(5, 1)
    node.admit(11, 1).admit(12, 2).admit(13, 3).run()
    delayed_removal = node.loaded.source_routes[1].delayed_removal
    assert (
        delayed_removal is not None and delayed_removal.lineage == (1, 0, 3, 0, 12, 13) and delayed_removal.first == 2
    )
    node.admit(20, 4).run()
    assert node.loaded.source_routes[1].delayed_removal is None
    assert node.ends() == [("skipped", 0), ("abandoned", 1)]
    node.admit(31, 5).run()
    assert boxes(node.results) == [(2, [4])]


def test_what_policing_sheds_last_is_told_by_the_next_heartbeat() -> None:
    node = Node(policed()).beat(5, 1)
    node.admit(11, 1).admit(12, 2).run()
    node.beat(15, 3).run()
    assert node.ends() == [("skipped", 0), ("abandoned", 1)]


def test_a_restart_of_the_source_costs_the_windows_on_the_way() -> None:
    node = Node(windowed()).beat(5, 1)
    node.admit(11, 1).run()
    node.beat(15, 1, epoch=1).admit(16, 1, epoch=1).admit(20, 2, epoch=1).admit(30, 3, epoch=1).run()
    assert [each for each in node.ends() if each[0] != "skipped"] == [("abandoned", 1), ("closed", 2)]
    assert boxes(node.results) == [(2, [2])]


def test_a_window_past_its_deadline_is_cleaned_away() -> None:
    node = Node(windowed(window(useful_ns=15))).beat(5, 1)
    node.admit(11, 1).run()
    assert node.engine.due_ns == 35
    node.expire(35).run()
    assert node.ends() == [("skipped", 0), ("abandoned", 1)]
    assert node.told()[-1] == ("abandoned", 1, 10, 20, "deadline", 1)
    assert node.shed() == [(WINDOWS, 1, WINDOW)]


def test_origins_count_from_the_oldest_tuple_where_deadlines_do() -> None:
    node = Node(windowed(window(first=True, useful_ns=15, lateness_ns=5))).beat(5, 1)
    node.admit(14, 1).admit(15, 2, 12).admit(26, 3).run()
    assert [each.origin_lo_ns for each in node.records(records.Admitted) if each.source == WINDOWS] == [12]
    node.expire(41).run()
    assert node.told()[-1][:5] == ("abandoned", 2, 20, 30, "deadline")


def test_a_tuple_without_the_field_abandons_its_window() -> None:
    node = Node(windowed(), Together({"m": (Mean, field("speed"))})).beat(5, 1)
    node.admit(11, 1, speed=3).admit(12, 2).run()
    assert node.told()[-1] == ("abandoned", 1, 10, 20, "value", 1)
    assert node.loaded.windows[0].state.why == "a tuple without speed"


def test_a_leap_is_in_the_ledger_up_to_a_limit() -> None:
    node = Node(windowed(window(useful_ns=5)), COUNT).beat(5, 1)
    node.admit(11, 1).run()
    far_ns = 10 * (records.MOST_SKIPPED + 500)
    node.beat(far_ns, 2).run()
    state = node.loaded.windows[0].state
    assert state.counts["skipped"] > records.MOST_SKIPPED
    counted = [number for one, number, *_ in node.shed() if one == WINDOWS]
    assert len(counted) == len(set(counted)) == 1 + records.MOST_SKIPPED
    leap = [each for each in node.told() if each[0] == "skipped"][-1]
    assert leap[1] == 2 and leap[4] == "deadline" and leap[5] - leap[1] + 1 == state.counts["skipped"]


def test_one_of_several_results_counts_as_removed() -> None:
    node = Node(windowed()).beat(5, 1)
    node.engine.receive(11, node.loaded.routes[2], (1, 0, 1, 257, 11, 11), {"x": 1})
    node.run()
    node.beat(20, 2).run()
    assert node.results == [] and node.ends() == [("skipped", 0), ("skipped", 1)]


def test_two_sources_begin_when_both_were_heard_of() -> None:
    spec = window(feeds=((1, 0), (2, 1)))
    node = Node(windowed(spec)).beat(5, 1)
    node.admit(11, 1).run()
    assert node.told() == []
    node.beat(25, 1, source=2).admit(31, 1, source=2).admit(32, 2).run()
    node.beat(40, 3).beat(41, 2, source=2).run()
    assert node.ends() == [("skipped", 2), ("closed", 3)]
    ((number, values),) = boxes(node.results)
    assert number == 3 and sorted(values) == [1, 2]


def test_a_bound_that_contradicts_a_heartbeat_is_raised_to_it() -> None:
    node = Node(windowed()).beat(5, 1)
    node.beat(22, 1, 20).admit(23, 1, 18).admit(31, 2).run()  # 18 is a bound as well, and the tuple not that old
    assert boxes(node.results) == [(1, []), (2, [1])]
