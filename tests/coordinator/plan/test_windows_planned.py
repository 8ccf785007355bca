"""A query with windows, from the file to local plans: two operators each, what feeds them, what is counted, sources,
doors, limits, late tuples; and the same again from the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.explain import window_lines
from coordinator.model.choices import Choices
from coordinator.plan import reopen
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.spec import input_files, windows
from coordinator.spec.query_reader import load
from protos import plan_pb2
from protos.plan_document import Plan
from tests.coordinator.conftest import EXAMPLE
from tests.whole_plans import altered

Planned = Callable[..., Plan]
MODELS = ("paper", "sound")


def _operators(plan: Plan) -> dict[str, plan_pb2.Operator]:
    return {one.name: one for local in plan.nodes.values() for one in local.operators}


def test_a_window_operator_is_two_operators() -> None:
    by_name = {operator.name: operator for operator in load(EXAMPLE[0]).operators}
    add, end = by_name["speeds.add"], by_name["speeds"]
    assert (add.inputs, add.cost_ns, add.closes) == (("clean", "right"), 200_000, "")
    assert (end.inputs, end.cost_ns, end.closes, end.window) == (("speeds.add",), 1_000_000, "speeds.add", None)
    assert add.window is not None and add.window.by == "lane"
    assert (add.run, add.parameters) == (end.run, end.parameters)
    assert add.keys == end.keys == ("operators", "speeds")
    assert by_name["totals"].cost_ns == 100_000  # closing costs as much as a tuple unless it is said
    assert by_name["pairs.add"].queue is not None and by_name["pairs"].queue is None
    assert {one.said for one in by_name.values()} == {"clean", "seen", "speeds", "totals", "tens", "pairs", "shown"}


@pytest.mark.parametrize("model", MODELS)
def test_local_plans(example_plan: Planned, model: str) -> None:
    plan = example_plan(model)
    assert audit(plan) == []
    operators = _operators(plan)
    window = operators["speeds.add"].window
    assert (window.kind, window.length, window.hop) == ("time", 5 * 10**9, 4 * 10**9)
    assert (window.lateness_ns, window.by, window.useful_ns, window.wait_ns) == (10**8, "lane", 8 * 10**8, 10**9)
    assert [(feed.source, feed.input) for feed in window.feeds] == [(1, 0), (2, 1)]
    assert operators["speeds"].closes == operators["speeds.add"].id and not operators["speeds"].HasField("window")
    assert not operators["pairs"].join and list(operators["pairs.add"].window.on) == ["id", "number"]
    assert operators["pairs.add"].window.first and operators["tens.add"].window.kind == "count"
    assert {plan.placement[name] for name in ("tens", "tens.add")} <= {"a", "b"}
    assert plan.placement["tens"] == plan.placement["tens.add"]


@pytest.mark.parametrize("model", MODELS)
def test_units_streams_and_sources(example_plan: Planned, model: str) -> None:
    plan = example_plan(model)
    sources = {one.name: one for local in plan.nodes.values() for one in local.sources}
    operators, streams = _operators(plan), plan.graph.streams
    assert {name: one.window for name, one in sources.items() if one.window} == {
        name: operators[name].id for name in ("speeds.add", "totals.add", "tens.add", "pairs.add")
    }
    assert sources["totals.add"].stream == streams["totals.add"].id and sources["totals.add"].id == 4
    assert sources["left"].beat_ns == sources["right"].beat_ns == windows.MOST_BEAT_NS
    assert (sources["left"].limit.tuples, sources["left"].limit.span_ns) == (30, 10**9)
    assert json.loads(sources["left"].limit.value_json) == ["*", ["field", "speed"], 2]
    assert (sources["left"].on_full, sources["right"].on_full) == ("", "drop-tail")
    for local in plan.nodes.values():
        names = {one.id: one.name for one in local.operators}
        for unit in local.units:
            members = [names[one] for one in unit.operators]
            collects = members[0].endswith(".add")
            assert bool(unit.exits) != collects and (len(members) == 1 or not collects)
            assert (unit.queue_bytes, unit.on_full) == ((65_536, "front") if members == ["pairs.add"] else (0, ""))
        flags = {one.name: (one.counted, one.marked) for one in local.streams}
        led = {"left", "right", "clean", "seen"}
        assert all(flag == (name in led, name in led) for name, flag in flags.items())
        assert not {"speeds.add", "totals.add", "tens.add", "pairs.add"} & {
            next(name for name, facts in streams.items() if facts.id == send.stream) for send in local.sends
        }
    last = {one.name: one.last_deadline_ns for one in plan.nodes["b"].streams}
    assert last["right"] == 8 * 10**8 + 5 * 10**9  # as old as a window is long, and then as late as its result may be
    assert last["seen"] == 0  # these deadlines count from the oldest tuple, and are the only ones


def test_doors_and_what_is_late(example_plan: Planned) -> None:
    plan = example_plan("sound")
    local, operators = plan.nodes["b"], _operators(plan)
    (shedding,) = local.sheddings
    names = {one.id: one.name for one in local.operators}
    units = {unit.id: names[unit.operators[0]] for unit in local.units}
    assert shedding.policy == "window-aware" and [units[one] for one in shedding.units] == ["speeds.add", "totals.add"]
    assert sorted(shedding.windows) == sorted(operators[name].id for name in ("speeds.add", "totals.add"))
    assert list(shedding.path) == list(shedding.units)
    assert (shedding.most, shedding.target_ns, shedding.period_ns) == (3000, 25 * 10**7, 5 * 10**8)
    assert not plan.nodes["a"].sheddings
    late = operators["shown"].late
    assert (late.run, late.cost_ns, late.late_ns) == ("pass", 100_000, 800_000_000 - 500_000)
    late_ns = operators["seen"].late.late_ns  # itself, adding it, closing, and the link back
    assert late_ns == 3 * 10**9 - 100_000 - 300_000 - 300_000 - 1_000_000


def test_a_door_stands_before_all_that_only_leads_to_windows(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    """`mid` leads to both windows and nothing else; `first` also to an output."""
    text = """\
shimekiri: 1
query: doors
sources:
  s: {at: a, type: json, max_age: 50 ms, arrival: {burst: 1, period: 10 ms}}
operators:
  first: {run: pass, in: s, cost: 1 ms}
  mid: {run: pass, in: first, cost: 1 ms, queue: {most: 1 MiB}}
  one: {run: aggregate, in: mid, cost: 1 ms, window: {time: 1 s, queue: 50}, with: {n: count}}
  two: {run: aggregate, in: mid, cost: 1 ms, window: {time: 2 s, queue: 70}, with: {n: count}}
  rest: {run: pass, in: two, cost: 1 ms}
outputs:
  all: {from: first, at: a, deadline: 300 ms}
  ones: {from: one, at: a, deadline: 300 ms}
  twos: {from: rest, at: a, deadline: 500 ms}
"""
    cluster = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\nsecurity: insecure-loopback\n'
    plan = planner.make_plan(*files(text, cluster), Choices(model="paper"))
    local = plan.nodes["a"]
    names = {one.id: one.name for one in local.operators}
    units = {unit.id: [names[one] for one in unit.operators] for unit in local.units}
    assert ["two", "rest"] in units.values() and ["mid"] in units.values()
    (shedding,) = local.sheddings
    assert [units[one] for one in shedding.units] == [["mid"]]
    assert [units[one] for one in shedding.path] == [["mid"], ["one.add"], ["two.add"]]
    assert (shedding.most, shedding.target_ns) == (50, 150_000_000)
    other = text.replace("  all: {from: first", "  all: {from: mid")
    local = planner.make_plan(*files(other, cluster), Choices(model="paper")).nodes["a"]
    names = {one.id: one.name for one in local.operators}
    units = {unit.id: [names[one] for one in unit.operators] for unit in local.units}
    assert [units[one] for one in local.sheddings[0].units] == [["one.add"], ["two.add"]]


@pytest.mark.parametrize("model", MODELS)
def test_planning_again_from_the_plan_makes_the_same_plan(example_plan: Planned, model: str) -> None:
    plan = example_plan(model)
    query, cluster, types, choices = reopen.inputs(plan, Path("plan.json"))
    again = planner.plan(query, cluster, types, Choices(model=choices.model, quick=True))
    assert again == plan
    assert {one.name: one.entry for one in query.operators if one.is_windowed} == {
        name: name.removesuffix(".add") for name in plan.graph.operators if name not in ("clean", "seen", "shown")
    }


def test_what_a_plan_says_of_windows_is_checked(example_plan: Planned) -> None:
    """Each change of a local plan or of the plan is seen."""

    def window(plan: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in plan["nodes"]["b"]["operators"] if one["name"] == "speeds.add")
        return found

    def source(plan: dict[str, Any], name: str) -> dict[str, Any]:
        every = [one for local in plan["nodes"].values() for one in local["sources"]]
        found: dict[str, Any] = next(one for one in every if one["name"] == name)
        return found

    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda plan: window(plan)["window"].update(hop=5 * 10**9),
        lambda plan: window(plan)["window"].update(useful_ns=1),
        lambda plan: window(plan)["window"]["feeds"].pop(),
        lambda plan: window(plan)["window"]["feeds"][0].update(input=1),
        lambda plan: window(plan).pop("window"),
        lambda plan: source(plan, "left").pop("limit"),
        lambda plan: source(plan, "left")["limit"].update(value_json='["field","speed"]'),
        lambda plan: source(plan, "left").pop("beat_ns"),
        lambda plan: source(plan, "right").pop("on_full"),
        lambda plan: source(plan, "speeds.add").update(window=1),
        lambda plan: plan["nodes"]["b"].pop("sheddings"),
        lambda plan: plan["nodes"]["b"]["sheddings"][0].update(policy="front"),
        lambda plan: plan["nodes"]["b"]["sheddings"][0].update(most=10),
        lambda plan: plan["nodes"]["b"]["sheddings"][0]["units"].pop(),
        lambda plan: plan["nodes"]["b"]["streams"][0].pop("counted"),
        lambda plan: plan["graph"]["operators"]["shown"].pop("on_late"),
        lambda plan: plan["graph"]["operators"]["pairs.add"].pop("queue"),
        lambda plan: plan["graph"]["operators"]["speeds"].pop("closes"),
        lambda plan: plan["graph"]["windows"]["speeds"].update(shed="front"),
    ]
    for number, change in enumerate(changes):
        assert audit(altered(example_plan("sound"), change)), number


def test_windows_are_told_as_people_say_them(example_plan: Planned) -> None:
    lines = window_lines.of_plan(example_plan("sound"))
    assert "5 s every 4 s over left and right" in lines[0] and "given up 800 ms after its end" in lines[0]
    assert any(line.startswith("left: at most 30 tuples in 1 s go on") for line in lines)
    assert any(
        line.startswith("shown: older than 799.5 ms as it would start, pass runs in its place") for line in lines
    )
    query, cluster, _ = input_files.read_files(*EXAMPLE)
    assert cluster is not None
    said = window_lines.of_query(query, cluster.catalog)
    assert not any(".add" in line for line in (*lines, *said)) and len(said) == len(lines)
