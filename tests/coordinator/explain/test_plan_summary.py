"""A plan in four sentences, and that what breaks it first does."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator.explain import explanation, plan_summary
from coordinator.model.choices import Choices
from coordinator.solve import planner
from protos.plan_document import Plan

QUERY = """\
shimekiri: 1
query: belt
sources:
  items: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 20 ms}
  keys:  {at: b, type: json, arrival: {burst: 1, period: 100 ms}, max_age: 20 ms}
operators:
  weigh: {run: pass, in: items, cost: 1 ms, nodes: [a]}
  sort:  {run: pass, in: weigh, cost: 2 ms}
  seen:  {run: pass, in: keys, cost: 1 ms, nodes: [b]}
  sums:  {run: aggregate, in: keys, cost: 50 us, nodes: [b], with: {n: count}, window: {time: 1 s, close: 100 us}}
outputs:
  gate: {from: sort, at: a, deadline: 50 ms}
  log:  {from: seen, at: b, deadline: 500 ms}
  sum:  {from: sums, at: b, deadline: 500 ms}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", policy: edf}
  c: {address: "127.0.0.1:7720", policy: edf}
"""
Files = Callable[[str, str], tuple[Path, Path]]


def made(files: Files, query: str = QUERY, **choices: Any) -> Plan:
    return planner.make_plan(*files(query, CLUSTER), Choices(**choices))


def test_what_a_colleague_would_tell_comes_first(files: Files) -> None:
    plan = made(files)
    lines = plan_summary.lines(plan)
    assert lines[0] == "a runs weigh and sort; b runs seen and sums; nothing runs on c"
    assert lines[1].startswith("sort could be elsewhere and is on a, which sends the least between nodes with every ")
    assert "(on b " in lines[1] and lines[2] == "the query pins weigh, seen and sums"
    assert lines[3].startswith("tightest is gate: at most ") and " of 50 ms; the largest part is " in lines[3]
    assert lines[4].startswith("first to break, should costs be underrated: with all of them ")
    sections = explanation.short(plan)
    assert next(iter(sections)).endswith("3 of 3 outputs guaranteed")
    assert next(iter(sections.values()))[:5] == lines and explanation.PARTS in sections


def test_what_breaks_it_first_breaks_it_and_less_does_not(files: Files) -> None:
    plan = made(files)
    names = list(plan.graph.operators)
    now = plan_summary.outputs_that_hold(plan, {})
    assert now == {"gate", "log", "sum"}
    percent = plan_summary.least_percent(plan, now, names, 1000)
    assert percent is not None
    assert plan_summary.outputs_that_hold(plan, dict.fromkeys(names, percent - 1)) == now
    assert plan_summary.outputs_that_hold(plan, dict.fromkeys(names, percent)) == now - {"gate"}
    told = re.search(r"so it is with (\w+) alone at", plan_summary.lines(plan)[4])
    alone = {name: plan_summary.least_percent(plan, now, [name], 1000) for name in names}
    assert told is not None and alone[told[1]] == min(found for found in alone.values() if found is not None)


def test_where_there_is_no_choice_no_bound_or_no_promise(files: Files) -> None:
    held = plan_summary.lines(made(files, place={"sort": "a"}))
    assert "no operator has a choice of node: the query pins them, or --place" in held
    late = plan_summary.lines(made(files, QUERY.replace("deadline: 50 ms", "deadline: 20 ms"), best_effort=True))
    assert any(line.startswith("tightest is gate: at most") for line in late)
    unbounded = plan_summary.lines(made(files, policy="fifo"))
    assert unbounded[-1] == "no output has a bound"
    roomy = plan_summary.lines(made(files, QUERY.replace("50 ms}", "50 s}"), place={"sort": "a"}))
    assert roomy[-1].startswith(("costs are not what breaks it first, it would hold", "first to break"))


def test_names_in_a_row_are_told_by_their_ends() -> None:
    assert plan_summary.listed(["O1"]) == "O1"
    assert plan_summary.listed(["O3", "O4", "O7", "O8", "O9", "x"]) == "O3, O4, O7 to O9 and x"
