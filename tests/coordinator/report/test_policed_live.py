"""Real agents: a source that sends more than it declared and an operator that passes more, counted in the report."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, Wanted
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Source
from protos.plan_document import Plan

# A period of an hour: what is beyond a burst does not depend on how fast the machine is.
QUERY = """
shimekiri: 1
query: broken
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 1 h}, max_age: 3 s}
operators:
  near: {run: pass, in: s, cost: 10 us, nodes: [a]}
  half: {run: pass, in: near, cost: 10 us, selectivity: {mean: 0.5, at_most: [[2, 1]]}, nodes: [b]}
outputs:
  all:  {from: near, at: a, deadline: 4 s}
  some: {from: half, at: b, deadline: 4 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
"""


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Addresses]:
    found: list[LocalAgent] = []
    try:
        for name in ("a", "b"):
            found += local_agents.start([Wanted(name, "127.0.0.1:0", "127.0.0.1:0", (tmp_path / "state" / name))])
        addresses = Addresses(
            tmp_path / "addresses.json", {n: each.address for n, each in zip("ab", found, strict=True) if each.address}
        )
        addresses.write()
        yield addresses
    finally:
        local_agents.stop(found)


def make_plan(folder: Path, deadline: str = "4 s") -> Plan:
    (folder / "query.yaml").write_text(QUERY.replace("4 s", deadline))
    (folder / "cluster.yaml").write_text(CLUSTER)
    made = planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", Choices(model="sound"))
    plan_file.write(made, folder / "plan.json")
    assert all(claim.guaranteed for claim in made.guarantee.values())
    return made


def send(addresses: Addresses, count: int) -> None:
    """Each in a batch of its own; every one is admitted."""
    with Source(addresses.nodes["a"].data, "s", timeout=20) as source:
        answers = source.send_many([{"n": n} for n in range(count)])
    assert [type(answer).__name__ for answer in answers] == ["Admitted"] * count


def counters(connected: Agents) -> dict[str, int]:
    return {each.name: each.value for each in connected.status()["a"].counters}


def test_the_excess_is_admitted_shed_and_counted(tmp_path: Path, agents: Addresses) -> None:
    plan = make_plan(tmp_path)
    with Agents(agents.of_plan(plan)) as connected:
        deploy.deploy(plan, connected)
        send(agents, 7)
        send(agents, 8)  # another client of the same source: five of these are too many
        assert counters(connected)["policed_arrivals.s"] == 5
        assert deploy.stop({bytes.fromhex(plan.hash)}, connected, 60) == []
        run = collect.new_run(tmp_path / "runs", plan, tmp_path / "plan.json", tmp_path / "addresses.json")
        assert collect.collect(run, plan, connected).problems == []
    told = verdict(read_run(run)).document()
    books, outputs = told["conservation"], told["outputs"]
    assert books["balanced"] and books["admitted"] == books["accounted"] == 15
    assert books["by_cause"] == {"shed(arrivals)": 5, "shed(selectivity)": 5}
    assert (outputs["all"]["delivered"], outputs["all"]["shed"]) == (10, 5)
    assert (outputs["some"]["delivered"], outputs["some"]["shed_unsure"]) == (5, 10)


def test_a_new_plan_goes_on_policing_where_the_old_one_was(tmp_path: Path, agents: Addresses) -> None:
    first = make_plan(tmp_path)
    with Agents(agents.of_plan(first)) as connected:
        deploy.deploy(first, connected)
        send(agents, 9)
        second = make_plan(tmp_path, "5 s")
        deploy.deploy(second, connected)
        send(agents, 3)
        assert counters(connected)["policed_arrivals.s"] == 2
        assert deploy.stop({bytes.fromhex(second.hash)}, connected, 60) == []
