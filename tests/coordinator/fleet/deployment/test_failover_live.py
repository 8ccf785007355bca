"""A node is killed and what was planned for that is deployed on the others: clients there stay connected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Sink, Source
from tests.coordinator.fleet.deployment.test_deploy_live import CLUSTER, Street, cli

QUERY = """
shimekiri: 1
query: there_and_back
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}}
operators:
  here:  {run: pass, in: s, cost: 10 us, nodes: [a]}
  there: {run: pass, in: here, cost: 10 us}
  back:  {run: pass, in: there, cost: 10 us, nodes: [a]}
outputs:
  out: {from: back, at: a, deadline: 2 s}
"""


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    choices = Choices(survive=1, place={"there": "b"})
    made = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", choices)
    street.plan = made
    plan_file.write(street.plan, tmp_path / "plan.json")
    yield street
    street.close()


def test_a_node_dies_and_the_rest_goes_on(street: Street) -> None:
    assert street.plan.failover is not None
    after = street.plan.failover["b"].plan
    assert after is not None and street.plan.failover["b"].moved == {"there": "a"}
    with street.connect() as agents:
        first = deploy.deploy(street.plan, agents)
    a = street.addresses.nodes["a"].data
    with Sink(a, "out", timeout=30) as results, Source(a, "s", timeout=20) as source:
        source.send_many([{"n": n} for n in range(5)])
        coming = iter(results)
        assert [next(coming).value["n"] for _ in range(5)] == list(range(5))
        street.kill("b")
        done = cli("deploy", "plan.json", "--without", "b", "--json", cwd=street.root)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer == {
            "plan_hash": after.hash,
            "epoch": first.epoch + 1,
            "nodes": ["a"],
            "changed": True,
            "edited": {},
        }
        source.send_many([{"n": n} for n in range(100, 110)])
        assert [next(coming).value["n"] for _ in range(10)] == list(range(100, 110))
    path = street.root / "plan-without-b.json"
    left = plan_file.read(path)
    with Agents(street.addresses.of_plan(left)) as agents:
        assert deploy.stop({bytes.fromhex(after.hash)}, agents, 60) == []
        run = collect.new_run(street.root / "runs", left, path, street.root / "addresses.json")
        collect.collect(run, left, agents)
    assert verdict(read_run(run)).document()["outputs"]["out"]["met"] == 15, "also what came before"


@pytest.mark.parametrize(
    ("host", "said"),
    [("c", "has no fail-over plan without 'c'; there are a, b"), ("a", "without 'a' no output is left")],
)
def test_what_cannot_be_deployed_is_said(tmp_path: Path, host: str, said: str) -> None:
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    for survive in (0, 1):
        plan = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", Choices(survive=survive))
        plan_file.write(plan, tmp_path / "plan.json")
        done = cli("deploy", "plan.json", "--without", host, cwd=tmp_path)
        assert done.returncode == 2
        assert (said if survive else "plan --survive 1") in done.stderr
