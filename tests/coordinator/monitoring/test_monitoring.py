"""What two looks at agents make: rates, quantiles, what was shed before an output; counters in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.fleet.addresses import AgentAddress
from coordinator.monitoring import empty_windows, explained, metrics, paths, status_response, tables, text, wording
from coordinator.monitoring.metrics import Frame, Look, between
from protos import agent_pb2, plan_document
from protos.plan_document import Plan
from tests.whole_plans import whole

SECOND = 10**9
HEALTHY = agent_pb2.HealthReply(serving=True)
HASH = b"\xaa" * 32
PLAN: dict[str, Any] = {
    "queries": {"q": {"outputs": ["slow", "quick"]}},
    "placement": {"first": "a", "left": "a", "right": "b", "watch": "b", "apart": "b"},
    "sub_deadlines_ns": {"first": 5, "left": 6, "right": 7, "watch": 9},
    "guarantee": {
        name: {"guaranteed": True, "bound_ns": 9, "from_admission_ns": 8, "deadline_ns": 10}
        for name in ("slow", "quick")
    },
    "graph": {
        "operators": {
            "first": {"in": ["in"], "side": {}, "selectivity": None},
            "left": {"in": ["first"], "side": {"at": "apart"}, "selectivity": None},
            "right": {"in": ["first"], "side": {}, "selectivity": None},
            "watch": {"in": ["left", "right"], "side": {}, "selectivity": None},
            "apart": {"in": ["other"], "side": {}, "selectivity": None},
        },
        "outputs": {"slow": {"from": "watch", "at": "b"}, "quick": {"from": "left", "at": "a"}},
        "sources": {"in": {"at": "a"}, "other": {"at": "a"}},
        "windows": {"watch": {}, "apart": {}},
    },
}


def made(values: dict[str, Any] = PLAN) -> Plan:
    """With everything else that a plan has."""
    return plan_document.of(whole(values))


def status(
    node: str, seconds: int, runs: int = 0, boot: int = 7, latencies: Mapping[int, int] = {}, shed: int = 0,
    counters: Mapping[str, int] = {}, **output: int,
) -> agent_pb2.StatusReply:  # fmt: skip
    """A node with the units of PLAN; `watch` is in a unit with `right`, `slow` is delivered at b."""
    told = agent_pb2.StatusReply(
        node=node, boot=boot, uptime_ns=seconds * SECOND, busy_ns=seconds * SECOND // 4, runtime_alive=True
    )
    told.counters.extend(agent_pb2.Counter(name=name, value=n) for name, n in counters.items())
    plan = told.plans.add(hash=HASH, query="q", queries=["q"], state=agent_pb2.COMMITTED, epoch=1)
    operators = {"a": [["first"], ["left"]], "b": [["right", "watch"], ["apart"]]}[node]
    for number, of in enumerate(operators, 1):
        plan.units.add(
            id=number, operators=of, sub_deadline_ns=100, runs=runs, shed=shed * number, timed=runs // 2,
            timed_ns=runs * 10, worst_ns=300, recent_ns=60 * number,
        )  # fmt: skip
    if node == "a":
        plan.sources.add(name="in", admitted=runs, shed=shed * 100)
        plan.sources.add(name="other", shed=shed * 1000)
    else:
        made = told.outputs.add(name="slow", deadline_ns=1000, **{"worst_ns": 5000, **output})
        for most_ns, results in latencies.items():
            made.latencies.add(most_ns=most_ns, results=results)
    return told


def look(*replies: agent_pb2.StatusReply) -> Look:
    return Look(0.0, {each.node: status_response.of(each, HEALTHY) for each in replies})


def frame(before: Look | None, now: Look) -> Frame:
    return between(before, now, {HASH.hex(): made()})


def test_what_came_between_two_looks() -> None:
    then = look(status("a", 10), status("b", 10, runs=100, met=50, late=40, latencies={100: 50, 2000: 40}))
    now = look(
        status("a", 12),
        status("b", 12, runs=150, met=149, late=41, undecidable=3, latencies={100: 148, 200: 1, 2000: 41, 9999: 3}),
    )
    (out,) = frame(then, now).outputs
    assert (out.met, out.late, out.undecidable, out.results, out.per_s) == (99, 1, 3, 103, 51.5)
    assert out.miss_ratio == 0.01 and out.all_time == (149, 41, 3)
    assert (out.p99_ns, out.most_ns, out.slack_ns) == (5000, 5000, -4000), "no longer than the longest ever"
    assert (out.bound_ns, out.promise, out.query) == (9, "guaranteed", "q")
    (_, node) = frame(then, now).nodes
    assert node.utilisation == 0.25 and node.slack_ns == -20
    unit = metrics.units(node)[0]
    assert (unit.per_s, unit.mean_ns, unit.recent_ns, unit.worst_ns) == (25.0, 20, 60, 300)


@pytest.mark.parametrize(("late", "p99_ns"), [(0, 100), (1, 100), (2, 900)])
def test_ninety_nine_of_a_hundred(late: int, p99_ns: int) -> None:
    now = look(status("a", 1), status("b", 1, met=100 - late, late=late, latencies={100: 100 - late, 900: late}))
    assert frame(None, now).outputs[0].p99_ns == p99_ns


def test_nothing_came() -> None:
    now = look(status("a", 3), status("b", 3, met=5, latencies={100: 5}))
    (out,) = frame(now, look(status("a", 5), status("b", 5, met=5, latencies={100: 5}))).outputs
    assert (out.results, out.per_s, out.miss_ratio, out.p99_ns, out.slack_ns) == (0, 0.0, None, None, None)
    assert "0 results/s, missed – of what was offered\n" in "\n".join(explained.output(out, ()))


def test_an_incarnation_begins_with_nothing() -> None:
    then = look(status("a", 100), status("b", 100, met=500, latencies={100: 500}))
    (out,) = frame(then, look(status("a", 101), status("b", 1, boot=8, met=3, latencies={100: 3}))).outputs
    assert (out.met, out.span_s) == (3, 1.0)


def test_a_plan_that_was_loaded_anew_begins_with_nothing() -> None:
    then = look(status("a", 100, runs=500), status("b", 100))
    (node, _) = frame(then, look(status("a", 102, runs=10), status("b", 102))).nodes
    unit = metrics.units(node)[0]
    assert (unit.per_s, unit.mean_ns) == (5.0, 20)


def test_what_links_lose_is_lost() -> None:
    told = {"lost.decode": 1, "lost.encode": 2, "tuples_given_up": 4, "link_full": 8, "shed.late": 16}
    (node, _) = frame(None, look(status("a", 100, counters=told), status("b", 100))).nodes
    assert node.lost == 15


def test_what_lies_before_an_output() -> None:
    slow, quick = paths.to(made(), "slow"), paths.to(made(), "quick")
    assert [stage.operator for stage in slow.stages] == ["first", "left", "right", "watch"]
    assert slow.sources == {"in"} and slow.windows == {"watch"}
    assert [(stage.operator, stage.place, stage.sub_deadline_ns) for stage in quick.stages] == [
        ("first", "a", 5), ("left", "a", 6)
    ]  # fmt: skip


def test_a_long_chain_is_walked() -> None:
    """Of twice as many operators as a function may call itself."""
    links = {f"o{i}": {"in": [f"o{i - 1}" if i else "in"], "selectivity": None} for i in range(2000)}
    plan = {
        "graph": {"operators": links, "sources": {"in": {"at": "a"}}, "outputs": {"out": {"from": "o1999"}}},
        "placement": dict.fromkeys(links, "a"),
    }
    assert len(paths.to(made(plan), "out").stages) == 2000


def test_what_was_shed_before_an_output() -> None:
    """At `in` (100 each), in both units of a (1 and 2) and in the one of right and watch (1): not at `other`."""
    then = look(status("a", 10, shed=1), status("b", 10, shed=1))
    now = look(status("a", 12, shed=3), status("b", 12, shed=3))
    (out,) = frame(then, now).outputs
    assert (out.shed_all_time, out.shed, out.shed_per_s) == (3 * 104, 2 * 104, 104.0)
    only_b = Look(0.0, {"b": then.places["b"], "a": status_response.unreachable("gone")})
    assert frame(only_b, now).outputs[0].shed == 2, "a node that was not seen before has no share"
    assert between(then, now, {}).outputs[0].shed is None, "without the plan it is not known"


def test_a_node_that_does_not_answer() -> None:
    there = status("b", 12, met=1, latencies={100: 1})
    now = Look(
        0.0, {"a": status_response.unreachable("node a: cannot be reached"), "b": status_response.of(there, HEALTHY)}
    )
    told = frame(None, now)
    shown = list(text.lines(told))
    assert shown[1].split()[:2] == ["a", "unknown!"] and shown[-1] == "node a: cannot be reached"
    assert text.headline(told, 2) == "2 nodes, 1 does not answer; 2 outputs; the last 2 s"
    assert text.headline(told, None).endswith("; since each runtime began")
    said = "\n".join(explained.output(told.outputs[0], told.nodes))
    assert re.search("^first +a +5 ns +no answer", said, re.MULTILINE)
    assert list(explained.node(told.nodes[0], {}, (), "log")) == [
        "node a does not answer",
        "node a: cannot be reached",
    ]


def test_outputs_of_a_silent_node_stay() -> None:
    gone = {"b": status_response.unreachable("node b: cannot be reached")}
    before = look(status("a", 10), status("b", 10, met=5, latencies={100: 5}))
    seen = between(None, before, {}).outputs
    now = Look(0.0, {**look(status("a", 12)).places, **gone})
    for told in (frame(before, now), frame(None, Look(0.0, gone)), between(before, now, {}, seen)):
        (slow,) = told.outputs
        assert (slow.name, slow.place, slow.silent, slow.per_s) == ("slow", "b", True, None), "quick is not b's"
        assert "no answer!" in "\n".join(text.lines(told))
    (slow,) = frame(before, now).outputs
    assert (slow.query, slow.deadline_ns, slow.bound_ns) == ("q", 10, 9)
    said = "\n".join(explained.output(slow, frame(before, now).nodes))
    assert "node b does not answer: what it has delivered is not known" in said and "0 met" not in said
    assert between(before, now, {}).outputs == (), "nobody knows of any"
    (back,) = between(now, look(status("a", 14), status("b", 2)), {}, (slow,)).outputs
    assert not back.silent


def test_where_the_reason_of_errors_stands() -> None:
    values = status_response.of(status("a", 1, counters={"operator_errors": 2, "operator_errors.O1": 2}), HEALTHY)
    assert list(explained.others(values, "state/a/agent.log")) == [
        "2 times that operator O1 raised",
        "  why operators raised, with a trace back: state/a/agent.log",
    ]
    assert "journalctl -u shimekiri-agent@a" in status_response.log_of(AgentAddress("a", "127.0.0.1:1", "127.0.0.1:2"))


def test_rows_without_a_value_stand_last() -> None:
    told = frame(None, look(status("a", 3), status("b", 3)))
    column = next(each for each in tables.NODES if each.title == "limit")
    rows = [*told.nodes]
    assert tables.ordered(rows, column, True) == rows == tables.ordered(rows, column, False)
    name = tables.NODES[0]
    assert [row.name for row in tables.ordered(rows, name, True)] == ["b", "a"]


def test_figures_are_short() -> None:
    shown = [tables.duration(ns) for ns in (None, 0, 999, 12_345, -1_500_000, 2_345_678_901)]
    assert shown == ["-", "0 ns", "999 ns", "12.3 us", "-1.5 ms", "2.35 s"]
    assert [tables.count(n) for n in (None, 9999, 12_345, 7_654_321)] == ["-", "9999", "12.3k", "7.65M"]
    assert [tables.size(n) for n in (None, 0, 1023, 64 << 20)] == ["-", "0", "1023", "64M"]
    assert [tables.percent(share) for share in (None, 0.0, 0.1234, 1.0)] == ["-", "0%", "12.3%", "100%"]


def test_counters_in_words() -> None:
    counters = {
        "highest_epoch": 4, "tuples_refused": 1200, "operator_errors": 3, "operator_errors.O1": 3, "lost.decode": 2,
        "policed_arrivals.radio": 7, "something_new": 1, "links_stalled": 0,
    }  # fmt: skip
    assert list(wording.counters(counters)) == [
        "1,200 tuples of sources refused; their senders got the reasons",
        "3 times that operator O1 raised",
        "2 tuples lost because they could not be decoded",
        "7 tuples of source radio beyond what it declared, shed",
        "1 something new",
    ]


def offered(node: agent_pb2.StatusReply, **source: int) -> agent_pb2.StatusReply:
    """The same, with other counts of source `in`, which is before `slow` through windows and before `quick` without."""
    for name, n in source.items():
        setattr(node.plans[0].sources[0], name, n)
    return node


def test_what_was_refused_or_policed_lies_between_the_ends_of_the_share() -> None:
    """Policing shed 90 of 100 and 40 were refused: of 10 results in time not 0 % is missed, but 0 to 93 %."""
    node = status("a", 10)
    made = node.outputs.add(name="quick", deadline_ns=1000, met=10, worst_ns=5)
    made.latencies.add(most_ns=5, results=10)
    now = look(offered(node, admitted=100, shed=92, policed=90, refused=40, lost=1), status("b", 10, met=50))
    quick, slow = frame(None, now).outputs
    assert quick.between == {
        "refused": 40, "policed": 90, "shed_before_filter": 2, "lost_before_filter": 1, "undecidable": 0,
        "windows_without_refused": 0,
    }  # fmt: skip
    assert quick.missed_of_offered == (0.0, 133 / 143) and quick.miss_ratio == 0.0
    assert slow.between["windows_without_refused"] == 40 and slow.between["policed"] == 0, "windows go by the calendar"
    assert slow.missed_of_offered == (0.0, 40 / 50)
    (column,) = (each for each in tables.OUTPUTS if each.title == "missed")
    assert column.cell(quick) == "0 to 93 %!" and column.key(quick) == 133 / 143
    told = "\n".join(explained.output(quick, ()))
    assert "missed 0 to 93 % of what was offered: between lie 40 refused, 90 policed (beyond what was declared)" in told


def test_shares_are_of_what_came_between_two_looks() -> None:
    then = look(offered(status("a", 10), refused=40), status("b", 10, met=50, late=10))
    now = look(offered(status("a", 12), refused=45), status("b", 12, met=60, late=10))
    (out,) = frame(then, now).outputs
    assert out.missed_of_offered == (0.0, 5 / 10) and out.between["windows_without_refused"] == 5


def test_without_a_plan_everything_may_lie_before_an_output() -> None:
    now = look(offered(status("a", 10), refused=30), status("b", 10, met=10))
    (out,) = between(None, now, {}).outputs
    assert out.missed_of_offered == (0.0, 30 / 40)


def test_windows_without_a_result_are_between() -> None:
    told = {"windows.watch.abandoned": 3, "windows.watch.abandoned_removed": 3, "windows.watch.skipped": 2}
    (out,) = frame(None, look(status("a", 10), status("b", 10, met=5, counters=told))).outputs
    assert out.between["shed_before_filter"] == 5 and out.missed_of_offered == (0.0, 0.5)


def test_a_tuple_counts_as_often_as_it_may_have_results() -> None:
    """`left` gives up to three of one, so a refused tuple may be missing three times at `quick`, one shed behind it
    once."""
    graph = PLAN["graph"]
    many = graph["operators"]["left"] | {"selectivity": {"mean": 3.0, "at_most": [[1, 3]]}}
    plan = made(PLAN | {"graph": graph | {"operators": graph["operators"] | {"left": many}}})
    quick = paths.to(plan, "quick")
    assert quick.most == {"in": 3, "first": 3, "left": 3} and paths.to(plan, "slow").most["in"] == 4
    node = status_response.of(offered(status("a", 10), refused=2, policed=1, shed=1, lost=1), HEALTHY)
    assert paths.ends(quick, [node]) == paths.Ends(refused=6, policed=3, lost=3)


def test_what_a_fusion_leaves_out_is_no_result_that_may_be_missing() -> None:
    told = status("a", 10, shed=2)
    left = told.plans[0].units[1]
    assert list(left.operators) == ["left"] and left.shed == 4
    left.unfused = 3
    quick = paths.to(made(), "quick")
    assert paths.ends(quick, [status_response.of(told, HEALTHY)]).shed == 200 + 2 + 1
    assert paths.shed_before(quick, [status_response.of(told, HEALTHY)]) == 200 + 2 + 4, "they are shed all the same"


def test_what_links_give_up_may_be_missing_behind_them() -> None:
    told = status_response.of(status("a", 10, counters={"tuples_given_up": 4, "link_full": 1}), HEALTHY)
    assert paths.ends(paths.to(made(), "quick"), [told]).lost == 5
    assert paths.ends(paths.to(made(), "slow"), [told]).lost == 0, "behind windows, which go by the calendar"


def test_a_silent_node_on_the_way_leaves_everything_open() -> None:
    there = status_response.of(status("b", 12, met=50, latencies={100: 50}), HEALTHY)
    told = frame(None, Look(0.0, {"a": status_response.unreachable("gone"), "b": there}))
    (slow,) = (each for each in told.outputs if not each.silent)
    assert slow.missed_of_offered == (0.0, 1.0) and slow.unheard == ("a",)
    assert "missed 0 to 100 % of what was offered: between lie what a would say" in "\n".join(
        explained.output(slow, ())
    )


def windows(**counted: int) -> dict[str, int]:
    """Counters of the windows that `slow` gets its results from."""
    return {f"windows.watch.{what}": n for what, n in counted.items()}


def of_windows(counted: Mapping[str, int], seconds: int = 10, **of_b: Any) -> Look:
    return look(status("a", 10), status("b", seconds, counters=counted, **of_b))


def test_windows_that_nothing_was_fed_into_are_left_out_of_the_upper_end() -> None:
    """One window of nine was given; then the feed ended, and a hundred empty ones close, of which three were gaps."""
    counted = windows(closed=104, empty=103, empty_within=3, abandoned=8, abandoned_removed=8)
    (out,) = frame(None, of_windows(counted, met=104)).outputs
    assert out.missed_of_offered == (0.0, 8 / 12) and out.met_idle == 100
    (late,) = frame(None, of_windows(counted, met=103, late=1)).outputs
    assert late.missed_of_offered == (1 / 112, 9 / 12), "what was filtered or late of the empty ones is not known"
    said = "\n".join(explained.output(late, ()))
    assert "\nup to 100 met results are of windows that nothing was fed into, and left out of the upper end\n" in said
    (fine,) = frame(None, of_windows(windows(closed=104, empty=103), met=104)).outputs
    assert fine.missed_of_offered == (0.0, 0.0) and "fed into" not in "\n".join(explained.output(fine, ()))


def test_the_upper_end_is_never_beyond_all() -> None:
    """Filters left less of the empty windows than there were; refused tuples may belong into any."""
    node = offered(status("a", 10), refused=40)
    now = look(node, status("b", 10, met=5, late=1, counters=windows(closed=50, empty=50)))
    (out,) = frame(None, now).outputs
    assert out.met_idle == 5 and out.missed_of_offered == (1 / 6, 1.0)


def test_empty_windows_between_two_looks_are_those_that_came_between() -> None:
    """Of ten that were empty then, eight are gaps now; of five that came since, three are."""
    then = of_windows(windows(closed=20, empty=10), met=20)
    now = of_windows(windows(closed=30, empty=15, empty_within=11, abandoned=2), seconds=12, met=30)
    (out,) = frame(then, now).outputs
    assert out.met_idle == 4 and out.missed_of_offered == (0.0, 2 / (10 - 4 + 2))
    (still,) = frame(now, of_windows(windows(closed=31, empty=16, empty_within=11), seconds=14, met=31)).outputs
    assert still.met_idle == 1, "what was empty before is not counted twice"


def test_empty_windows_of_all_plans_that_run_are_counted_as_often_as_they_have_results() -> None:
    graph = PLAN["graph"]
    twice = {"in": ["watch"], "side": {}, "selectivity": {"mean": 2.0, "at_most": [[1, 2]]}}
    two = {**graph["operators"], "twice": twice, "seen": {"in": ["twice"], "side": {}, "selectivity": None}}
    placement = {**PLAN["placement"], "twice": "b", "seen": "b"}
    plan = made(
        PLAN | {"placement": placement, "graph": graph | {"operators": two, "outputs": {"slow": {"from": "seen"}}}}
    )
    old = made(PLAN | {"graph": graph | {"outputs": {"slow": {"from": "apart"}}}})
    gone = {"windows.gone.empty": 5, "windows.apart.empty": 7, **windows(empty=10, empty_within=9)}
    values = status_response.of(status("b", 1, counters=gone), HEALTHY)
    assert empty_windows.idle(empty_windows.leading([plan], "slow"), values, None) == 2 + 5, (
        "those of `apart` are not before it"
    )
    assert empty_windows.idle(empty_windows.leading([old, plan], "slow"), values, None) == 2 + 5 + 7
    assert empty_windows.idle(empty_windows.leading([], "slow"), values, None) == 1 + 5 + 7, "without a plan any may be"
    assert empty_windows.idle(empty_windows.leading([made()], "quick"), values, None) == 5, "of an earlier plan"


def test_what_a_runtime_counted_before_it_began_anew_is_not_known() -> None:
    """Windows are collected at b; where the output is at another node, its results stay while b's counts are gone."""
    counted = windows(closed=2, empty=1, abandoned=1)
    place = status("b", 5, counters=counted)
    place.restarts = 1
    node = status("a", 10)
    node.outputs.add(name="slow", deadline_ns=1000, met=60)
    place.ClearField("outputs")
    (out,) = frame(None, look(node, place)).outputs
    assert out.met_idle == 60 and out.missed_of_offered == (0.0, 1.0)
    place.restarts = 0
    (out,) = frame(None, look(node, place)).outputs
    assert out.met_idle == 60, "nor by an agent that began anew: two windows have no sixty results"
    place.uptime_ns = 20 * SECOND
    (out,) = frame(None, look(node, place)).outputs
    assert out.met_idle == 1, "it has counted for longer than the results"


def test_a_refused_tuple_may_belong_into_as_many_windows_as_overlap() -> None:
    graph = PLAN["graph"]
    watch = {"sources": ["in"], "length": 10, "hop": 3}
    plan = made(PLAN | {"graph": graph | {"windows": {"watch": watch, "apart": {}}}})
    slow = paths.to(plan, "slow")
    assert slow.touched == {"in": 4}
    node = status_response.of(offered(status("a", 10), refused=3), HEALTHY)
    assert paths.ends(slow, [node]) == paths.Ends(refused_of_windows=12)


def test_a_connector_that_is_not_connected_is_said_with_its_reason() -> None:
    def connector(stream: str, direction: str, connected: bool = False, **more: object) -> agent_pb2.ConnectorStatus:
        given = {"stream": stream, "direction": direction, "kind": "mqtt", "connected": connected}
        return agent_pb2.ConnectorStatus(**given | more)  # type: ignore[arg-type]

    reply = agent_pb2.StatusReply(
        node="a",
        connectors=[
            connector("lidar", "from", True, was_connected=True),
            connector("imu", "from", apart_ns=12 * 10**9, why="Connection refused"),
            connector("wheels", "to", was_connected=True, apart_ns=90 * 10**9, why="the broker closed the connection"),
            connector("log", "to"),
        ],
    )
    values = status_response.of(reply, HEALTHY)
    assert list(explained.others(values, "log")) == [
        "source imu, its connector: never connected since it began 12 s ago: Connection refused",
        "output wheels, its connector: not connected for 1 min: the broker closed the connection",
        "output log, its connector: never connected since it began 0 s ago: it is being connected",
    ]
    assert [each["stream"] for each in values.document()["connectors"]] == ["lidar", "imu", "wheels", "log"]


@pytest.mark.parametrize(
    ("used", "full_in_ns", "said"),
    [(10, None, []), (10, 7200 * 10**9, []), (10, 600 * 10**9, ["10 min"]), (63, None, ["63"]), (99, 0, ["dropped"])],
)
def test_a_spool_that_fills_is_said_early(used: int, full_in_ns: int | None, said: list[str]) -> None:
    spool = agent_pb2.SpoolStatus(bytes=used, limit_bytes=100, oldest_ns=90 * 10**9, full_in_ns=full_in_ns)
    values = status_response.of(agent_pb2.StatusReply(node="a", spool=spool), HEALTHY)
    lines = list(explained.others(values, "log"))
    assert len(lines) == len(said) and all(
        word in line and "1 min old" in line for word, line in zip(said, lines, strict=True)
    )
