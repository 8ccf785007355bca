"""Policies in virtual time: what decisions cost, and that batches save it; the command's options."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node_agent.core.policies import POLICIES
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from sim_vehicles.cli.app import app
from tests.sentences import Wording
from tests.simulation.planned_queries import MS, planned
from tests.simulation.policies.paper_policies import OWN, handed

SAID = Wording("simulate", "policies")

ONE_NODE = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700", memory: 64 MiB, policy: bts}}
links: []
operators: operators.json
security: insecure-loopback
"""

QUERY = """
shimekiri: 1
query: many
sources:
  p: {at: a, type: json, arrival: {burst: 50, period: 1 s}}
  q: {at: a, type: json, arrival: {burst: 50, period: 1 s}}
operators:
  O1: {run: pass, in: p, cost: 1 ms}
  O2: {run: pass, in: q, cost: 1 ms}
outputs:
  out1: {from: O1, at: a, deadline: 900 ms}
  out2: {from: O2, at: a, deadline: 800 ms}
"""


def plan() -> Plan:
    return planned(QUERY, ONE_NODE)


def ran(scenario: Scenario) -> list[records.Ran]:
    (trace,) = simulate(plan(), scenario).traces
    return [each for each in records.unpack_records(trace.records) if isinstance(each, records.Ran)]


def test_a_decision_is_paid_before_every_instance_and_recorded() -> None:
    found = ran(Scenario(policy="edf", decision_ns=MS))
    assert {each.decision_ns for each in found} == {MS}
    assert all(after.start_ns == before.end_ns + MS for before, after in pairwise(found))
    assert found[-1].end_ns - found[0].release_ns == 200 * MS


@pytest.mark.parametrize(("name", "decisions"), [("taat", 100), ("bts", 2), ("pqed", 2)])
def test_batches_save_decisions(name: str, decisions: int) -> None:
    found = ran(Scenario(policy=name, decision_ns=MS))
    assert max(each.end_ns for each in found) - found[0].release_ns == (100 + decisions) * MS


@pytest.mark.parametrize("name", OWN)
def test_what_only_the_papers_have_is_handed_in_and_no_scenario_names_it(name: str) -> None:
    (trace,) = simulate(plan(), Scenario(), policies=handed(OWN[name])).traces
    found = [each for each in records.unpack_records(trace.records) if isinstance(each, records.Ran)]
    assert len(found) == 100 and len({each.start_ns for each in found}) == 100, "tuple by tuple, not in batches"
    with SAID.refuses("policy_never_live --policy"):
        simulate(plan(), Scenario(policy=name))


def test_the_policy_of_the_cluster_file_is_the_plans() -> None:
    assert plan().nodes["a"].policy.name == "bts"
    assert len({each.start_ns for each in ran(Scenario())}) == 2


def test_without_a_decision_cost_nothing_changes_and_run_json_says_nothing_of_it() -> None:
    assert {"decision_ns", "phi_ns", "first_k"}.isdisjoint(Scenario().document())
    given = Scenario(decision_ns=5, first_k=2, share_ppm=10_000).document()
    assert (given["decision_ns"], given["first_k"], given["share_ppm"]) == (5, 2, 10_000)


@pytest.mark.parametrize(
    ("wrong", "called"),
    [
        ({"decision_ns": -1}, "negative --decision-cost"),
        ({"phi_ns": 0}, "out_of_range --phi"),
        ({"first_k": 0}, "out_of_range --first-k"),
        ({"first_k": 10**7}, "out_of_range --first-k"),
        ({"share_ppm": 0}, "out_of_range --share"),
        ({"share_ppm": 10**6}, "out_of_range --share"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(wrong: dict[str, int], called: str) -> None:
    with SAID.refuses(called):
        simulate(plan(), Scenario(**wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_command_runs_every_policy_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan().text())
    options = ["--policy", name, "--decision-cost", "50us", "--phi", "10ms", "--first-k", "2", "--share", "2", "--json"]
    done = CliRunner().invoke(app, ["simulate", str(path), *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["scenario"]["policy"] == name
    assert sum(each["met"] for each in found["outputs"].values()) == 100
