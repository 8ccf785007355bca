"""A plan of more load than the nodes have time for: what is urgent holds, and the plan says what the others get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.plan import deadline_breakdown
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from protos.plan_document import Plan

Files = Callable[[str, str], tuple[Path, Path]]
QUERY = """\
shimekiri: 1
query: q
sources:
  radio:  {at: a, type: json, arrival: {burst: 1, period: 20 ms}}
  camera: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}
operators:
  heard:  {run: pass, in: radio, cost: 1 ms}
  alarm:  {run: pass, in: heard, cost: 1 ms}
  log:    {run: pass, in: heard, cost: 2 ms}
  sees:   {run: pass, in: camera, cost: 4 ms, on_late: drop}
  names:  {run: pass, in: sees, cost: 6 ms, on_late: drop}
outputs:
  warn:    {from: alarm, at: a, deadline: 30 ms}
  protocol: {from: log, at: a, deadline: 400 ms}
  objects: {from: names, at: a, deadline: 500 ms}
"""
ONE = 'shimekiri: 1\nnodes:\n  a: {address: "127.0.0.1:7700", policy: edf}\n'
TWO = ONE + '  b: {address: "127.0.0.1:7710", policy: edf}\nlinks: [{between: [a, b], latency: 1 ms}]\n'


def _plan(files: Files, cluster: str = ONE, query: str = QUERY, units: str = "operator") -> Plan:
    choices = Choices(best_effort=True, units="operator" if units == "operator" else "path")
    return planner.make_plan(*files(query, cluster), choices)


def test_what_gives_way_stands_behind(files: Files) -> None:
    made = _plan(files)
    due_ns = made.sub_deadlines_ns
    assert due_ns["heard"] + due_ns["alarm"] <= 30_000_000
    assert due_ns["heard"] + due_ns["log"] <= 400_000_000
    first = max(due_ns[name] for name in ("heard", "alarm", "log"))
    assert first < due_ns["names"] < due_ns["sees"]  # what has begun goes before what is new
    # Dropped at the latest when it is 500 ms old, so its place is behind all that comes meanwhile.
    assert due_ns["sees"] - 500_000_000 > first and due_ns["names"] > 400_000_000


def test_the_plan_says_what_can_be_served(files: Files) -> None:
    made = _plan(files)
    assert made.solver.over_caps == {"a": pytest.approx(1.2)}
    assert made.solver.served == {"objects": pytest.approx(0.8)}  # 20 % are the others'
    first, share = deadline_breakdown.giving_way(made)
    assert first.startswith("warn, protocol: placed and ordered before what gives way")
    assert share.startswith("objects: at most 80.0% of the results can be served")
    silent = _plan(files, query=QUERY.replace(", on_late: drop", ""))
    assert deadline_breakdown.giving_way(silent)[-1].endswith("unless its operators say 'on_late: drop' (sees, names)")


def test_a_plan_may_not_promise_more_time_than_there_is(files: Files) -> None:
    made = _plan(files)
    assert audit(made) == []
    more = replace(made, solver=replace(made.solver, served={"objects": 0.9}))
    assert any("what is said to be served there takes 1.1" in wrong for wrong in audit(more))
    silent = replace(made, solver=replace(made.solver, served=None))
    assert any("the sub-deadlines on its longest path" in wrong for wrong in audit(silent))


def test_the_excess_goes_where_nothing_urgent_is(files: Files) -> None:
    """Two cameras of 100 and 90 %: apart, and none of them on two nodes at once."""
    two = QUERY.replace(
        "operators:\n", "  other: {at: b, type: json, arrival: {burst: 1, period: 10 ms}}\noperators:\n"
    )
    two = two.replace("outputs:\n", "  more: {run: pass, in: other, cost: 9 ms}\noutputs:\n")
    two += "  others: {from: more, at: b, deadline: 500 ms}\n"
    made = _plan(files, TWO, two, "path")
    urgent = {made.placement[name] for name in ("heard", "alarm")}
    assert len(urgent) == 1 and max((made.solver.over_caps or {}).values()) < 1.25
    assert made.placement["sees"] == made.placement["names"] != made.placement["more"]
    assert set(made.solver.served or ()) <= {"objects", "others"}


def test_without_best_effort_it_is_refused(files: Files) -> None:
    with pytest.raises(InfeasibleError):
        planner.make_plan(*files(QUERY, ONE), Choices())


def test_what_fits_within_the_nodes_gives_nothing_up(files: Files) -> None:
    """Beyond the cap and within the time: as ever."""
    made = _plan(files, query=QUERY.replace("cost: 6 ms", "cost: 3 ms"))
    assert made.solver.over_caps == {"a": pytest.approx(0.9)} or made.solver.over_caps is None
    assert made.solver.served is None


@pytest.mark.soak
def test_a_large_overload_is_planned(files: Files) -> None:
    """So many choices that no programme closes them: 20 chains on five nodes, 120 % of all of them."""
    sources, operators, outputs = [], [], []
    for number in range(20):
        urgent = number < 4
        period, cost, due = (20, "100 us", 30) if urgent else (16, "1 ms", 500)
        at = f"n{number % 5}"
        sources.append(f"  s{number}: {{at: {at}, type: json, arrival: {{burst: 1, period: {period} ms}}}}")
        before = f"s{number}"
        for step in range(6):
            operators.append(f"  o{number}_{step}: {{run: pass, in: {before}, cost: {cost}}}")
            before = f"o{number}_{step}"
        name = f"urgent{number}" if urgent else f"bulk{number}"
        outputs.append(f"  {name}: {{from: {before}, at: {at}, deadline: {due} ms}}")
    query = "\n".join(
        ["shimekiri: 1", "query: q", "sources:", *sources, "operators:", *operators, "outputs:", *outputs]
    )
    nodes = [f'  n{number}: {{address: "127.0.0.1:77{number}0"}}' for number in range(5)]
    links = [f"  - {{between: [n{one}, n{two}], latency: 1 ms}}" for one in range(5) for two in range(one)]
    cluster = "\n".join(["shimekiri: 1", "nodes:", *nodes, "links:", *links])
    choices = Choices(best_effort=True, limits=Limits(20))
    made = planner.make_plan(*files(query + "\n", cluster + "\n"), choices)
    served = made.solver.served or {}
    assert served and all(name.startswith("bulk") and 0.5 < share < 1 for name, share in served.items())
    with pytest.raises(InfeasibleError):
        planner.make_plan(*files(query + "\n", cluster + "\n"), replace(choices, best_effort=False))
