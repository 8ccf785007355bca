"""Several queries on the command line: plan, validate and explain, --no-sharing, --what-if, --survive, --tighten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from coordinator.cli.commands import explain, plan, validate
from coordinator.errors import BadInputError, CoordinatorError
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.solve import option_checks, planner, what_if
from coordinator.solve.audit.audit import audit
from coordinator.solve.repair import structure
from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec import input_files
from protos.plan.queries import QueryPart
from tests.coordinator.wording import facts
from tests.whole_plans import altered

FIRST = """
shimekiri: 1
query: first
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 ms}
operators:
  look: {run: pass, in: s, cost: 1 ms}
  near: {run: filter, in: look, cost: 1 ms}
  C1..C3: {chain: pass, in: near, cost: 1 ms, nodes: [b]}
outputs:
  brake: {from: C3, at: b, deadline: 60 ms}
"""
SECOND = """
shimekiri: 1
query: second
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 ms}
operators:
  see:  {run: pass, in: s, cost: 1 ms, nodes: [a]}
  near: {run: filter, in: see, cost: 2 ms}
outputs:
  log:  {from: near, at: a, deadline: 90 ms}
  seen: {from: see, at: a, deadline: 20 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7701"}
  c: {address: "127.0.0.1:7702"}
"""


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("first.yaml", "second.yaml", "cluster.yaml")]
    for path, text in zip(found, (FIRST, SECOND, CLUSTER), strict=True):
        path.write_text(text)
    return found


def run(command: str, *arguments: object) -> tuple[int, str]:
    """Exit code and what was printed; of a failure that a user can mend, its lines."""
    app = typer.Typer()
    app.callback()(lambda: None)
    for one in (plan, validate, explain):
        one.register(app)
    done = CliRunner().invoke(app, [command, *map(str, arguments)])
    if isinstance(done.exception, CoordinatorError):
        return done.exception.exit_code, "\n".join(done.exception.lines())
    return done.exit_code, done.output


def test_plan_says_whose_each_output_is_and_what_is_shared(paths: list[Path], tmp_path: Path) -> None:
    code, said = run("plan", *paths, "-o", tmp_path / "plan.json")
    assert code == 0, said
    assert "\nbrake of first: deadline 60 ms" in said and "\nlog of second: deadline 90 ms" in said
    assert "run once for first and second: look (see in second)" in said
    assert "near (first) and second/near (second) are not shared: cost 1 ms; cost 2 ms" in said
    made = plan_file.read(tmp_path / "plan.json")
    assert made.query == "first+second"
    assert made.queries["second"] == QueryPart(
        sources=("s",),
        operators=("look", "second/near"),
        outputs=("log", "seen"),
        sha256=made.queries["second"].sha256,
        called={"look": "see", "second/near": "near"},
    )
    assert made.graph.operators["look"].nodes == ("a",)  # where both may run
    code, said = run("explain", tmp_path / "plan.json", "--time-limit", 0)
    assert "Which query needs what" in said and "log of second: takes at most" in said
    code, said = run("explain", *paths, "--time-limit", 0, "--json")
    assert set(json.loads(said)["queries"]) == {"first", "second"}
    code, said = run("plan", *paths, "-o", tmp_path / "plan.json", "--json")
    assert json.loads(said)["queries"] == made.to_json()["queries"]


def test_operators_kept_apart(paths: list[Path], tmp_path: Path) -> None:
    code, said = run("plan", *paths, "-o", tmp_path / "plan.json", "--no-sharing")
    assert code == 0, said
    assert "look (first) and see (second) compute the same and are kept apart" in said
    made = plan_file.read(tmp_path / "plan.json")
    assert list(made.placement) == ["look", "near", "C1", "C2", "C3", "see", "second/near"]
    assert list(made.graph.sources) == ["s"]


def test_validate_several(paths: list[Path]) -> None:
    code, said = run("validate", *paths)
    assert code == 0 and "1 source, 6 operators, 3 outputs, on 3 nodes: valid" in said
    assert "run once for first and second: look (see in second)" in said
    code, said = run("validate", *paths, "--json")
    assert json.loads(said)["shared"] == {"look": ["first", "second"]}
    assert json.loads(said)["streams"]["second/near"] == "json"


@pytest.mark.parametrize("command", ["plan", "validate", "explain"])
def test_the_cluster_comes_last(paths: list[Path], command: str) -> None:
    first, second, cluster = paths
    for given in ([cluster, first], [first, cluster, second]):
        code, said = run(command, *given)
        assert code == 2
        assert f"{cluster}: is a cluster, not a query; give the cluster as the last file" in said
        assert f"{given[-1]}: is a query, not a cluster; give the cluster as the last file" in said
    code, said = run(command, first, second)
    assert code == 2 and f"{second}: is a query, not a cluster" in said
    if command == "plan":
        code, said = run(command, first)
        assert code == 2 and "give one query.yaml or several" in said


def test_a_problem_is_told_in_its_own_file(paths: list[Path]) -> None:
    paths[1].write_text(SECOND.replace("in: see, cost: 2 ms", "in: sea, cost: 2 ms"))
    paths[0].write_text(FIRST.replace("nodes: [b]", "nodes: [x]"))
    code, said = run("plan", *paths)
    assert code == 2
    assert f"{paths[1]}:8: operator 'near' reads stream 'sea'" in said
    assert f"{paths[0]}:9: operator 'C1' names node 'x'" in said


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        ("look.cost=3 ms", {"look": 3}),
        ("see.cost=3 ms", None),
        ("second/see.cost=3 ms", {"see": 3}),
        ("near.cost=3 ms", {"near": 3}),
        ("second/near.cost=3 ms", {"second/near": 3}),
        ("C1..C3.cost=3 ms", {"C1": 3, "C2": 3, "C3": 3}),
        ("first/C1..C3.cost=3 ms", {"C1": 3, "C2": 3, "C3": 3}),
        ("C2.cost=3 ms", {"C2": 3}),
    ],
)
def test_what_if_names_operators_as_the_plan_does(
    paths: list[Path], option: str, changed: dict[str, int] | None
) -> None:
    if changed is None:
        with pytest.raises(option_checks.BadOptionError) as refused:
            what_if.load(paths[:2], paths[2], [option])
        assert [mistake.code for mistake in refused.value.mistakes] == ["unknown_name"]
        return
    before, _, _ = input_files.read_files(paths[:2], paths[2])
    query, _, _ = what_if.load(paths[:2], paths[2], [option])
    costs = {one.name: one.cost_ns for one in before.operators}
    found = {one.name: one.cost_ns // 10**6 for one in query.operators if one.cost_ns != costs.get(one.name)}
    assert found == changed


def test_what_if_changes_a_source_in_all_its_queries(paths: list[Path], tmp_path: Path) -> None:
    query, _, _ = what_if.load(paths[:2], paths[2], ["s.burst=3"])
    assert query.sources[0].arrival.burst == 3
    with pytest.raises(CoordinatorError):
        what_if.load(paths[:2], paths[2], ["seen.deadline=0 ms"])
    code, said = run("plan", *paths, "--what-if", "log.deadline=70 ms", "--json")
    assert code == 0 and json.loads(said)["what_if"] == ["log.deadline=70 ms"], said


def test_survive_and_tighten(paths: list[Path], tmp_path: Path) -> None:
    code, said = run("plan", *paths, "-o", tmp_path / "tight.json", "--tighten", "log")
    assert code == 0, said
    loose = planner.make_plan(paths[:2], paths[2], Choices())
    tight = plan_file.read(tmp_path / "tight.json")
    assert 0 < (tight.guarantee["log"].bound_ns or 0) <= (loose.guarantee["log"].bound_ns or 0)
    code, said = run("plan", *paths, "-o", tmp_path / "survives.json", "--survive", 1)
    assert code == 0, said
    made = plan_file.read(tmp_path / "survives.json")
    left = (made.failover or {})["b"].plan
    assert left is not None
    assert left.query == "first+second"
    lost = left.queries["first"]
    assert (lost.sources, lost.operators, lost.outputs) == ((), (), ())
    assert left.queries["second"].operators == ("look", "second/near")


def test_the_audit_knows_which_query_needs_what(paths: list[Path]) -> None:
    plan = planner.make_plan(paths[:2], paths[2], Choices(quick=True))
    assert audit(plan) == []

    def wrong(change: Callable[[dict[str, Any]], object]) -> str:
        return "\n".join(audit(altered(plan, lambda values: change(values["queries"]))))

    assert "operators of query second are not those" in wrong(lambda all_: all_["second"]["operators"].pop())
    assert "operators of query first are not those" in wrong(lambda all_: all_["first"]["operators"].append("look"))
    assert "sources of query second are not those" in wrong(lambda all_: all_["second"]["sources"].clear())
    assert "not every output belongs to exactly one" in wrong(lambda all_: all_["first"]["outputs"].append("log"))
    assert "the plan's name is not those of its queries" in wrong(lambda all_: all_.pop("first"))


def test_what_frees_an_operator_is_an_option_of_plan(paths: list[Path]) -> None:
    """Names of entries in mends are names that --what-if knows."""
    query, cluster, types = input_files.read_files(paths[:2], paths[2])
    assert cluster is not None
    case = Case(query, cluster, types, Choices())
    freed = structure.places(case, {})
    assert {one.name for one in freed} == {"'nodes' of look", "'nodes' of first/C1..C3"}
    for one in freed:
        change = one.change(case, one.utmost)
        after, _, _ = what_if.load(paths[:2], paths[2], [edit.option for edit in change.edits])
        assert {one.name: one.nodes for one in after.operators} == {
            one.name: one.nodes for one in change.case.query.operators
        }


def test_an_equal_name_is_refused_before_anything_is_planned(paths: list[Path]) -> None:
    paths[1].write_text(SECOND.replace("query: second", "query: first"))
    with pytest.raises(BadInputError) as raised:
        input_files.read_files(paths[:2], paths[2])
    (problem,) = raised.value.problems
    assert facts(problem) == ("second.yaml", 3, "query_twice", "query") and "first.yaml:3" in problem.mistake.text
