"""`from:` and `to:` of zenoh, bags and MCAP files: what a query may say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.spec import query_reader
from protos import connectors
from protos.plan.sources import Connector

QUERY = """shimekiri: 1
query: robot
sources:
  imu: {at: a, type: json, arrival: {rate: 20}, from: {PLACE}}
operators:
  o: {run: pass, in: imu, cost: 1 ms}
outputs:
  out: {from: o, at: a, deadline: 200 ms, to: {mcap: out.mcap}}
"""


def placed(kind: str, url: str, **given: str) -> Connector:
    return Connector(kind=kind, url=url, **given)  # type: ignore[arg-type]


def load(folder: Path, place: str) -> Connector | None:
    path = folder / "query.yaml"
    path.write_text(QUERY.replace("PLACE", place))
    return query_reader.load(path).sources[0].connector


@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("zenoh: tcp/127.0.0.1:7447, topic: robot/**", placed("zenoh", "tcp/127.0.0.1:7447", topic="robot/**")),
        (
            "rosbag: run1, topic: /imu, encoding: cdr, schema: sensor_msgs/msg/Imu",
            placed("rosbag", "run1", topic="/imu", encoding="cdr", schema="sensor_msgs/msg/Imu"),
        ),
        ("mcap: run.mcap, stamp: transport", placed("mcap", "run.mcap", stamp="transport")),
        ("mcap: run.mcap, schema: robot.Wheel", placed("mcap", "run.mcap", schema="robot.Wheel")),
    ],
)
def test_places_are_read(tmp_path: Path, place: str, read: Connector) -> None:
    assert load(tmp_path, place) == read


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("zenoh: tcp/127.0.0.1:7447", "connector_place"),
        ("zenoh: 127.0.0.1, topic: robot/imu", "connector_place"),
        ("zenoh: 'tcp/127.0.0.1:7447#iface=lo', topic: robot/imu", "connector_place"),
        ("zenoh: 'udp/224.0.0.1:7447', topic: robot/imu", "connector_place"),
        ("zenoh: tcp/127.0.0.1:7447, topic: robot/imu, qos: 1", "key_of_other_connector"),
        ("zenoh: tcp/127.0.0.1:7447, topic: robot/imu, schema: x", "cdr_and_schema"),
        ("rosbag: run1, topic: /imu", "cdr_and_schema"),
        ("rosbag: run1, topic: /imu, encoding: cdr", "cdr_and_schema"),
        ("mcap: run.mcap, encoding: cdr", "cdr_and_schema"),
        ("zenoh: tcp/127.0.0.1:0, topic: robot/imu", "connector_place"),
        ("zenoh: tcp/127.0.0.1:65536, topic: robot/imu", "connector_place"),
        ("zenoh: tcp/127.0.0.1:7447, topic: robot//imu", "connector_topic"),
        ("zenoh: tcp/127.0.0.1:7447, topic: robot/#", "connector_topic"),
        ("zenoh: tcp/127.0.0.1:7447, topic: robot*", "connector_topic"),
        ("mcap: run.mcap, encoding: cdr, schema: sensor_msgs/msg/Imo", "unknown_ros_type"),
        ("rosbag: run1, topic: /imu, encoding: cdr, schema: nonsense", "unknown_ros_type"),
    ],
)
def test_places_that_cannot_be_are_refused_at_their_line(tmp_path: Path, place: str, code: str) -> None:
    with pytest.raises(BadInputError) as refused:
        load(tmp_path, place)
    (problem,) = refused.value.problems
    assert (problem.mistake.code, problem.line) == (code, 4)


@pytest.mark.parametrize("key", ["**", "robot/*/imu", "robot/imu$*", "/robot", "robot/imu/"])
def test_results_go_to_one_key_of_zenoh(tmp_path: Path, key: str) -> None:
    """A source reads some of these."""
    path = tmp_path / "query.yaml"
    goes = f"zenoh: tcp/127.0.0.1:7447, topic: '{key}'"
    path.write_text(QUERY.replace("PLACE", "mcap: in.mcap").replace("mcap: out.mcap", goes))
    with pytest.raises(BadInputError) as refused:
        query_reader.load(path)
    (problem,) = refused.value.problems
    assert (problem.mistake.code, problem.line) == ("connector_topic", 8)


def test_an_agent_takes_no_other_place_of_a_router_either() -> None:
    assert connectors.wrong("zenoh", "tls/[::1]:7447", reads=True) == ""
    assert connectors.wrong("zenoh", "tcp/host:7447?rel=0", reads=True)
    assert connectors.wrong("zenoh", "tcp/host:0", reads=True)
