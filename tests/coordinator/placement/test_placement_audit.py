"""The audit finds every kind of broken plan, and nothing in a sound one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.placement.audit import audit

MS = 10**6
Plan = dict[str, Any]


def _move(plan: Plan) -> None:
    plan["placement"]["O1"] = "b"


def _nowhere(plan: Plan) -> None:
    del plan["placement"]["O3"]


def _long(plan: Plan) -> None:
    plan["sub_deadlines_ns"]["O21"] += 1


def _float(plan: Plan) -> None:
    plan["sub_deadlines_ns"]["O21"] = 15.0


def _short(plan: Plan) -> None:
    plan["sub_deadlines_ns"]["O3"] = 14 * MS


def _dear(plan: Plan) -> None:
    plan["graph"]["operators"]["O1"]["cost_ns"] = 2 * MS
    plan["cluster"]["nodes"]["a"]["speed"] = 0.5


def _busy(plan: Plan) -> None:
    plan["graph"]["sources"]["centre"]["arrival"]["period_ns"] = 100 * MS


def _unsent(plan: Plan) -> None:
    plan["nodes"]["a"]["sends"] = []


def _unlinked(plan: Plan) -> None:
    plan["cluster"]["links"] = []


def _forbidden(plan: Plan) -> None:
    plan["graph"]["operators"]["O2"]["forbid_streams"] = [["a", "b"]]


def _traffic(plan: Plan) -> None:
    plan["objective"]["traffic"] = 7.5


def _unit(plan: Plan) -> None:
    plan["tasks"]["b"][0]["operators"].remove("O9")


def _sum(plan: Plan) -> None:
    plan["tasks"]["b"][0]["sub_deadline_ns"] -= 1


def _local(plan: Plan) -> None:
    plan["nodes"]["b"]["operators"][0]["inputs"] = [1]


def _exit(plan: Plan) -> None:
    plan["nodes"]["b"]["units"][0]["exits"] = []


def _producer(plan: Plan) -> None:
    for stream in plan["nodes"]["b"]["streams"]:
        stream.pop("producers", None)


def _output(plan: Plan) -> None:
    plan["nodes"]["b"]["outputs"][0]["deadline_ns"] = "1"


def _missing(plan: Plan) -> None:
    del plan["nodes"]["b"]


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (_move, "O1 is placed on b"),
        (_nowhere, "O3 is placed on None"),
        (_long, "output warning: the sub-deadlines"),
        (_float, "not a positive number"),
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
        (_missing, "not those of the cluster's nodes"),
    ],
)
def test_a_broken_plan_is_found(paper_plan: Callable[..., Plan], breaking: Callable[[Plan], None], said: str) -> None:
    plan = paper_plan(15)
    assert audit(plan) == []
    broken = copy.deepcopy(plan)
    breaking(broken)
    assert any(said in text for text in audit(broken)), audit(broken)


def test_the_audit_needs_no_solver() -> None:
    import subprocess
    import sys

    code = "import sys; import coordinator.placement.audit; sys.exit(any(m.startswith('ortools') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
