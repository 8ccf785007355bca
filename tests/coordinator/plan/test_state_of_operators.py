"""What becomes of an operator's state where a new plan leaves it in place: `state:` reaches plan.json and the node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coordinator.model.choices import Choices
from coordinator.solve import planner

QUERY = """
shimekiri: 1
query: counting
sources: {in: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}}
operators:
  kept: {run: pass, in: in, cost: 1 ms}
  anew: {run: pass, in: kept, cost: 1 ms, state: fresh}
  C1..C2: {chain: pass, in: anew, cost: 1 ms, state: fresh}
outputs: {out: {from: C2, at: a, deadline: 50 ms}}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:0"}}\n'


def test_an_operator_keeps_its_state_unless_the_query_says_fresh(
    files: Callable[[str, str], tuple[Path, Path]],
) -> None:
    plan = planner.make_plan(*files(QUERY, CLUSTER), Choices(model="paper"))
    local = plan.nodes["a"]
    assert {each.name: each.fresh for each in local.operators} == {"kept": False, "anew": True, "C1": True, "C2": True}
    told = {name: each.state for name, each in plan.graph.operators.items()}
    assert told == {"kept": "keep", "anew": "fresh", "C1": "fresh", "C2": "fresh"}
