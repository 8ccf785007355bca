"""`sim-vehicles map`, and `sim-vehicles traffic` on a map."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from sim_vehicles.cli.app import app
from sim_vehicles.maps.map_file import read_map_file
from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.readers.table import write_motion
from sim_vehicles.world.motion import State, Track
from tests.sim_vehicles.maps.crossing_files import COMMONROAD, LANELET2, OPENDRIVE, SUMO


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("path", [COMMONROAD, LANELET2, SUMO], ids=lambda path: path.name)
def test_a_map_is_written_and_can_be_read_and_written_again(path: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    done = call("map", path, "-o", one, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["lanes"] == len(read_map(path).lanes)
    assert read_map_file(one).lanes == read_map(path).lanes
    assert call("map", one, "-o", other).exit_code == 0
    assert one.read_bytes() == other.read_bytes()


def test_a_rectangle_cuts_the_map(tmp_path: Path) -> None:
    out = tmp_path / "cut.json"
    assert call("map", COMMONROAD, "-o", out, "--within", "0,-20,3,-12").exit_code == 0
    assert {name: lane.following for name, lane in read_map_file(out).lanes.items()} == {"1": ()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "a-b.json"), "letters, digits and _"),
        (("-o", "town.xml"), "letters, digits and _"),
        (("-o", "none/town.json"), "cannot be written"),
        (("-o", "town.json", "--within", "1,2,3"), "not 4 numbers"),
        (("-o", "town.json", "--within", "0,0,0,nan"), "not 4 numbers"),
        (("-o", "town.json", "--within", "900,900,910,910"), "no lane reaches into"),
        (("-o", "town.json", "--origin", "95,0"), "--origin"),
    ],
)
def test_bad_input_ends_with_2_and_a_reason(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("map", COMMONROAD, *words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_opendrive_without_sumo_says_what_to_install(tmp_path: Path) -> None:
    done = call("map", OPENDRIVE, "-o", tmp_path / "town.json")
    if find_spec("sumo") is None:
        assert done.exit_code == 1 and "pip install 'shimekiri[record]'" in done.stderr
    else:
        assert done.exit_code == 0, done.output


def test_help_shows_examples() -> None:
    done = call("map", "--help")
    assert done.exit_code == 0 and "sim-vehicles map DR_USA_Roundabout_FT.osm" in done.stdout


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Over the crossing of the maps, from the south and from the east, 4 s, together in its middle after 3 s."""
    path = tmp_path / "made.csv.gz"
    times = [k / 10 for k in range(41)]
    south = Track("a", "car", 4.5, 1.8, [State(t, 1.75, 10 * (t - 3), 1.5708, 10.0) for t in times])
    east = Track("b", "car", 4.5, 1.8, [State(t, -10 * (t - 3), 1.75, -3.1415, 10.0) for t in times])
    write_motion(path, ((f"{state.t_s:.1f}", one, state) for one in (south, east) for state in one.states))
    return path


def test_traffic_is_run_on_a_map(recording: Path) -> None:
    found = [
        json.loads(call("traffic", recording, "--json", *words).stdout)
        for words in ((), ("--map", COMMONROAD), ("--no-map",))
    ]
    assert [each["lanes"] for each in found] == [{str(recording): count} for count in (0, 5, 0)]
    for each in found:
        assert each["all"]["true"] == 2, "both are warned"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--map", COMMONROAD, "--no-map"), "do not go together"),
        (("--map", "nowhere.osm"), "there is no such file"),
    ],
)
def test_a_map_that_cannot_be_used_is_refused(recording: Path, words: tuple[object, ...], said: str) -> None:
    done = call("traffic", recording, *words)
    assert done.exit_code == 2 and said in " ".join(done.output.split())
