"""Maps that queries name: installed ones, and files in the folder of the agent's environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from protos.vehicle_pb2 import Encounter, Motion
from sim_vehicles.maps.map_file import write_map_file
from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.operators.chain import Chain, OnRoads
from sim_vehicles.operators.models.lanes import lanes
from sim_vehicles.operators.models.named_maps import FOLDER, network
from sim_vehicles.operators.place import Lane
from tests.sim_vehicles.maps.crossing_files import COMMONROAD, SUMO


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    write_map_file(tmp_path / "town.json", read_map(COMMONROAD))
    return tmp_path


def refusal(name: str) -> str:
    with pytest.raises(ValueError) as raised:
        network(name)
    return str(raised.value)


def test_a_file_of_the_folder_is_a_map(folder: Path) -> None:
    assert network("town").lanes == read_map(COMMONROAD).lanes
    assert set(network("town").lanes) == set(read_map(COMMONROAD).lanes)


def test_an_installed_scene_comes_first(folder: Path) -> None:
    write_map_file(folder / "crossing_50.json", read_map(COMMONROAD))
    assert set(network("crossing_50").lanes) == {path.name for path in lanes("crossing_50")}


def test_a_file_written_anew_is_read_anew(folder: Path) -> None:
    assert "far_0" not in network("town").lanes
    write_map_file(folder / "town.json", read_map(SUMO))
    assert "far_0" in network("town").lanes


@pytest.mark.parametrize("name", ["../town", "town.json", "/etc/passwd", "a/b", "", "village"])
def test_what_is_no_name_of_a_map_says_what_to_do(name: str, folder: Path) -> None:
    text = refusal(name)
    assert ("sim-vehicles map FILE -o village.json" in text and str(folder) in text) or "without a folder" in text


def test_without_a_folder_the_error_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    assert f"no {FOLDER}" in refusal("town") and "crossing_50" in refusal("town")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ('{"shimekiri_map": 2, "lanes": []}', "of version 2, this reads version 1"),
        ('{"shimekiri_map": 1, "lanes": []}', "no lane"),
        ('{"shimekiri_map": 1, "lanes": [{"name": "a"}]}', "lanes[0] has no line"),
        ('{"shimekiri_map": 1, "lanes": 5}', "lanes is 5"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_file_is_refused_when_the_operator_is_made(text: str, said: str, folder: Path) -> None:
    (folder / "broken.json").write_text(text)
    with pytest.raises(OperatorError) as raised:
        Registry().make("vehicle.lane", json.dumps({"map": "broken"}), ["O8"])
    assert said in str(raised.value) and "broken.json" in str(raised.value)


@pytest.mark.parametrize(
    ("following", "line", "said"),
    [
        (["b"], [[0, 0], [1, 0]], "leads into b"),
        ([], [[0, 0], [0, 0]], "equal points"),
        ([], [[0, 0]], "two points"),
        ([], [[0, 0], [10**400, 0]], "over 6e+06 m"),
        ([], [[0, 0], [1, 0, 0]], "not a list of 2"),
    ],
)
def test_a_lane_that_cannot_be_is_refused(following: list[str], line: list[list[int]], said: str, folder: Path) -> None:
    lane = {"name": "a", "line": line, "following": following, "width_m": None}
    (folder / "broken.json").write_text(json.dumps({"shimekiri_map": 1, "lanes": [lane]}))
    assert said in refusal("broken")


def test_an_operator_of_a_query_finds_the_lane(folder: Path) -> None:
    bound = Registry().make("vehicle.lane", json.dumps({"map": "town"}), ["O8"])
    motion = Motion(x_m=1.6, y_m=-20.0, heading_rad=1.57, speed_mps=10.0)
    assert bound.call(Encounter(measured=motion, object=motion)).lane.startswith("1")


def test_a_chain_hands_a_network_to_the_operators_that_use_one() -> None:
    query = {
        "sources": {"s": {}},
        "operators": {"O": {"run": "vehicle.lane", "in": "s", "with": {"map": ""}}},
        "outputs": {"o": {"from": "O"}},
    }
    assert isinstance(Lane(), OnRoads)
    chain = Chain(query, network=read_map(COMMONROAD))
    motion = Motion(x_m=1.6, y_m=-20.0, heading_rad=1.57, speed_mps=10.0)
    ((_, result),) = chain.admit("s", Encounter(measured=motion, object=motion), 0, 0)
    assert result.lane.startswith("1")
