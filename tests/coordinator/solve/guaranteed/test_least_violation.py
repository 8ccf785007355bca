"""`--best-effort` beyond the nodes' caps: placed as well as can be, and told in the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.errors import InfeasibleError
from coordinator.explain import explanation
from coordinator.model.choices import Choices
from coordinator.plan import deadline_breakdown
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from protos.plan_document import Plan
from tests.coordinator.wording import has

QUERY = """\
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}
operators:
  first:  {run: pass, in: s, cost: 80 ms, on_late: drop}
  second: {run: pass, in: first, cost: 60 ms}
  third:  {run: pass, in: second, cost: 50 ms}
outputs:
  o: {from: third, at: b, deadline: 1 s}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", policy: edf}
links: [{between: [a, b], latency: 1 ms}]
"""
Files = Callable[[str, str], tuple[Path, Path]]


def _plan(files: Files, query: str = QUERY, best_effort: bool = True, cluster: str = CLUSTER) -> Plan:
    return planner.make_plan(*files(query, cluster), Choices(best_effort=best_effort))


def test_the_caps_are_exceeded_as_little_as_can_be(files: Files) -> None:
    with pytest.raises(InfeasibleError):
        _plan(files, best_effort=False)
    made = _plan(files)
    at = {node: [name for name, here in made.placement.items() if here == node] for node in ("a", "b")}
    assert sorted(at.values()) == [["first"], ["second", "third"]]  # 80 and 110 %; else 130 or 140 %
    over = next(node for node, names in at.items() if len(names) == 2)
    assert made.solver.over_caps == {over: pytest.approx(1.1)}
    assert not made.guarantee["o"].guaranteed and made.guarantee["o"].bound_ns is None
    assert any("the nodes' caps leave 1.80" in why for why in made.solver.why or ())


def test_a_plan_may_not_exceed_more_than_it_owns_up_to(files: Files) -> None:
    made = _plan(files)
    assert audit(made) == []
    silent = replace(made, solver=replace(made.solver, over_caps=None))
    assert any("its cap is 0.9" in wrong for wrong in audit(silent))


def test_a_guarantee_beyond_a_cap_is_told_as_such(files: Files) -> None:
    nearly = QUERY.replace("{at: a, type: json,", "{at: a, type: json, max_age: 10 ms,").replace("60 ms", "45 ms")
    made = _plan(files, nearly)
    assert made.guarantee["o"].guaranteed and made.solver.over_caps
    (told,) = deadline_breakdown.beyond_caps(made)
    assert "use 95.0% of it on average, its cap is 90.0%" in told
    assert told in next(iter(explanation.short(made).values()))


def test_what_fits_is_planned_as_ever(files: Files) -> None:
    fits = QUERY.replace("60 ms", "6 ms")
    made = _plan(files, fits)
    assert made.solver.over_caps is None and made.hash == _plan(files, fits, best_effort=False).hash


def test_memory_is_not_exceeded(files: Files) -> None:
    with pytest.raises(InfeasibleError, check=has(("memory_exceeded", "first"), ("memories_exceeded", ""))):
        _plan(
            files,
            QUERY.replace("cost: 80 ms", "cost: 80 ms, memory: 4 GiB"),
            cluster=CLUSTER.replace("policy: edf", "policy: edf, memory: 1 GiB"),
        )
