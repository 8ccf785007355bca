"""The query of [P] under model `sound`: the figures of the theory exactly, what is chosen and why, proofs, options."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.explain.explanation import explain
from coordinator.guarantee.bounds import bounds
from coordinator.model.choices import Choices
from coordinator.solve.audit.audit_guarantee import audit
from coordinator.solve.option_checks import BadOptionError
from coordinator.spec.runtime_charges import NOTHING
from protos import plan_document
from protos.plan.search import PaperChoice, SoundAlternative
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import FREE, MS, QUERIES, written
from tests.coordinator.wording import Wording, named

SEARCH = ("placements", "analyses", "cuts")


def texts(n: int, age: str = "") -> tuple[str, str]:
    """Period 1000 ms, no link delay; age: of v2v."""
    query = (QUERIES / "collision_paper.yaml").read_text()
    query = query.replace("burst: 20", f"burst: {n}").replace("500 ms", "1000 ms").replace(", max_age: 1 s", age)
    cluster = (QUERIES / "cluster_paper.yaml").read_text()
    line = next(line for line in cluster.splitlines() if line.startswith("links"))
    return query, cluster.replace(line, FREE)


@cache
def _planned(n: int, age: str, choices: str) -> str:
    return written(*texts(n, age), model="sound", **json.loads(choices)).text()


def sound(n: int, age: str = "", **choices: Any) -> Plan:
    return plan_document.parse(_planned(n, age, json.dumps(choices)).encode())


def from_admission_ms(plan: Plan) -> dict[str, float]:
    return {name: (claim.from_admission_ns or 0) / MS for name, claim in plan.guarantee.items()}


def test_the_tightest_bound_of_warning_with_o3_on_b_is_147_ms() -> None:
    plan = sound(15, place={"O3": "b"}, tighten="warning")
    assert from_admission_ms(plan) == {"control": 25, "warning": 147, "advisory": 343}
    assert all(node.sub_deadlines_hold for node in plan.analysis.nodes.values())


def test_free_o3_goes_to_a_with_142_ms_and_less_traffic() -> None:
    for tighten in (None, "warning"):
        plan = sound(15, tighten=tighten)
        assert (plan.placement["O3"], from_admission_ms(plan)["warning"]) == ("a", 142)
        assert plan.objective.traffic == 7.5
    assert sound(15).status == "optimal"


def test_the_explanation_says_what_the_paper_model_would_choose() -> None:
    plan = sound(15)
    assert plan.paper == PaperChoice(elsewhere={"O3": "b"}, nlr=0.0, traffic=15.0, nlr_here=0.75)
    assert plan.alternatives == {"O3": {"b": SoundAlternative(traffic=15.0, guaranteed=True, nlr=0.0)}}
    told = "\n".join(line for lines in explain(plan).values() for line in lines)
    assert "the paper model would choose b, with NLR 0 against NLR 0.75 here, without regard to traffic" in told


def test_declared_ages_are_within_the_bounds() -> None:
    plan = sound(15, ", max_age: 100 ms")
    claim = plan.guarantee["warning"]
    assert claim.guaranteed and claim.bound_ns == 242 * MS


def test_the_claims_are_those_of_the_plan() -> None:
    plan = sound(20, ", max_age: 20 ms")
    assert audit(plan) == []
    for name, claim in bounds(plan, NOTHING).items():
        assert plan.guarantee[name].bound_ns == claim.bound_ns
    warning = plan.guarantee["warning"]
    smaller = replace(warning, bound_ns=(warning.bound_ns or 0) - 1)
    assert "its bound is" in audit(replace(plan, guarantee={**plan.guarantee, "warning": smaller}))[0]


def test_the_same_input_gives_the_same_plan() -> None:
    assert written(*texts(15), model="sound").hash == sound(15).hash


def test_an_age_beyond_the_deadline_is_no_plan() -> None:
    with pytest.raises(InfeasibleError) as raised:
        sound(15, ", max_age: 300 ms")
    assert named(raised.value.reasons) == [("age_beyond_deadline", "warning")] and raised.value.reasons[0].mend


def test_rows_name_the_node_and_who_demands_what() -> None:
    with pytest.raises(InfeasibleError) as raised:
        sound(40)
    first = raised.value.reasons[0]
    assert (first.code, first.subject) == ("condition_broken", "b") and "320 ms" in first.text
    Wording("plan", "paper, sound").check("40 tuples, sound", raised.value.lines())


def test_best_effort_writes_the_nearest_plan_and_says_so() -> None:
    plan = sound(40, best_effort=True)
    assert plan.solver.outcome == "proven impossible" and plan.solver.why
    late = [name for name, claim in plan.guarantee.items() if (claim.from_admission_ns or 0) > claim.deadline_ns]
    assert late == ["warning"]


def test_where_nothing_is_found_and_nothing_is_proven_the_best_is_written() -> None:
    plan = sound(36)
    assert plan.solver.outcome == "no guaranteed plan was found, none is proven impossible"
    assert plan.status == "feasible" and not plan.guarantee["warning"].guaranteed


def test_other_policies_are_planned_as_if_edf_and_claim_nothing() -> None:
    fifo, edf = sound(15, policy="fifo"), sound(15)
    assert fifo.placement == edf.placement and fifo.sub_deadlines_ns == edf.sub_deadlines_ns
    assert all("no bound" in claim.why for claim in fifo.guarantee.values())


def test_tighten_names_an_output_and_needs_the_model() -> None:
    with pytest.raises(BadOptionError) as unknown:
        sound(15, tighten="warnin")
    assert [mistake.code for mistake in unknown.value.mistakes] == ["unknown_output"]
    assert "'warning'" in unknown.value.mistakes[0].mend
    with pytest.raises(BadOptionError) as paper:
        written(*texts(15), model="paper", tighten="warning")
    assert [mistake.code for mistake in paper.value.mistakes] == ["tighten_without_bounds"]
    assert Choices().model == "sound"
