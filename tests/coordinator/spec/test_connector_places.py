"""`from:` of sources and `to:` of outputs: from the query file to the local plans and back, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.plan import running_plan
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.spec import input_files, query_reader
from node_agent.wire.plan_error import PlanError
from node_agent.wire.plan_message import core_plan
from protos import connectors, plan_document
from protos.plan.sources import Connector
from protos.plan_document import Plan

CLUSTER = """shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
security: insecure-loopback
"""
QUERY = """shimekiri: 1
query: robot
sources:
  lidar: {at: a, type: json, arrival: {rate: 20}, max_age: 50 ms, from: {
    mqtt: "mqtt://broker/robot/+/lidar", stamp: header.stamp, qos: 1}}
  sonar: {at: a, type: json, arrival: {rate: 20}, max_age: 50 ms}
operators:
  both: {run: union, in: [lidar, sonar], cost: 1 ms}
outputs:
  wheels: {from: both, at: a, deadline: 200 ms, to: {mqtt: "mqtts://broker:8884/robot/wheels", encoding: json}}
  log: {from: both, at: a, deadline: 200 ms}
"""
LIDAR = Connector(kind="mqtt", url="mqtt://broker/robot/+/lidar", stamp="header.stamp", qos=1)
WHEELS = Connector(kind="mqtt", url="mqtts://broker:8884/robot/wheels", encoding="json")


def written(folder: Path, old: str = "", new: str = "") -> tuple[Path, Path]:
    assert QUERY.count(old) == 1 or not old, old
    query, cluster = folder / "query.yaml", folder / "cluster.yaml"
    query.write_text(QUERY.replace(old, new) if old else QUERY)
    cluster.write_text(CLUSTER)
    return query, cluster


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return planner.make_plan(*written(tmp_path), Choices())


def test_a_plan_has_the_places_and_so_have_its_nodes(plan: Plan) -> None:
    graph, local = plan.graph, plan.nodes["a"]
    assert (graph.sources["lidar"].connector, graph.sources["sonar"].connector) == (LIDAR, None)
    assert (graph.outputs["wheels"].connector, graph.outputs["log"].connector) == (WHEELS, None)
    assert {one.name: one.connector.url for one in local.sources if one.HasField("connector")} == {"lidar": LIDAR.url}
    assert {one.name: one.connector.url for one in local.outputs if one.HasField("connector")} == {"wheels": WHEELS.url}
    assert plan_document.parse(plan.text().encode()) == plan
    assert audit(plan) == []
    core_plan(local, 1, 1)


def test_a_query_comes_back_from_its_plan(plan: Plan, tmp_path: Path) -> None:
    query, _, _ = input_files.read_files([tmp_path / "query.yaml"], tmp_path / "cluster.yaml")
    back = running_plan.read(plan).query
    assert [one.connector for one in back.sources] == [one.connector for one in query.sources] == [LIDAR, None]
    assert [one.connector for one in back.outputs] == [one.connector for one in query.outputs] == [WHEELS, None]


def test_the_audit_finds_a_node_that_reads_or_writes_elsewhere(plan: Plan) -> None:
    spoilt = plan_document.parse(plan.text().encode())
    spoilt.nodes["a"].sources[0].connector.url = "mqtt://elsewhere/robot/+/lidar"
    assert any("source lidar is fed from another place" in line for line in audit(spoilt.sealed()))
    spoilt = plan_document.parse(plan.text().encode())
    spoilt.nodes["a"].outputs[0].ClearField("connector")
    assert any("its outputs differ" in line for line in audit(spoilt.sealed()))


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("kind", "kafka", "unknown_connector"),
        ("url", "http://broker/robot", "not_connectable"),
        ("url", "mqtt://broker/" + "x" * 2000, "not_connectable"),
        ("stamp", "x" * 2000, "not_connectable"),
        ("qos", 2, "not_connectable"),
        ("url", "mqtt://broker:0/robot", "not_connectable"),
    ],
)
def test_an_agent_believes_no_place_that_comes_over_the_wire(plan: Plan, key: str, value: object, code: str) -> None:
    local = plan.nodes["a"]
    setattr(local.sources[0].connector, key, value)
    with pytest.raises(PlanError) as refused:
        core_plan(local, 1, 1)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('mqtt: "mqtt://broker/robot/+/lidar", ', "", "connector_kind"),
        ("stamp: header.stamp", "mcap: file.mcap", "connector_kind"),
        ("mqtt://broker/robot/+/lidar", "mqtt://me:sesame@broker/robot", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker/robot/li+dar", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker/#/lidar", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker:port/lidar", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker:0/lidar", "connector_place"),
        ("mqtt://broker/robot/+/lidar", "mqtt://broker:65536/lidar", "connector_place"),
        ("robot/wheels", "robot/#", "connector_place"),
        ("stamp: header.stamp", "topic: lidar", "key_of_other_connector"),
        ('mqtt: "mqtt://broker/robot/+/lidar", ', "mcap: robot.mcap, ", "key_of_other_connector"),
        ("encoding: json", "encoding: cdr", "cdr_and_schema"),
        ("type: json, arrival: {rate: 20}, max_age: 50 ms, from", "every: 1 s, from", "from_of_own"),
    ],
)
def test_a_place_that_cannot_be_is_refused_with_its_line(tmp_path: Path, old: str, new: str, code: str) -> None:
    with pytest.raises(BadInputError) as refused:
        query_reader.load(written(tmp_path, old, new)[0])
    (problem,) = refused.value.problems
    assert (problem.mistake.code, problem.line) == (code, 10 if old in QUERY.splitlines()[9] else 4)
    assert "sesame" not in str(problem), "no secret is repeated"


def test_an_agent_takes_no_key_that_zenoh_has_not(plan: Plan) -> None:
    local = plan.nodes["a"]
    given = local.outputs[0].connector
    given.kind, given.url, given.topic = "zenoh", "tcp/127.0.0.1:7447", "robot/*"
    with pytest.raises(PlanError) as refused:
        core_plan(local, 1, 1)
    assert refused.value.code == "not_connectable"


def test_two_queries_share_a_source_only_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    query, cluster = written(tmp_path)
    other, _ = written(tmp_path / "other", "query: robot", "query: other")
    other.write_text(
        other.read_text().replace("broker/", "elsewhere/").replace("wheels:", "feet:").replace("log:", "d:")
    )
    with pytest.raises(BadInputError) as refused:
        input_files.read_files([query, other], cluster)
    assert "source_declared_differently" in {each.mistake.code for each in refused.value.problems}


def test_a_broker_is_read_from_its_address() -> None:
    assert connectors.broker("mqtt://[::1]/a/b?c") == (False, "::1", 1883, "a/b?c")
    assert connectors.broker("mqtts://broker/a").address == "mqtts://broker:8883"
    assert connectors.broker("mqtt://[::1]:1/a").address == "mqtt://[::1]:1"
