"""The audit finds every kind of broken plan, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from protos import plan_document
from protos.plan_document import Plan, PlanFileError

MS = 10**6
Values = dict[str, Any]  # a plan as parsed JSON
DIAMOND = """
shimekiri: 1
query: diamond
sources:
  belt: {at: a, type: json, arrival: {burst: 4, period: 1 s}, max_age: 1 s}
operators:
  left:  {run: filter, in: belt, cost: 1 ms, nodes: [a], with: {keep: 1, of: 3}}
  right: {run: pass, in: belt, cost: 1 ms, nodes: [b]}
  both:  {run: join, in: [left, right], cost: 1 ms, nodes: [b]}
  last:  {run: pass, in: both, cost: 1 ms, nodes: [a], hang: 2 s}
outputs:
  arm: {from: last, at: a, deadline: 100 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:0", memory: 64 MiB, emulate: {cost_per_tuple: 100 us}, cpu: 0}
  b: {address: "127.0.0.1:0"}
links: [{between: [a, b], latency: 1 ms, bandwidth: 10 Mbit/s}]
"""


def _move(plan: Values) -> None:
    plan["placement"]["O1"] = "b"


def _nowhere(plan: Values) -> None:
    del plan["placement"]["O3"]


def _long(plan: Values) -> None:
    plan["sub_deadlines_ns"]["O21"] += 1


def _float(plan: Values) -> None:
    plan["sub_deadlines_ns"]["O21"] = 15.0


def _short(plan: Values) -> None:
    plan["sub_deadlines_ns"]["O3"] = 14 * MS


def _dear(plan: Values) -> None:
    plan["graph"]["operators"]["O1"]["cost_ns"] = 2 * MS
    plan["cluster"]["nodes"]["a"]["speed"] = 0.5


def _busy(plan: Values) -> None:
    plan["graph"]["sources"]["centre"]["arrival"]["period_ns"] = 100 * MS


def _unsent(plan: Values) -> None:
    plan["nodes"]["a"]["sends"] = []


def _unlinked(plan: Values) -> None:
    plan["cluster"]["links"] = []


def _forbidden(plan: Values) -> None:
    plan["graph"]["operators"]["O2"]["forbid_streams"] = [["a", "b"]]


def _traffic(plan: Values) -> None:
    plan["objective"]["traffic"] = 7.5


def _unit(plan: Values) -> None:
    plan["tasks"]["b"][0]["operators"].remove("O9")


def _sum(plan: Values) -> None:
    plan["tasks"]["b"][0]["sub_deadline_ns"] -= 1


def _local(plan: Values) -> None:
    plan["nodes"]["b"]["operators"][0]["inputs"] = [1]


def _exit(plan: Values) -> None:
    plan["nodes"]["b"]["units"][0]["exits"] = []


def _producer(plan: Values) -> None:
    for stream in plan["nodes"]["b"]["streams"]:
        stream.pop("producers", None)


def _output(plan: Values) -> None:
    plan["nodes"]["b"]["outputs"][0]["deadline_ns"] = "1"


def _unknown_member(plan: Values) -> None:
    plan["tasks"]["b"][0]["operators"][0] = "O99"


def _unknown_peer(plan: Values) -> None:
    plan["nodes"]["a"]["sends"][0]["peer"] = 7


def _promised(plan: Values) -> None:
    plan["guarantee"]["warning"]["guaranteed"] = True


def _promised_too_much(plan: Values) -> None:
    plan["guarantee"]["warning"].update(guaranteed=True, bound_ns=301 * MS)


def _missing(plan: Values) -> None:
    del plan["nodes"]["b"]


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (_move, "O1 is placed on b"),
        (_nowhere, "O3 is placed on None"),
        (_long, "output warning: the sub-deadlines"),
        (_float, "not a whole number"),
        (_short, "O3 differs"),
        (_dear, "node a: O1"),
        (_busy, "node b: its operators use"),
        (_unsent, "stream O2 does not reach node b"),
        (_unlinked, "not linked"),
        (_forbidden, "where it is forbidden"),
        (_traffic, "the traffic is 15.0"),
        (_unit, "every operator exactly once"),
        (_sum, "not the sum"),
        (_local, "operator O3 differs"),
        (_exit, "other exits"),
        (_producer, "other producers"),
        (_output, "its outputs differ"),
        (_unknown_member, "O99, no operator"),
        (_unknown_peer, "which are not linked"),
        (_promised, "warning is called guaranteed"),
        (_promised_too_much, "warning is called guaranteed"),
        (_missing, "not those of the cluster's nodes"),
    ],
)
def test_a_broken_plan_is_found(paper_plan: Callable[..., Plan], breaking: Callable[[Values], None], said: str) -> None:
    plan = paper_plan(15)
    assert audit(plan) == []
    broken = plan.to_json()
    breaking(broken)
    assert any(said in text for text in _found(broken)), _found(broken)


def _found(values: Values) -> list[str]:
    """What is wrong, at the latest in the audit."""
    try:
        return audit(plan_document.shaped(values))
    except PlanFileError as error:
        return [error.text]


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _other(value: Any) -> Any:
    """Another value of the same type; 64-bit numbers are digits in proto-JSON."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return str(int(value) + 1) if value.isdigit() else value + "x"


def test_no_field_of_a_local_plan_changes_unseen(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    plan = planner.make_plan(*files(DIAMOND, CLUSTER), Choices(model="paper"))
    assert audit(plan) == []
    leaves = list(_leaves(plan.to_json()["nodes"]))
    assert len(leaves) > 100
    for path, value in leaves:
        for changed in (_other(value), None):
            broken = plan.to_json()
            inner = broken["nodes"]
            for key in path[:-1]:
                inner = inner[key]
            if changed is None:
                del inner[path[-1]]
            else:
                inner[path[-1]] = changed
            assert _found(broken), f"{path}: {value!r} -> {changed!r}"


def test_the_audit_needs_no_solver() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import coordinator.solve.audit.audit; sys.exit(any(m.startswith('ortools') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
