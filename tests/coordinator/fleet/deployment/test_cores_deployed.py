"""Real agents, one with two cores: planned, deployed, killed in part, collected and judged place by place."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import typer
from typer.testing import CliRunner

from coordinator.cli.commands import status as status_command
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents, local_cluster
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Source
from protos import agent_pb2
from protos.plan_document import Plan
from tests.whole_plans import hashed

QUERY = """
shimekiri: 1
query: across_cores
sources:
  s: {at: a, type: json, arrival: {burst: 100, period: 100 ms}}
operators:
  first:  {run: pass, in: s, cost: 10 us, nodes: [a.0]}
  second: {run: pass, in: first, cost: 10 us, nodes: [%s]}
  far:    {run: pass, in: second, cost: 10 us, nodes: [b]}
  last:   {run: %s, in: far, cost: 10 us, nodes: [%s]}
outputs:
  out: {from: last, at: a, deadline: 2 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cores: %d, cpu: 0}
  b: {address: "127.0.0.1:7720"}
"""


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return value


class Street:
    """Agents of a (two cores) and b, and plans for them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plan = self.make_plan()
        self.agents = local_agents.start(local_cluster.wanted(root / "cluster.yaml", root / "state", True, []))
        found = {place.name: place for agent in self.agents for place in agent.places}
        self.addresses = Addresses(root / "addresses.json", found)
        self.addresses.write()

    def make_plan(self, second: str = "a.1", run: str = "pass", cores: int = 2) -> Plan:
        query, cluster, plan = (self.root / name for name in ("query.yaml", "cluster.yaml", "plan.json"))
        query.write_text(QUERY % (second, run, second))
        cluster.write_text(CLUSTER % cores)
        made = planner.make_plan(query, cluster, Choices(model="paper"))
        plan_file.write(made, plan)
        return made

    def connect(self, plan: Plan | None = None) -> Agents:
        return Agents(self.addresses.of_plan(plan or self.plan))

    def runtime_of(self, place: str) -> psutil.Process:
        """The only child of a's agent that listens at the place's data port. Raises ValueError while there is none."""
        address = self.addresses.nodes[place]
        port, found = int(address.data.rpartition(":")[2]), []
        for child in psutil.Process(address.pid).children():
            sockets = child.net_connections("tcp")
            if any(each.laddr.port == port and each.status == psutil.CONN_LISTEN for each in sockets):
                found.append(child)
        (only,) = found
        return only

    def send(self, count: int) -> int:
        """Put tuples in where the source is, at the first place; how many were admitted."""
        with Source(self.addresses.nodes["a"].data, "s", timeout=20) as source:
            answers = source.send_many([{"n": n} for n in range(count)])
        return sum(type(answer).__name__ == "Admitted" for answer in answers)

    def collect(self, plan: Plan, agents: Agents) -> tuple[Path, list[dict[str, Any]]]:
        assert deploy.stop({bytes.fromhex(plan.hash)}, agents, 60) == []
        run = collect.new_run(self.root / "runs", plan, self.root / "plan.json", self.addresses.path)
        done = collect.collect(run, plan, agents)
        assert done.problems == []
        return run, done.traces


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    local_agents.stop(street.agents)


def judge(run: Path) -> dict[str, Any]:
    report = verdict(read_run(run)).document()
    assert report["completeness"]["complete"], report["completeness"]
    assert report["conservation"]["balanced"], report["conservation"]["contradictions"]
    return report


def test_a_core_that_is_killed_while_tuples_flow_recovers_and_the_ledgers_balance(street: Street) -> None:
    assert {name: (node.host, node.core) for name, node in street.plan.cluster.nodes.items()} == {
        "a": ("a", 0), "a.1": ("a", 1), "b": ("b", 0),
    }  # fmt: skip
    first = address_file.load(street.addresses.path).nodes
    assert set(first) == {"a", "a.1", "b"} and first["a"].control == first["a.1"].control
    assert first["a"].pid == first["a.1"].pid and first["a"].data != first["a.1"].data
    admitted, over = [0], threading.Event()

    def feed() -> None:
        with Source(street.addresses.nodes["a"].data, "s", timeout=30) as source:
            while not over.is_set():
                answers = source.send_many([{"n": n} for n in range(20)])
                admitted[0] += sum(type(answer).__name__ == "Admitted" for answer in answers)
                time.sleep(0.02)

    def flows() -> None:
        before = admitted[0]
        wait_for(lambda: admitted[0] > before + 100)

    said: list[str] = []
    with street.connect() as agents:
        done = deploy.deploy(street.plan, agents, said.append)
        assert done.nodes == ("a", "a.1", "b") and said == ["prepare on a, b", "commit on a, b"]
        assert not deploy.deploy(street.plan, agents).changed
        one, victim = street.runtime_of("a"), street.runtime_of("a.1")
        feeding = threading.Thread(target=feed)
        feeding.start()
        try:
            flows()
            os.kill(victim.pid, signal.SIGKILL)
            flows()
            wait_for(lambda: agents.status()["a"].runtime_alive)
            flows()
        finally:
            over.set()
            feeding.join()
        assert one.is_running() and street.runtime_of("a").pid == one.pid
        assert street.runtime_of("a.1").pid != victim.pid
        _check_status(street, agents)
        run, traces = street.collect(street.plan, agents)
    assert sorted((each["node"], each["crashed"]) for each in traces) == [
        ("a", False), ("a.1", False), ("a.1", True), ("b", False),
    ]  # fmt: skip
    report = judge(run)
    assert report["conservation"]["admitted"] >= admitted[0]
    assert report["outputs"]["out"]["met"] > 0


def _check_status(street: Street, agents: Agents) -> None:
    status = agents.status()["a"]
    assert [place.node for place in status.places] == ["a", "a.1"] and len({each.boot for each in status.places}) == 2
    assert [agent_pb2.PlanState.Name(plan.state) for plan in status.plans] == ["COMMITTED"]
    app = typer.Typer()
    status_command.register(app)
    said = CliRunner().invoke(app, ["--addresses", str(street.addresses.path), "--json"])
    nodes = json.loads(said.stdout)["nodes"]
    assert set(nodes) == {"a", "a.1", "b"} and {nodes[name]["plans"][0]["state"] for name in nodes} == {"committed"}


def test_what_one_core_refuses_is_prepared_on_none(street: Street) -> None:
    values = street.make_plan(run="filter").to_json()
    values["nodes"]["a.1"]["operators"][-1]["run"] = "my.unknown"
    bad = hashed(values)
    with street.connect() as agents:
        with pytest.raises(deploy.DeployError) as caught:
            deploy.deploy(bad, agents)
        assert set(caught.value.reasons) == {"a"} and "my.unknown" in caught.value.reasons["a"].text
        assert [list(status.plans) for status in agents.status().values()] == [[], []]
        left = [path.name for path in (street.root / "state").glob("*/plans/*") if path.suffix == ".local"]
        assert left == [], "no plan file stays"
        street.plan = street.make_plan()
        deploy.deploy(street.plan, agents)
        assert street.send(20) == 20
        smaller = street.make_plan("a.0", cores=1)  # the second core has nothing to do from here on
        assert set(smaller.nodes) == {"a", "b"}
        with street.connect(smaller) as fewer:
            deploy.deploy(smaller, fewer)
            assert street.send(30) == 30
            places = agents.status()["a"].places
            assert [each.runtime_alive for each in places] == [True, True]
            wait_for(lambda: [len(each.plans) for each in agents.status()["a"].places] == [1, 0])
        run, traces = street.collect(smaller, agents)
    assert {each["node"] for each in traces} == {"a", "a.1", "b"}, "the plan before ran on the second core"
    report = judge(run)
    assert report["conservation"]["admitted"] == report["outputs"]["out"]["met"] == 50
