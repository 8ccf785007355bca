"""What runs already stays as it is beside any new query: place, sub-deadline, task unit and route."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.model import incumbent
from coordinator.model.choices import Choices
from coordinator.plan import reopen
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from protos.plan.search import IncumbentPart
from protos.plan_document import Plan
from tests.coordinator.wording import has

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7701"}
  c: {address: "127.0.0.1:7702"}
links:
  - {between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}
  - {between: [b, c], latency: 1 ms}
  - {between: [a, c], latency: 9 ms}
"""
FIRST = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}
operators:
  A: {run: pass, in: s, cost: 100 us, nodes: [a]}
  B: {run: pass, in: A, cost: 100 us, nodes: [a]}
  C: {run: pass, in: B, cost: 200 us, nodes: [c]}
outputs:
  out: {from: C, at: c, deadline: 50 ms}
"""
MORE = """  X: {run: pass, in: A, cost: 300 us}
  Y: {run: pass, in: X, cost: 100 us}
  D: {run: pass, in: C, cost: 100 us}
"""
OUTPUTS = """  x: {from: Y, at: b, deadline: 40 ms}
  d: {from: D, at: c, deadline: 45 ms}
"""
Files = Callable[[str, str], tuple[Path, Path]]


def both(files: Files, model: str, **choices: Any) -> tuple[Plan, Plan]:
    """A plan, and the plan of more with all of the first kept."""
    first = planner.make_plan(*files(FIRST, CLUSTER), Choices(model=model))  # type: ignore[arg-type]
    grown = files(FIRST.replace("outputs:", MORE + "outputs:") + OUTPUTS, CLUSTER)
    stays = incumbent.read(first, set(first.placement), first.hash)
    return first, planner.make_plan(*grown, Choices(model=model, incumbent=stays, **choices))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["sound", "paper"])
def test_what_is_kept_is_as_it_was(files: Files, model: str) -> None:
    first, second = both(files, model)
    for name in "ABC":
        assert second.placement[name] == first.placement[name]
        assert second.sub_deadlines_ns[name] == first.sub_deadlines_ns[name]
    units = {tuple(task.operators): task.sub_deadline_ns for tasks in second.tasks.values() for task in tasks}
    for tasks in first.tasks.values():
        for task in tasks:
            assert units[tuple(task.operators)] == task.sub_deadline_ns, "neither cut nor joined"
    assert ("A", "B") in units and ("C",) in units, "a reader in the middle cuts nothing, one at the end joins nothing"
    before, after = incumbent.hops(first), incumbent.hops(second)
    assert all(set(pairs) <= set(after[stream]) for stream, pairs in before.items())
    assert second.kept == IncumbentPart(of=first.hash, operators=("A", "B", "C"))
    assert audit(second) == []


def test_a_plan_with_kept_operators_says_so_and_can_be_planned_again(files: Files) -> None:
    _, second = both(files, "sound")
    query, cluster, types, choices = reopen.inputs(second, Path("plan.json"))
    again = planner.plan(query, cluster, types, choices)
    assert again == second


def test_routes_are_kept_where_another_would_be_shorter_now(files: Files) -> None:
    first = planner.make_plan(*files(FIRST, CLUSTER), Choices())
    assert incumbent.hops(first)["B"] in ((("a", "c"),), (("a", "b"), ("b", "c")))
    other = (("a", "c"),) if len(incumbent.hops(first)["B"]) == 2 else (("a", "b"), ("b", "c"))
    stays = incumbent.read(first, set(first.placement), first.hash)
    stays = incumbent.Incumbent(stays.place, stays.due_ns, stays.units, {**stays.hops, "B": other}, stays.of)
    second = planner.make_plan(*files(FIRST, CLUSTER), Choices(incumbent=stays))
    assert set(incumbent.hops(second)["B"]) == set(other)


def test_a_kept_unit_takes_no_fifth_exit(files: Files) -> None:
    names = "ABCDE"
    chain = "".join(
        f"  {name}: {{run: pass, in: {before}, cost: 10 us, nodes: [a]}}\n"
        for name, before in zip(names, ("s", *names), strict=False)
    )
    head = FIRST[: FIRST.index("  A:")]
    text = head + chain + "outputs:\n  out: {from: E, at: a, deadline: 50 ms}\n"
    first = planner.make_plan(*files(text, CLUSTER), Choices())
    assert [task.operators for task in first.tasks["a"]] == [tuple(names)]
    stays = incumbent.read(first, set(names), first.hash)
    readers = "".join(f"  X{name}: {{run: pass, in: {name}, cost: 10 us, nodes: [a]}}\n" for name in names)
    ends = "".join(f"  x{name}: {{from: X{name}, at: a, deadline: 50 ms}}\n" for name in names)
    grown = files(text.replace("outputs:", readers + "outputs:") + ends, CLUSTER)
    with pytest.raises(planner.InfeasibleError, check=has(("too_many_exits", "A"))):
        planner.make_plan(*grown, Choices(incumbent=stays))


def test_sub_deadlines_that_leave_no_room_are_kept_all_the_same(files: Files) -> None:
    first = planner.make_plan(*files(FIRST, CLUSTER), Choices())
    stays = incumbent.read(first, set(first.placement), first.hash)
    due = first.sub_deadlines_ns["A"]
    more = f"outputs:\n  soon: {{from: N, at: a, deadline: {due - 1} ns}}"
    text = FIRST.replace("outputs:", "  N: {run: pass, in: A, cost: 1 us, nodes: [a]}\n" + more)
    second = planner.make_plan(*files(text, CLUSTER), Choices(incumbent=stays))
    assert second.sub_deadlines_ns["A"] == due and second.guarantee["soon"].guaranteed, "bounds are enough"
    worse = replace(second, kept=None)
    assert any("output soon" in text for text in audit(worse)), "it is what is kept that breaks (5)"


def test_an_output_that_need_not_hold_spoils_nothing(files: Files) -> None:
    hopeless = FIRST + "  never: {from: B, at: c, deadline: 1 ms}\n"
    paths = files(hopeless, CLUSTER)
    with pytest.raises(planner.InfeasibleError):
        planner.make_plan(*paths, Choices())
    made = planner.make_plan(*paths, Choices(incumbent=incumbent.Incumbent(spared=frozenset({"never"}))))
    assert made.guarantee["out"].guaranteed and not made.guarantee["never"].guaranteed
    assert made.solver.outcome == "guaranteed, but for never"
