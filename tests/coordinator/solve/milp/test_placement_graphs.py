"""Graphs beyond the paper's: relays, forbidden streams, side inputs, joins, unions, fan-out, speeds, arrivals, local
plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.model.task_units import Use, extract
from coordinator.solve import planner
from protos import json_shape
from protos.plan.operators import Selectivity
from protos.plan_document import Plan
from tests.coordinator.wording import named

MS = 10**6
Files = Callable[[str, str], tuple[Path, Path]]
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:0"}
  b: {address: "127.0.0.1:0"}
  c: {address: "127.0.0.1:0"}
"""
LINE = CLUSTER + "links: [{between: [a, b], latency: 1 ms}, {between: [b, c], latency: 2 ms, bandwidth: 1 Mbit/s}]\n"
QUERY = """
shimekiri: 1
query: sorting
sources:
  belt: {at: a, type: json, arrival: {burst: 4, period: 1 s}}
operators:
  see:   {run: pass, in: belt, cost: 1 ms, nodes: [a]}
  sort:  {run: pass, in: see, cost: 2 ms, nodes: [c]}
outputs:
  arm: {from: sort, at: c, deadline: 100 ms}
"""


def _plan(files: Files, query: str = QUERY, cluster: str = CLUSTER, **choices: Any) -> Plan:
    return planner.make_plan(*files(query, cluster), Choices(**({"model": "paper"} | choices)))


def _sends(plan: Plan) -> set[tuple[str, str, str]]:
    names = {stream.id: name for name, stream in plan.graph.streams.items()}
    nodes = list(plan.cluster.nodes)
    found = set()
    for node, index in zip(nodes, range(len(nodes)), strict=True):
        for send in plan.nodes[node].sends:
            found.add((names[send.stream], node, nodes[send.peer]))
            peer = plan.nodes[nodes[send.peer]]
            assert index in next(stream.producers for stream in peer.streams if stream.id == send.stream)
    return found


def test_a_stream_goes_straight_where_it_can(files: Files) -> None:
    plan = _plan(files)
    assert _sends(plan) == {("see", "a", "c")}
    assert plan.objective.traffic == 4


def test_a_stream_is_relayed_where_it_must(files: Files) -> None:
    plan = _plan(files, cluster=LINE)
    assert _sends(plan) == {("see", "a", "b"), ("see", "b", "c")}
    assert plan.objective.traffic == 8
    relay = plan.nodes["b"]
    assert [(peer.name, peer.latency_ns, peer.bandwidth_bps) for peer in relay.peers] == [
        ("a", MS, 0),
        ("c", 2 * MS, 10**6),
    ]
    assert not relay.units


def test_a_forbidden_stream_takes_another_way(files: Files) -> None:
    query = QUERY.replace("cost: 1 ms, nodes", "cost: 1 ms, forbid_streams: [[a, c]], nodes")
    assert _sends(_plan(files, query)) == {("see", "a", "b"), ("see", "b", "c")}
    with pytest.raises(InfeasibleError) as raised:
        _plan(files, query.replace("[[a, c]]", "[[a, c], [b, c]]"))
    assert named(raised.value.mistakes) == [("no_way", "see")]


def test_a_private_source_keeps_its_reader_at_home(files: Files) -> None:
    query = QUERY.replace("cost: 1 ms, nodes: [a]", "cost: 1 ms, selectivity: {mean: 2}").replace(
        "arrival:", "forbid_streams: [[a, b], [a, c]], arrival:"
    )
    assert _plan(files, query).placement["see"] == "a"


def test_a_node_that_nothing_reaches(files: Files) -> None:
    cluster = CLUSTER + "links: [{between: [a, b]}]\n"
    with pytest.raises(InfeasibleError) as raised:
        _plan(files, cluster=cluster)
    assert named(raised.value.mistakes) == [("no_way", "see")]


def test_side_inputs_are_shipped_and_are_in_no_deadline_path(files: Files) -> None:
    operators = """{"shimekiri": 1, "codecs": [], "operators": {"my.sort": {"kind": "map", "inputs": {"box": "json"},
        "side": {"arm": "json"}, "output": "json"}}}""".replace('"kind"', '"code": "' + "0" * 64 + '", "kind"')
    query = QUERY.replace("  sort:  {run: pass, in: see,", "  state: {run: pass, in: poll, cost: 1 ms, nodes: [b]}\n"
                          "  sort:  {run: my.sort, in: see, side: {arm: state},")  # fmt: skip
    query = query.replace("operators:", "  poll: {at: b, type: json, arrival: {burst: 1, period: 1 s}}\noperators:")
    (paths := files(query, CLUSTER + "operators: operators.json\n"))[0].with_name("operators.json").write_text(
        operators
    )
    plan = planner.make_plan(*paths, Choices(model="paper"))
    assert _sends(plan) == {("see", "a", "c"), ("state", "b", "c")}
    assert plan.objective.traffic == 5
    at_c = plan.nodes["c"]
    assert [(side.port, side.stream) for side in at_c.operators[0].sides] == [("arm", 3 + 1)]
    deadlines = {stream.name: stream.deadline_ns for stream in at_c.streams}
    assert deadlines == {"state": 0, "see": 100 * MS, "sort": 100 * MS}
    assert plan.sub_deadlines_ns["state"] == 100 * MS  # as fresh as the result that needs it
    assert plan.sub_deadlines_ns["see"] + plan.sub_deadlines_ns["sort"] == 100 * MS - 1  # 1 and 2 thirds, rounded down


DIAMOND = """
shimekiri: 1
query: diamond
sources:
  belt: {at: a, type: json, arrival: {burst: 4, period: 1 s}}
operators:
  split: {run: pass, in: belt, cost: 1 ms, nodes: [a]}
  left:  {run: filter, in: split, cost: 1 ms, nodes: [a], with: {keep: 1, of: 3}}
  right: {run: pass, in: split, cost: 1 ms, nodes: [b]}
  both:  {run: join, in: [left, right], cost: 3 ms, nodes: [c]}
  all:   {run: union, in: [left, right, both], cost: 1 ms, nodes: [c]}
  last:  {run: pass, in: all, cost: 1 ms, nodes: [c]}
outputs:
  arm: {from: both, at: c, deadline: 200 ms}
  log: {from: last, at: c, deadline: 1 s}
"""


def test_joins_and_unions(files: Files) -> None:
    plan = _plan(files, DIAMOND)
    units = {node: [list(task.operators) for task in tasks] for node, tasks in plan.tasks.items()}
    assert units == {"a": [["split", "left"]], "b": [["right"]], "c": [["both"], ["all", "last"]]}
    at_a, at_c = plan.nodes["a"], plan.nodes["c"]
    marked = {stream.name: stream.marked for stream in [*at_a.streams, *at_c.streams]}
    assert marked == {
        "belt": True,
        "split": True,
        "left": True,
        "right": True,
        "both": False,
        "all": False,
        "last": False,
    }
    assert {operator.name: operator.join for operator in at_c.operators} == {"both": True, "all": False, "last": False}
    assert list(at_a.units[0].exits) == [2, 3]  # split goes to b, left to c
    assert plan.graph.operators["left"].selectivity == Selectivity(mean=1 / 3, at_most=((3, 1),))
    assert plan.objective.traffic == pytest.approx(4 + 4 / 3 + 4)
    assert {stream.name: stream.deadline_ns for stream in at_c.streams}["left"] == 200 * MS
    assert at_c.units[0].deadline_ns == 200 * MS
    assert at_c.units[1].deadline_ns == 1000 * MS


def test_an_operator_that_serves_two_outputs_has_the_smaller_sub_deadline(files: Files) -> None:
    due = _plan(files, DIAMOND).sub_deadlines_ns
    assert due["split"] + due["left"] + due["both"] <= 200 * MS
    assert due["split"] + due["right"] + due["both"] <= 200 * MS


def test_a_faster_node_and_an_emulated_one(files: Files) -> None:
    fast = CLUSTER.replace('c: {address: "127.0.0.1:0"', 'c: {address: "127.0.0.1:0", speed: 4')
    query = QUERY.replace("deadline: 100 ms", "deadline: 6 ms")
    with pytest.raises(InfeasibleError):
        _plan(files, query)
    assert _plan(files, query, fast).sub_deadlines_ns["sort"] >= 2 * MS
    slow = CLUSTER.replace('a: {address: "127.0.0.1:0"', 'a: {address: "127.0.0.1:0", emulate: {cost_per_tuple: 2 ms}')
    assert _plan(files, query.replace("6 ms", "16 ms"), slow).sub_deadlines_ns["see"] == 8 * MS


def test_utilisation_spreads_work(files: Files) -> None:
    """Three operators of 0.4 each do not fit on one node with cap 0.9 at any deadlines."""
    query = (
        QUERY[: QUERY.index("operators:")]
        + """operators:
  x: {run: pass, in: belt, cost: 100 ms}
  y: {run: pass, in: x, cost: 100 ms}
  z: {run: pass, in: y, cost: 100 ms}
outputs:
  out: {from: z, at: a, deadline: 1 min}
"""
    )
    assert len(set(_plan(files, query).placement.values())) > 1
    one = CLUSTER[: CLUSTER.index("  b:")]
    with pytest.raises(InfeasibleError) as raised:
        _plan(files, query, one)
    assert named(raised.value.mistakes) == [("cap_exceeded", "a")]


def test_free_chains_are_contracted_where_the_model_has_no_solution_otherwise(files: Files) -> None:
    """Twenty free operators of 4 ms each: as separate jobs on three nodes they need more than 150 ms, as runs 80 ms."""
    query = (
        QUERY[: QUERY.index("operators:")]
        + """operators:
  o1..o20: {chain: pass, in: belt, cost: 1 ms}
outputs:
  out: {from: o20, at: a, deadline: 150 ms}
"""
    )
    plan = _plan(files, query, limits=Limits(seconds=8))
    assert set(plan.placement.values()) == {"a"}
    assert plan.solver.contracted == "linear"
    assert sum(plan.sub_deadlines_ns.values()) == 150 * MS


@pytest.mark.parametrize(
    ("arrival", "burst", "written"),
    [
        ("{period: 10 ms}", 1, {"kind": "burst", "burst": 1, "period_ns": 10 * MS}),
        ("{jcp: {period: 100 ms, min_gap: 1 ms, late: 150 ms, early: 60 ms}}", 3, {"kind": "jcp", "burst": 3}),
        ("{rate: 20, burst: 5}", 5, {"kind": "rate", "rate_per_s": 20.0, "burst": 5}),
        ("{rate: 0.5}", 1, {"kind": "rate", "rate_per_s": 0.5, "burst": 1}),
        ("{trace: when.txt}", 3, {"kind": "trace", "burst": 3, "tuples": 5, "span_ns": 10**9}),
    ],
)
def test_arrivals(files: Files, tmp_path: Path, arrival: str, burst: int, written: dict[str, Any]) -> None:
    (tmp_path / "when.txt").write_text("# ns\n0\n500\n500\n500\n1000000000\n")
    plan = _plan(files, QUERY.replace("{burst: 4, period: 1 s}", arrival))
    found = plan.graph.sources["belt"].arrival
    assert json_shape.write(found) | written == json_shape.write(found)
    assert plan.objective.traffic == burst


def test_a_unit_has_at_most_four_exits() -> None:
    names = [f"o{i}" for i in range(1, 12)]
    uses = {name: [Use(after, 5, True)] for name, after in zip(names, [*names[1:], None], strict=True) if after}
    uses["o11"] = [Use(None, 5, False)]
    units = extract(names, uses, lambda name, after: True, "path")
    assert [len(unit) for unit in units] == [4, 4, 3]
    assert [name for unit in units for name in unit] == names
    assert extract(names, uses, lambda name, after: after is None, "path") == [tuple(names)]
    assert extract(names, uses, lambda name, after: True, "operator") == [(name,) for name in names]


def test_a_fan_out_merges_towards_the_least_deadline() -> None:
    uses = {
        "x": [Use("slow", 9, True), Use("fast", 3, True)],
        "slow": [Use(None, 9, False)],
        "fast": [Use(None, 3, False)],
        "y": [Use("z", 9, True), Use(None, 3, False)],
        "z": [Use(None, 9, False)],
    }
    units = extract(["x", "slow", "fast", "y", "z"], uses, lambda name, after: True, "path")
    assert units == [("x", "fast"), ("slow",), ("y",), ("z",)]


def test_ports_are_put_in_the_operators_order(files: Files) -> None:
    operators = """{"shimekiri": 1, "operators": {"my.both": {"kind": "join", "inputs": {"left": "json", "right":
    "json"}, "output": "json"}}}""".replace('"kind"', '"code": "' + "0" * 64 + '", "kind"')
    query = DIAMOND.replace("run: join, in: [left, right]", "run: my.both, in: {right: right, left: left}")
    (paths := files(query, CLUSTER + "operators: operators.json\n"))[0].with_name("operators.json").write_text(
        operators
    )
    plan = planner.make_plan(*paths, Choices(model="paper"))
    assert plan.graph.operators["both"].inputs == ("left", "right")


def test_members_of_a_chain_may_differ(files: Files) -> None:
    query = QUERY.replace(
        "  sort:  {run: pass, in: see, cost: 2 ms, nodes: [c]}",
        "  p1..p3: {chain: [pass, {run: filter, with: {keep: 1, of: 4}, cost: 3 ms}, {run: busy, with: {cpu_us: 5}}],\n"
        "           in: see, cost: 2 ms, nodes: [c]}",
    ).replace("from: sort", "from: p3")
    operators = _plan(files, query).graph.operators
    assert [
        (name, operators[name].run, operators[name].cost_ns, operators[name].inputs) for name in ("p1", "p2", "p3")
    ] == [
        ("p1", "pass", 2 * MS, ("see",)),
        ("p2", "filter", 3 * MS, ("p1",)),
        ("p3", "busy", 2 * MS, ("p2",)),
    ]
