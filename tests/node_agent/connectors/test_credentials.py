"""A node's own file of credentials."""

import json
from pathlib import Path

import pytest

from node_agent.connectors import credentials
from node_agent.connectors.connector_ports import Credentials, NotConnectableError

BROKER = "mqtts://broker:8883"


def write(folder: Path, values: object, mode: int = 0o600) -> None:
    path = folder / "connectors.json"
    path.write_text(json.dumps(values))
    path.chmod(mode)


def test_they_are_those_of_the_address(tmp_path: Path) -> None:
    assert credentials.of(tmp_path, BROKER) == Credentials()
    write(tmp_path, {BROKER: {"username": "robot", "password": "word", "ca": "ca.pem"}})
    found = credentials.of(tmp_path, BROKER)
    assert found == Credentials("robot", "word", tmp_path / "ca.pem")
    assert "word" not in repr(found)
    assert credentials.of(tmp_path, "mqtt://broker:1883") == Credentials()


@pytest.mark.parametrize(
    ("values", "mode", "code"),
    [
        ({}, 0o644, "open_to_all"),
        ([], 0o600, "wrong_shape"),
        ({BROKER: "word"}, 0o600, "wrong_shape"),
        ({BROKER: {"user": "robot"}}, 0o600, "wrong_shape"),
    ],
)
def test_a_file_that_cannot_be_used_is_said(tmp_path: Path, values: object, mode: int, code: str) -> None:
    write(tmp_path, values, mode)
    with pytest.raises(NotConnectableError) as raised:
        credentials.of(tmp_path, BROKER)
    assert raised.value.code == code


def test_a_file_that_is_no_json_is_said(tmp_path: Path) -> None:
    (tmp_path / "connectors.json").write_text("{")
    (tmp_path / "connectors.json").chmod(0o600)
    with pytest.raises(NotConnectableError) as raised:
        credentials.of(tmp_path, BROKER)
    assert raised.value.code == "unreadable"
