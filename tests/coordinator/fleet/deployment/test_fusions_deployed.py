"""Fusions from query.yaml to results: planned, deployed on two agents, fed, judged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
from node_agent.sdk import Admitted, Sink, Source
from protos import agent_pb2
from tests.node_agent.live import until

QUERY = """
shimekiri: 1
query: robot
sources:
  camera: {at: a, type: json, max_age: 1 s, arrival: {burst: 100, period: 1 h}}
  lidar: {at: b, type: json, max_age: 1 s, arrival: {burst: 100, period: 1 h}}
  gps: {at: b, type: json, max_age: 1 s, arrival: {burst: 100, period: 1 h}}
operators:
  latest: {run: join, in: [camera, lidar], cost: 50 us, nodes: [b], sync: all}
  near: {run: join, in: [camera, lidar], cost: 50 us, nodes: [b], sync: {within: 1 h, keep: 8}}
  there: {run: join, in: [camera, gps], cost: 50 us, nodes: [b], sync: {on: all, timeout: 20 ms}}
outputs:
  pairs: {from: latest, at: b, deadline: 5 s}
  alike: {from: near, at: a, deadline: 5 s}
  alone: {from: there, at: a, deadline: 5 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
"""


class Robot:
    """Agents a and b, and a plan for them that runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "query.yaml").write_text(QUERY)
        (root / "cluster.yaml").write_text(CLUSTER)
        self.plan = planner.make_plan(root / "query.yaml", root / "cluster.yaml", Choices(model="paper"))
        plan_file.write(self.plan, root / "plan.json")
        self.agents = local_agents.start(local_cluster.wanted(root / "cluster.yaml", root / "state", True, []))
        self.addresses = Addresses(
            root / "addresses.json", {place.name: place for agent in self.agents for place in agent.places}
        )
        self.addresses.write()

    def at(self, node: str) -> str:
        return self.addresses.nodes[node].data

    def replaced(self) -> int:
        """Tuples that fusions on b have replaced so far."""
        with Agents(self.addresses.of_plan(self.plan)) as agents:
            status = agents.all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), 30)["b"]
        return sum(each.value for each in status.counters if each.name == "shed.replaced")

    def stop(self) -> Path:
        """Let the plan drain; the run's folder."""
        with Agents(self.addresses.of_plan(self.plan)) as agents:
            assert deploy.stop({bytes.fromhex(self.plan.hash)}, agents, 60) == []
            run = collect.new_run(self.root / "runs", self.plan, self.root / "plan.json", self.addresses.path)
            assert collect.collect(run, self.plan, agents).problems == []
        return run


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Robot]:
    robot = Robot(tmp_path)
    yield robot
    local_agents.stop(robot.agents)


def results(sink: Sink, many: int) -> list[dict[str, Any]]:
    return [sink.get(60).value for _ in range(many)]


def test_inputs_of_two_nodes_are_fused_by_any_rule_and_each_tuple_ends_once(robot: Robot) -> None:
    with Agents(robot.addresses.of_plan(robot.plan)) as agents:
        deploy.deploy(robot.plan, agents)
    with (
        Sink(robot.at("b"), "pairs") as pairs,
        Sink(robot.at("a"), "alike") as alike,
        Sink(robot.at("a"), "alone") as alone,
        Source(robot.at("a"), "camera", timeout=30) as camera,
        Source(robot.at("b"), "lidar", timeout=30) as lidar,
    ):
        assert isinstance(camera.send({"n": 1}), Admitted)
        assert results(alone, 1) == [{"camera": {"n": 1}, "gps": None}]  # a partner that never comes
        assert isinstance(lidar.send({"m": 1}), Admitted)
        assert results(pairs, 1) == results(alike, 1) == [{"camera": {"n": 1}, "lidar": {"m": 1}}]
        assert isinstance(camera.send({"n": 2}), Admitted)
        assert results(alone, 1) == [{"camera": {"n": 2}, "gps": None}]
        assert isinstance(camera.send({"n": 3}), Admitted)
        until(lambda: robot.replaced() == 1, 60)
        assert isinstance(lidar.send({"m": 2}), Admitted)
        assert results(pairs, 1) == results(alike, 1) == [{"camera": {"n": 3}, "lidar": {"m": 2}}]
    run = robot.stop()
    found = verdict(read_run(run)).document()
    assert found["completeness"]["complete"], [one["why"] for one in found["completeness"]["incarnations"]]
    assert found["conservation"]["problems"] == []
    assert found["conservation"]["admitted"] == found["conservation"]["accounted"] == 5
    assert [found["outputs"][name]["delivered"] for name in ("pairs", "alike", "alone")] == [2, 2, 3]
    assert all(not found["outputs"][name]["miss_ratio"] for name in ("pairs", "alike", "alone"))
