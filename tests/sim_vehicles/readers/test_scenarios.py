import json
from pathlib import Path
from typing import Any

import pytest

from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.readers.table import COLUMNS
from tests.sentences import Wording

SAID = Wording("readers", "scenes")


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    path = tmp_path / "traffic.csv"
    rows = [
        f"{t / 10},{name},car,4,2,{x + t},{x},0,10" for name, x in (("p", 0), ("q", 5), ("r", 50)) for t in range(30)
    ]
    path.write_text("\n".join([",".join(COLUMNS), *rows]))
    return path


def test_unknown_name_suggests_the_near_one() -> None:
    with SAID.refuses("unknown_scenario crossing_5"):
        load_scenario("crossing_5")
    with SAID.refuses("unknown_scenario zzz"):
        load_scenario("zzz")


def test_missing_file() -> None:
    with SAID.refuses("motion.csv no_file"):
        load_scenario("nowhere/motion.csv")


def test_a_recording_without_scene_needs_an_ego(traffic: Path) -> None:
    with SAID.refuses("traffic.csv no_scene_file --ego"):
        load_scenario(str(traffic))
    with SAID.refuses("traffic.csv unknown_vehicle z"):
        load_scenario(str(traffic), ego="z")
    scene = load_scenario(str(traffic), ego="p").scene
    assert (scene.ego, scene.stations, scene.start_s) == ("p", ("q", "r"), 0.0)


def test_a_scene_without_ego_is_refused(traffic: Path) -> None:
    beside = traffic.with_suffix(".json")
    beside.write_text(json.dumps({"stations": ["q"]}))
    with SAID.refuses("traffic.json no_ego ego"):
        load_scenario(str(traffic))
    beside.write_text(json.dumps({"ego": "p"}))
    with SAID.refuses("traffic.json not_complete"):
        load_scenario(str(traffic))
    beside.write_text('{\n "ego": p}')
    with SAID.refuses("traffic.json:2 not_json"):
        load_scenario(str(traffic))
    beside.write_text(json.dumps({"ego": "p", "stations": ["x"]}))
    with SAID.refuses("traffic.csv unknown_vehicle x"):
        load_scenario(str(traffic))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"start_s": 1e300}, "start_s is 1e\\+300; it must be from -4e\\+09 to 4e\\+09"),
        ({"start_s": "4 s"}, "could not convert string to float: '4 s'"),
        ({"sensing": {"range_m": float("nan")}}, "range_m is nan; it must be from 0 to 100000"),
        ({"origin": {"latitude_deg": 91}}, "latitude_deg is 91; it must be from -89 to 89"),
        ({"crossing": ["q"]}, "crossing must be the id of a vehicle"),
        ({"stations": "q"}, "stations must be a list of ids"),
        ({"roads": [{"name": "north"}]}, "KeyError 'line'"),
        ({"roads": [{"line": [[0, 0]]}]}, "a road's line must have at least 2 points"),
        ({"roads": {"north": []}}, "TypeError"),
        (
            {"occluders": [{"polygon": [[0, float("nan")], [1, 1], [2, 0]]}]},
            "an occluder's polygon must have at least 3",
        ),
    ],
)
def test_a_scene_that_cannot_be(traffic: Path, what: dict[str, Any], said: str) -> None:
    traffic.with_suffix(".json").write_text(json.dumps({"ego": "p", "stations": ["q"], **what}))
    with SAID.refuses("traffic.json not_complete"):
        load_scenario(str(traffic))


def test_another_ego_is_no_station_any_more() -> None:
    scene = load_scenario("crossing_50", ego="B").scene
    assert (scene.ego, scene.stations) == ("B", ("D", "E"))
