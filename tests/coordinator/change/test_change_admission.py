"""Adding and removing queries, on paper: what is admitted, what is refused and why, what stays as it was."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from coordinator.change import change_summary, next_plan, remedies
from coordinator.change.admission import promised
from coordinator.change.next_plan import Change, Wish
from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.plan import plan_file, running_plan
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from coordinator.units import show_ns
from protos.plan_document import Plan
from tests.coordinator.spec.sharing import random_queries
from tests.coordinator.wording import named
from tests.sampling import sample

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7701"}
links:
  - {between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}
"""
BASE = """
shimekiri: 1
query: base
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}
operators:
  A: {run: pass, in: s, cost: 100 us, nodes: [a]}
  B: {run: pass, in: A, cost: 100 us, nodes: [a]}
  C: {run: pass, in: B, cost: 100 us}
outputs:
  out: {from: C, at: b, deadline: 50 ms}
"""
FLEET = """
shimekiri: 1
query: fleet
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}
  t: {at: b, type: json, arrival: {burst: 5, period: 100 ms}, max_age: 1 ms}
operators:
  A: {run: pass, in: s, cost: 100 us}
  X: {run: pass, in: A, cost: 200 us}
  Y: {run: pass, in: t, cost: 200 us}
outputs:
  x: {from: X, at: b, deadline: 30 ms}
  y: {from: Y, at: a, deadline: 20 ms}
"""
HEAVY = """
shimekiri: 1
query: heavy
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}
operators:
  H: {run: pass, in: s, cost: COST, nodes: [NODES]}
outputs:
  h: {from: H, at: b, deadline: DEADLINE}
"""


class Desk:
    """A directory with a plan that runs, and queries to add."""

    def __init__(self, root: Path) -> None:
        self.root, self.path = root, root / "plan.json"
        self.write("cluster", CLUSTER)

    def write(self, name: str, text: str) -> Path:
        path = self.root / f"{name}.yaml"
        path.write_text(text)
        return path

    def plan(self, *queries: str, **choices: Any) -> Plan:
        paths = [self.write(f"q{number}", text) for number, text in enumerate(queries)]
        made = planner.make_plan(paths, self.root / "cluster.yaml", Choices(quick=True, **choices))
        return self.kept(made)

    def kept(self, made: Plan | None) -> Plan:
        """As it comes back from its file."""
        assert made is not None
        plan_file.write(made, self.path)
        return plan_file.read(self.path)

    def add(self, plan: Plan, query: str, best_effort: bool = False, share: bool = True) -> Change:
        file = self.write("joining", query)
        return next_plan.added(plan, self.path, file, Wish(Limits(seconds=20), best_effort, share))

    def remove(self, plan: Plan, *names: str) -> Change:
        return next_plan.removed(plan, self.path, names)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def heavy(cost: str, deadline: str, nodes: str = "a, b") -> str:
    return HEAVY.replace("COST", cost).replace("DEADLINE", deadline).replace("NODES", nodes)


def units(plan: Plan) -> dict[tuple[str, ...], tuple[str, int]]:
    return {task.operators: (node, task.sub_deadline_ns) for node, tasks in plan.tasks.items() for task in tasks}


def test_a_query_that_fits_is_added_and_nothing_that_runs_is_moved(desk: Desk) -> None:
    plan = desk.plan(BASE)
    change = desk.add(plan, FLEET)
    assert change.verdict.admitted and change.verdict.reasons == () and change.shared == ("A",)
    after = change.after
    assert after is not None and list(after.queries) == ["base", "fleet"]
    assert units(plan).items() <= units(after).items()
    rows = {row.output: row for row in change.verdict.rows}
    assert [rows[name].query for name in ("out", "x", "y")] == ["base", "fleet", "fleet"]
    for row in rows.values():
        assert (
            row.wanted
            and row.after
            and row.during
            and row.after.bound_ns
            and row.during.bound_ns
            and row.after.bound_ns < row.during.bound_ns <= row.deadline_ns
        )
    told = "\n".join(change_summary.lines(change))
    assert "shared with what runs: A" in told and "new sources: t" in told and "nothing that runs is moved" in told
    now, then = plan.guarantee["out"].bound_ns, after.guarantee["out"].bound_ns
    assert now is not None and then is not None
    assert f"output out of base: guaranteed, bound {show_ns(now)} -> {show_ns(then)}" in told
    assert change_summary.document(change)["queries"] == {"base": ["out"], "fleet": ["x", "y"]}


def test_what_is_added_can_be_removed_and_added_again(desk: Desk) -> None:
    plan = desk.plan(BASE)
    both = desk.add(plan, FLEET).after
    assert both is not None
    alone = desk.remove(desk.kept(both), "fleet")
    assert alone.verdict.admitted and alone.after is not None
    for key in ("placement", "sub_deadlines_ns", "tasks", "graph", "guarantee"):
        assert getattr(alone.after, key) == getattr(plan, key), key
    again = desk.add(desk.kept(alone.after), FLEET)
    assert again.after is not None and again.after.tasks == both.tasks
    assert again.after.hash != both.hash, "it says what it was made from"


def test_what_holds_from_admission_on_only_is_not_called_guaranteed_without_saying_so(desk: Desk) -> None:
    base, fleet = (text.replace(", max_age: 1 ms", "") for text in (BASE, FLEET))
    change = desk.add(desk.plan(base), fleet)
    told = [line for line in change_summary.lines(change) if line.startswith("output ")]
    assert change.verdict.admitted and len(told) == 3
    assert all(": guaranteed from admission on only, bound " in line for line in told), told


def test_what_remains_of_a_unit_keeps_its_place_in_the_order(desk: Desk) -> None:
    plan = desk.kept(desk.add(desk.plan(BASE), FLEET).after)
    rest = desk.remove(plan, "base")
    assert rest.verdict.admitted and rest.after is not None
    assert units(plan)["A", "B", "C"] == units(rest.after)[("A",)]
    told = "\n".join(change_summary.lines(rest))
    assert (
        "without base; fleet" in told
        and "no longer there: 2 operators (B, C)" in told
        and "outputs that end: out" in told
    )


@pytest.mark.parametrize("names", [("nobody",), ("base", "nobody")])
def test_a_query_that_does_not_run_is_bad_input(desk: Desk, names: tuple[str, ...]) -> None:
    with pytest.raises(BadInputError) as raised:
        desk.remove(desk.plan(BASE), *names)
    (problem,) = raised.value.problems
    assert problem.mistake.code == "unknown_query" and "'nobody'" in problem.mistake.text


def test_the_last_query_is_stopped_and_not_removed(desk: Desk) -> None:
    plan = desk.plan(BASE, FLEET)
    with pytest.raises(BadInputError) as raised:
        desk.remove(plan, "fleet", "base")
    (problem,) = raised.value.problems
    assert problem.mistake.code == "last_query" and "base, fleet" in problem.mistake.text


def test_a_name_that_runs_already_is_bad_input(desk: Desk) -> None:
    for again, how in ((BASE, ", as in this file"), (BASE + "\n", ", not as in this file")):
        with pytest.raises(BadInputError) as raised:
            desk.add(desk.plan(BASE), again)
        (problem,) = raised.value.problems
        assert (problem.mistake.code, problem.subject) == ("runs_already", "query")
        assert problem.mistake.text.endswith(how) and "coordinator remove base" in problem.mistake.mend


def test_a_query_that_harms_others_is_refused_with_output_bound_and_node(desk: Desk) -> None:
    plan = desk.kept(desk.add(desk.plan(BASE), FLEET).after)
    change = desk.add(plan, heavy("1500 us", "19 ms", "b"))
    assert not change.verdict.admitted
    assert ("output_not_kept", "h") in named(change.verdict.reasons)
    (reason,) = [str(each) for each in change.verdict.reasons if each.subject == "h"]
    assert "19 ms" in reason and "node b" in reason


def test_proven_impossible_is_said_with_the_demand(desk: Desk) -> None:
    change = desk.add(desk.plan(BASE), heavy("4 ms", "30 ms"))
    assert not change.verdict.admitted
    assert ("burst_beyond_deadline", "H") in named(change.verdict.proof)
    assert ("output_not_kept", "h") in named(change.verdict.reasons)


def test_best_effort_adds_what_nobody_is_harmed_by(desk: Desk) -> None:
    plan = desk.kept(desk.add(desk.plan(BASE), FLEET).after)
    for query in (heavy("4 ms", "30 ms"), heavy("2 ms", "12 ms", "b")):
        change = desk.add(plan, query, best_effort=True)
        assert change.verdict.admitted, change.verdict.reasons
        assert change.after is not None and not change.after.guarantee["h"].guaranteed
        assert all(change.after.guarantee[name].guaranteed for name in ("out", "x", "y"))
        assert "output h of heavy: NOT guaranteed" in "\n".join(change_summary.lines(change))
    harmful = desk.add(plan, heavy("9 ms", "30 ms"), best_effort=True)
    assert not harmful.verdict.admitted, "100 ms of work in 100 ms leave nobody a bound"


def test_an_output_that_is_late_now_keeps_nobody_out(desk: Desk) -> None:
    late = BASE.replace("deadline: 50 ms", "deadline: 2 ms")
    plan = desk.plan(late.replace("outputs:", "outputs:\n  soon: {from: A, at: a, deadline: 40 ms}"), best_effort=True)
    assert not plan.guarantee["out"].guaranteed and plan.guarantee["soon"].guaranteed
    change = desk.add(plan, FLEET)
    assert change.verdict.admitted, change.verdict.reasons
    assert "output out of base: NOT guaranteed, as before" in "\n".join(change_summary.lines(change))


def test_a_plan_of_another_model_keeps_it(desk: Desk) -> None:
    plan = desk.plan(BASE, model="paper", charges=NOTHING)
    change = desk.add(plan, FLEET)
    assert change.after is not None and change.after.model == "paper" and change.verdict.admitted
    assert change.after.solver.sub_deadlines == "kept" and units(plan).items() <= units(change.after).items()
    assert change.verdict.loading_ns == 0 and change.after.analysis.charges == plan.analysis.charges


def test_policies_are_kept_and_without_a_bound_only_best_effort_is_left(desk: Desk) -> None:
    plan = desk.plan(BASE, policy="fifo", best_effort=True)
    refused = desk.add(plan, FLEET)
    assert not refused.verdict.admitted and any("policy fifo" in str(reason) for reason in refused.verdict.reasons)
    change = desk.add(plan, FLEET, best_effort=True)
    assert change.verdict.admitted and change.after is not None
    assert {node.policy for node in change.after.cluster.nodes.values()} == {"fifo"}


def test_without_sharing_every_operator_is_its_own(desk: Desk) -> None:
    change = desk.add(desk.plan(BASE), FLEET, share=False)
    assert change.shared == () and change.after is not None and "fleet/A" in change.after.placement


def test_a_plan_that_survives_a_node_is_not_changed(desk: Desk) -> None:
    plan = desk.plan(BASE, survive=1, best_effort=True)
    with pytest.raises(BadInputError) as raised:
        desk.add(plan, FLEET)
    (problem,) = raised.value.problems
    assert problem.mistake.code == "change_of_surviving_plan" and problem.mistake.mend


def test_a_refusal_says_what_would_fit_if_what_runs_moved(desk: Desk) -> None:
    both = desk.kept(desk.add(desk.plan(BASE), FLEET).after)
    plan = desk.kept(desk.remove(both, "base").after)
    change = desk.add(plan, heavy("1500 us", "25 ms", "b"))
    assert not change.verdict.admitted
    found = remedies.remediation_options(change)
    assert found.replacement is not None and found.moved, "planned anew X and Y go elsewhere"
    assert found.replacement.guarantee["h"].guaranteed
    assert found.replacement.placement["H"] == "b"
    assert set(found.moved.values()) == {("b", "a")}
    said = "\n".join(found.lines("next.json"))
    assert "it would fit if" in said and "coordinator deploy next.json --replace" in said
    assert running_plan.read(found.replacement).members.keys() == {"fleet", "heavy"}


def test_a_refusal_says_what_makes_room_where_nothing_fits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "MEND_S", 2.0)
    change = desk.add(desk.plan(BASE), heavy("4 ms", "30 ms"))
    found = remedies.remediation_options(change)
    assert found.replacement is None and "planned anew with every operator free it does not fit" in found.lines("")[0]
    for deadline in (mend for mend in found.repairs if mend.way == "deadline"):  # as many as there was time for
        relaxed = next(one for one in deadline.case.query.outputs if one.name == "h").deadline_ns
        assert desk.add(change.before, heavy("4 ms", f"{relaxed} ns")).verdict.admitted, "it is true"


def test_where_only_the_change_takes_too_long_it_is_said(desk: Desk) -> None:
    """All would be well before and after: then what is assumed of loading decides, and the next plan is at hand."""
    plan = desk.plan(BASE)
    after = desk.add(plan, FLEET).after
    assert after is not None
    bound_ns = after.guarantee["out"].bound_ns
    assert bound_ns is not None
    tight = BASE.replace("50 ms", f"{bound_ns + 1000} ns")
    plan = desk.plan(tight)
    change = desk.add(plan, FLEET)
    assert not change.verdict.admitted and change.verdict.only_during
    (reason,) = change.verdict.reasons
    assert (reason.code, reason.subject) == ("output_not_kept", "out") and "during the change" in str(reason)
    file = desk.write("joining", FLEET)
    quick = next_plan.added(plan, desk.path, file, Wish(Limits(seconds=20), loading_ns=0))
    assert quick.verdict.admitted and quick.after is not None and change.after is not None
    assert units(quick.after) == units(change.after)
    both = desk.kept(quick.after)
    back = desk.remove(both, "fleet")
    assert not back.verdict.admitted and back.verdict.only_during
    assert next_plan.removed(both, desk.path, ["fleet"], loading_ns=0).verdict.admitted


def test_changes_that_are_made_again_are_the_same(desk: Desk) -> None:
    plan = desk.plan(BASE)
    hashes: set[str] = set()
    for _ in range(2):
        after = desk.add(plan, FLEET).after
        assert after is not None
        hashes.add(after.hash)
    assert len(hashes) == 1


@pytest.mark.parametrize("seed", sample(range(5), 2))
def test_random_queries_come_and_go(desk: Desk, seed: int) -> None:
    """Joins, unions, side inputs, filters, relays, cores and full links: what is admitted keeps what runs (else
    AuditError) and what was promised, and may go again."""
    dice = random.Random(seed)
    first = random_queries.operators(dice, most=4)
    specs = {
        f"q{number}": spec for number, spec in enumerate([first, *(random_queries.varied(dice, first) for _ in "12")])
    }
    times = dice.choice([1, 8, 14])
    (desk.root / "operators.json").write_text(json.dumps(random_queries.INSTALLED))
    cluster = random_queries.cluster_text(dice.choice([1, 2]))
    desk.write("cluster", cluster.replace("  - {between: [a, c]}\n", "") if dice.random() < 0.5 else cluster)
    texts = {
        name: re.sub(
            r"cost: (\d) ms", lambda cost: f"cost: {int(cost[1]) * times} ms", random_queries.text(name, spec, dice)
        )
        for name, spec in specs.items()
    }
    plan = desk.plan(texts["q0"], best_effort=True)
    for name in ("q1", "q2"):
        change = desk.add(plan, texts[name], best_effort=dice.random() < 0.5, share=dice.random() < 0.8)
        if change.verdict.admitted:
            held = {output for output, claim in plan.guarantee.items() if promised(claim)}
            assert change.after is not None and all(promised(change.after.guarantee[one]) for one in held)
            plan = desk.kept(change.after)
    while len(plan.queries) > 1:
        change = desk.remove(plan, dice.choice(list(plan.queries)))
        assert change.verdict.admitted and change.after is not None, "with less to do nothing is later"
        plan = desk.kept(change.after)
