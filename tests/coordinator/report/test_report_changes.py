"""A run during which plans changed: every plan's records count, under its own ids, in one verdict of both engines."""

import dataclasses
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from coordinator.report.facts.merged_plans import MOST_PLANS, join
from coordinator.report.facts.plan_view import PlanUnreadableError, read_plan
from coordinator.report.facts.reader import NoRunError, Run, read_run
from coordinator.report.page.page import page
from coordinator.report.page.terminal import tables
from coordinator.report.verdict import verdict
from node_agent.virtual.change_schedule import Change
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from protos.run_document import packed
from tests.sentences import refused
from tests.simulation.random_plans import registry
from tests.simulation.sharing.random_queries_virtual import MS, Two, by_traffic

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB, cap: 1}
  b: {address: "127.0.0.1:7710", memory: 64 MiB, cap: 1}
links:
  - {between: [a, b], latency: 3 ms, bandwidth: 10 Mbit/s}
operators: operators.json
security: insecure-loopback
"""
FIRST = """
shimekiri: 1
query: first
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 100 ms}}
  t: {at: b, type: json, arrival: {burst: 1, period: 50 ms}}
operators:
  X: {run: filter, in: s, cost: 2 ms, nodes: [a], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  Y: {run: test.attach, in: X, side: {ref: t}, cost: 9 ms, nodes: [b]}
  W: {run: test.fragile, in: s, cost: 1 ms, nodes: [b]}
  J: {run: join, in: [W, X], cost: 1 ms, nodes: [b]}
outputs:
  y: {from: Y, at: a, deadline: 25 ms}
  j: {from: J, at: b, deadline: 90 ms}
"""
SECOND = """
shimekiri: 1
query: second
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 100 ms}}
  u: {at: a, type: json, arrival: {burst: 2, period: 70 ms}}
operators:
  X: {run: filter, in: s, cost: 2 ms, nodes: [a], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  Z: {run: test.twice, in: X, cost: 3 ms, nodes: [a], selectivity: {mean: 2, at_most: [[1, 2]]}}
  V: {run: pass, in: u, cost: 1 ms, nodes: [b]}
outputs:
  z: {from: Z, at: b, deadline: 60 ms}
  v: {from: V, at: a, deadline: 60 ms}
"""


def plans() -> tuple[Plan, Plan]:
    """Of the first query, and of both."""
    two = Two(CLUSTER, FIRST, SECOND)
    return two.plan("first", choices=by_traffic()), two.plan("first", "second", choices=by_traffic())


def changed(directory: Path, seed: int, loss: float = 0.0) -> Run:
    """Virtual: the second query is there from the middle on, and gone before the end; two trials."""
    one, both = plans()
    scenario = Scenario(bursts=12, trials=2, seed=seed, spread_ns=30 * MS, loss=loss)
    write_run(simulate(one, scenario, registry(), then=[Change(both, 320 * MS), Change(one, 800 * MS)]), directory)
    return read_run(directory)


def test_all_plans_of_a_run_make_one_verdict(tmp_path: Path) -> None:
    run = changed(tmp_path / "run", 1)
    told = verdict(run).document()
    one, both = plans()
    assert told["plan_hash"] == one.hash and told["earlier"] == [both.hash]
    books, outputs = told["conservation"], told["outputs"]
    assert told["completeness"]["complete"] and books["balanced"], books["problems"]
    assert books["admitted"] == books["accounted"] and books["by_outcome"]["open"] == 0
    assert sorted(outputs) == ["j", "v", "y", "z"]
    # s admits 36 tuples per trial under either plan: one filter, one instance that fails on every third.
    assert outputs["y"]["delivered"] == 36 and outputs["y"]["late"] > 0
    assert outputs["z"]["delivered"] and outputs["z"]["lost"] == outputs["z"]["undecidable"] == 0
    assert told["queries"]["first"]["delivered"] == outputs["y"]["delivered"] + outputs["j"]["delivered"]
    hops = [hop["hop"] for hop in told["blame"]["y"]["hops"]]
    assert len(set(hops)) == len(hops), "a hop that both plans have is told once"


def test_page_and_tables_tell_queries_and_the_plans_before(tmp_path: Path) -> None:
    run = changed(tmp_path / "run", 1)
    told = verdict(run)
    shown = page([(run, told)])
    assert f"plan {run.plan.hash[:8]} after {run.earlier[0][:8]}, virtual time" in shown
    assert "Missed by query: " in shown and 'second <b class="good">0 %</b>' in shown
    console = Console(record=True, width=150, file=io.StringIO())
    for table in tables([run], [told]):
        console.print(table)
    said = console.export_text()
    assert "queries" in said and "first" in said and "second" in said


def test_the_last_plan_alone_judges_its_own_records_only(tmp_path: Path) -> None:
    run = changed(tmp_path / "run", 1)
    whole = verdict(run).document()
    document = json.loads((run.path / "run.json").read_text())
    del document["earlier"]
    (run.path / "run.json").write_bytes(packed(document))
    alone = verdict(read_run(run.path)).document()
    assert alone["conservation"]["balanced"]
    assert 0 < alone["conservation"]["admitted"] < whole["conservation"]["admitted"]
    assert sum(each["other_plans"] for each in alone["completeness"]["incarnations"]) > 0
    assert sum(each["other_plans"] for each in whole["completeness"]["incarnations"]) == 0


def test_an_output_with_another_deadline_is_told_apart() -> None:
    one, _ = plans()
    other = dataclasses.replace(read_plan(one), hash="ab" * 32)
    view = next(each for each in other.outputs.values() if each.name == "y")
    other = dataclasses.replace(other, outputs={view.id: dataclasses.replace(view, deadline_ns=1)})
    joined = join([read_plan(one), other])
    assert sorted(each.name for each in joined.outputs.values()) == ["j", "y", "y (plan abababab)"]
    assert not joined.same


def test_earlier_plans_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    run = changed(tmp_path / "run", 1)
    (name,) = (run.path / "earlier").iterdir()
    name.write_text((run.path / "plan.json").read_text())
    with pytest.raises(NoRunError, check=lambda error: error.mistakes[0].code == "other_plan"):
        read_run(run.path)
    name.unlink()
    with pytest.raises(NoRunError, check=lambda error: error.mistakes[0].code == "unreadable"):
        read_run(run.path)
    document = json.loads((run.path / "run.json").read_text())
    for wrong in ("ab", [3], ["../plan"]):
        (run.path / "run.json").write_bytes(packed(document | {"earlier": wrong}))
        with pytest.raises(NoRunError, check=lambda error: error.mistakes[0].code == "bad_value"):
            read_run(run.path)
    with refused("too_many_plans", PlanUnreadableError):
        join([run.plan] * (MOST_PLANS + 1))
