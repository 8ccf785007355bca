"""The collision query of [P]: the figures that a correct model must reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model.limits import Limits
from coordinator.spec import input_files
from protos.plan_document import Plan
from tests.coordinator.wording import Wording, named

MS = 10**6
Make = Callable[..., Plan]


@pytest.mark.parametrize("solver", ["highs", "gscip"])
@pytest.mark.parametrize(
    ("n", "node", "nlr"), [(10, "b", 0), (10, "a", 0), (15, "b", 0), (15, "a", 0.75), (20, "b", 0), (20, "a", 1.125)]
)
def test_normalised_laxity_of_both_placements(paper_plan: Make, solver: Any, n: int, node: str, nlr: float) -> None:
    plan = paper_plan(n, place={"O3": node}, limits=Limits(solver=solver))
    assert plan.objective.nlr == nlr
    assert plan.objective.bound == nlr
    assert plan.status == "optimal"


@pytest.mark.parametrize("solver", ["highs", "gscip"])
@pytest.mark.parametrize(("n", "node"), [(5, "a"), (10, "a"), (11, "b"), (15, "b"), (20, "b"), (26, "b")])
def test_the_free_operator(paper_plan: Make, solver: Any, n: int, node: str) -> None:
    """Up to 10 both placements have NLR 0 and traffic decides; above, only node b has."""
    plan = paper_plan(n, limits=Limits(solver=solver))
    assert plan.placement["O3"] == node
    assert plan.objective.traffic == (n / 2 if node == "a" else n)


@pytest.mark.parametrize("place", [{}, {"O3": "a"}, {"O3": "b"}])
def test_from_27_tuples_on_no_placement_holds(paper_plan: Make, place: dict[str, str]) -> None:
    with pytest.raises(InfeasibleError) as raised:
        paper_plan(27, place=place)
    assert named(raised.value.mistakes) == [("path_too_long", "warning")]


def test_infeasible_says_which_rows_need_how_much(paper_plan: Make) -> None:
    with pytest.raises(InfeasibleError) as raised:
        paper_plan(27)
    (reason,) = raised.value.reasons
    assert (reason.code, reason.subject) == ("path_too_long", "warning")
    assert "307 ms before 300 ms" in reason.text
    Wording("plan", "paper").check("27 tuples", raised.value.lines())


def test_a_path_that_costs_more_than_its_deadline(paper_plan: Make) -> None:
    with pytest.raises(InfeasibleError) as raised:
        paper_plan(31)  # 31 + 31 + 16 * 15.5 = 310 ms
    assert named(raised.value.mistakes) == [("path_too_costly", "warning")]
    Wording("plan", "paper").check("31 tuples", raised.value.lines())


def test_sub_deadlines_at_15(paper_plan: Make) -> None:
    due = paper_plan(15).sub_deadlines_ns
    chain = ["O4", *(f"O{i}" for i in range(7, 22))]
    expected = {"O1": 30, "O2": 30, "O3": 30, "O6": 1500, "O5": 1500} | dict.fromkeys(chain, 15)
    assert due == {name: value * MS for name, value in expected.items()}
    assert sum(due[name] for name in chain) == 240 * MS


def test_sub_deadlines_at_15_with_o3_on_a(paper_plan: Make) -> None:
    """40 ms of demand on a: d(O3) = 40 costs 2/3, and what the chain gives for it 1/12: together 0.75."""
    due = paper_plan(15, place={"O3": "a"}).sub_deadlines_ns
    chain = sum(due[name] for name in ["O4", *(f"O{i}" for i in range(7, 22))])
    assert (due["O1"], due["O2"], due["O3"], chain) == (30 * MS, 30 * MS, 40 * MS, 230 * MS)


@pytest.mark.parametrize("n", [5, 10, 15, 20, 26, 27, 30])
def test_sqpr_puts_o3_on_a(paper_plan: Make, n: int) -> None:
    plan = paper_plan(n, allocator="sqpr")
    assert plan.placement["O3"] == "a"
    assert plan.objective.traffic == n / 2
    assert plan.model == "sqpr"


def test_a_node_beyond_its_cap(paper_plan: Make) -> None:
    """At 40 tuples the chain and the centre's operators use 520 of every 500 ms."""
    with pytest.raises(InfeasibleError) as raised:
        paper_plan(40, allocator="sqpr")
    assert named(raised.value.reasons) == [("cap_exceeded", "b")]
    Wording("plan", "paper").check("40 tuples, sqpr", raised.value.lines())


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 10, 1), (1, 1, 10), (10, 1, 1), (1, 0.1, 1), (1, 1, 0.1)])
def test_sqpr_puts_o3_on_a_for_other_weights(paper: Callable[[int], tuple[Path, Path]], weights: Any) -> None:
    from coordinator.model import problem
    from coordinator.solve.milp import sqpr

    query, cluster, _ = input_files.read_files(*paper(15))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    found = sqpr.allocate(built, Limits(), weights=weights)
    assert found.place[built.item_of()["O3"]] == 0


def test_sqpr_takes_its_sub_deadlines_from_the_model_where_that_has_any(paper_plan: Make) -> None:
    assert paper_plan(20, allocator="sqpr").solver.sub_deadlines == "model"
    beyond = paper_plan(26, allocator="sqpr")
    assert beyond.solver.sub_deadlines == "proportional"
    assert beyond.sub_deadlines_ns["O3"] == 26 * 300 * MS // 260


def test_sqpr_with_the_deadline_allocators_sub_deadlines(paper_plan: Make) -> None:
    """[P] 6.1: ExistingAlloc.EDF uses those of DeadlineAlloc."""
    existing = paper_plan(15, allocator="sqpr", sub_deadlines="deadline")
    assert existing.placement["O3"] == "a"
    assert existing.sub_deadlines_ns == paper_plan(15).sub_deadlines_ns


def test_task_units(paper_plan: Make) -> None:
    chain = ["O4", *(f"O{i}" for i in range(7, 22))]
    units = {node: [list(task.operators) for task in tasks] for node, tasks in paper_plan(15).tasks.items()}
    assert units == {"a": [["O1"], ["O2"]], "b": [["O3", *chain], ["O6", "O5"]]}
    units = {n: [list(t.operators) for t in ts] for n, ts in paper_plan(15, place={"O3": "a"}).tasks.items()}
    assert units == {"a": [["O1"], ["O2", "O3"]], "b": [chain, ["O6", "O5"]]}
    single = paper_plan(15, units="operator").tasks
    assert [len(single["a"]), len(single["b"])] == [2, 19]


def test_without_contraction_the_chain_is_infeasible(paper: Callable[[int], tuple[Path, Path]]) -> None:
    """Theory 1.2 (3): sixteen separate equal operators need 16 * 17 / 2 * 7.5 = 1020 ms."""
    from fractions import Fraction

    from coordinator.model import problem

    query, cluster, _ = input_files.read_files(*paper(15))
    assert cluster is not None
    built = problem.build(query, cluster, {"O3": "b"})
    chain = next(item for item in built.items if item.name == "O4..O21")
    each = Fraction(chain.weight_ns, 16)
    assert sum(each * (position + 1) for position in range(16)) == 1020 * MS


def test_the_same_input_gives_the_same_hash(paper_plan: Make) -> None:
    assert paper_plan(15).hash == paper_plan(15).hash != paper_plan(14).hash


def test_sources_keep_the_order_of_the_file(paper_plan: Make) -> None:
    """Tuples of one instant are admitted in it ([P] 6.1): V2V just before the sensor."""
    plan = paper_plan(15)
    assert [source.name for source in plan.nodes["a"].sources] == ["v2v", "sensor"]


def test_policy_overrides_every_node(paper_plan: Make) -> None:
    plan = paper_plan(15, policy="fifo")
    assert {local.policy.name for local in plan.nodes.values()} == {"fifo"}
    assert {local.policy.largest_batch for local in plan.nodes.values()} == {1}


def test_out_of_time_is_4(paper_plan: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from coordinator.errors import OutOfTimeError
    from coordinator.solve.milp import milp

    monkeypatch.setattr(milp, "solve", lambda *_: milp.Answer(None, False))
    with pytest.raises(OutOfTimeError) as raised:
        paper_plan(15)
    assert raised.value.exit_code == 4
    assert named(raised.value.mistakes) == [("out_of_time", "")]
    Wording("plan", "paper").check("out of time", raised.value.lines())


def test_a_plan_that_the_audit_refuses_is_not_made(paper_plan: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from coordinator.errors import AuditError
    from coordinator.solve import sub_deadline_allocation

    monkeypatch.setattr(
        sub_deadline_allocation, "settle", lambda _problem, place, _wanted: dict.fromkeys(place, 60 * MS)
    )
    with pytest.raises(AuditError) as raised:
        paper_plan(15)
    assert raised.value.exit_code == 1
    assert any("output control" in line for line in raised.value.lines())
