"""A replay as MCAP, read back by the mcap library."""

import io
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

from sim_vehicles.closed_loop.recorded import Record
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.export.mcap_file import write_mcap
from sim_vehicles.export.mcap_schemas import TOPICS
from sim_vehicles.replay.replay_document import ReplaySummary, from_document
from tests.sentences import Wording
from tests.sim_vehicles.replayed import SCENE, virtual

SAID = Wording("replay", "mcap")


def vehicle(x: list[float], y: list[float], speed: float, from_s: float = 4.0) -> dict[str, Any]:
    size = {"type": "car", "length_m": 4.5, "width_m": 1.8, "from_s": from_s}
    return {**size, "x_m": x, "y_m": y, "heading_rad": [0.0] * len(x), "speed_mps": [speed] * len(x)}


def replay() -> dict[str, Any]:
    """A drives 0.5 m per step of 0.05 s; E stands; X comes into the recording a step later."""
    verdict = {
        "outcome": "CRASH", "valid": True, "why_not_valid": None, "crossing": "X",
        "gap_m": None, "impact_kmh": 16.2, "impact_s": 4.15,
        "speed_kmh": 36.0, "burst_phase": 1, "burst_phases": 2, "crashes": 1, "laps": 1, "note": None,
        "burst_phase_ns": 250_000_000,
        "first_perceivable": {"by": "E", "at_s": 4.05, "left_m": 9.0}, "knew": {"at_s": 4.1, "left_m": None},
        "brake": {"by": asdict(AUTO), "commanded_s": 4.1, "begins_s": 4.3, "stopped_s": None},
        "stood": {"left_m": -0.2, "in_way": True},
        "warnings": {"about_crossing": 1, "false": 1, "others": 0, "missed": False},
        "closed_form": {"needed_m": 12.2, "left_m": 9.0, "impact_kmh": 15.0},
        "deciding": {"source": 3, "epoch": 1, "seq": 7, "ordinal": 0, "station": "E", "object": "X", "measured_s": 4.0,
                     "delivered_s": 4.1, "latency_ns": [99_000_000, 101_000_000],
                     "split": [{"stage": "queue", "node": None, "operators": ["O2"], "ns": 5}]},
    }  # fmt: skip
    warnings = [
        {"lap": 1, "at_s": 4.1, "about": "X", "station": "E", "level": 2, "latency_ns": [99_000_000, 101_000_000],
         "seq": 7},
        {"lap": 1, "at_s": 4.15, "about": "C", "station": "E", "level": 1, "latency_ns": [1, 2], "seq": 8},
        {"lap": 0, "at_s": 4.0, "about": "X", "station": "E", "level": 1, "latency_ns": [1, 2], "seq": 1},
    ]  # fmt: skip
    scene = {
        "name": "crossing", "ego": "A", "crossing": "X", "stations": ["E"], "range_m": 150.0,
        "occluders": [{"name": "block", "polygon": [[4, -4], [9, -4], [9, -9]]}],
        "roads": [{"name": "south", "lanes_each_way": 1, "lane_width_m": 3.2, "line": [[0, 0], [0, -400]]}],
        "start_s": 4.0, "end_s": 4.2, "step_s": 0.05,
        "vehicles": {
            "A": vehicle([0.0, 0.5, 1.0, 1.5, 2.0], [0.0] * 5, 10.0),
            "E": vehicle([-9.0] * 5, [3.0] * 5, 0.0),
            "X": vehicle([20.0, 19.5, 19.0, 18.5], [1.0] * 4, 10.0, 4.05),
        },
        "messages": [{"at_s": 4.1, "station": "E", "object": "X", "measured_s": 4.0, "sent_s": 4.1},
                     {"at_s": 4.05, "sent_s": 4.05, "station": "E", "object": "A", "measured_s": 4.0}],
        "ego_recorded": None, "perceives": [{"who": "E", "whom": "X", "from_s": 4.1, "until_s": 4.2}],
    }  # fmt: skip
    laps = [{**verdict, "outcome": "AVOIDED", "burst_phase": 0, "burst_phase_ns": 0}, verdict]
    told = {"scenario": "crossing", "inputs_hash": "ab12", "seed": 1}
    top = {**verdict, "crashes": 1, "laps": 2}
    return {**told, "verdict": top, "laps": laps, "warnings": warnings, "scene": scene}


def summary(told: dict[str, Any]) -> ReplaySummary:
    """With everything else that a replay.json has."""
    return from_document({**virtual(Record(None, (), (), SCENE)).document(), **told})


def read(data: bytes) -> list[tuple[str, int, dict[str, Any]]]:
    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    found = reader.iter_messages(log_time_order=False)
    return [(channel.topic, message.log_time, json.loads(message.data)) for _, channel, message in found]


def check(value: Any, schema: dict[str, Any], where: str) -> None:
    """What these schemas use of JSON Schema, no more; a key that no schema names is a mistake too."""
    if "oneOf" in schema:
        assert value in [one["const"] for one in schema["oneOf"]], where
        return
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    assert isinstance(value, kinds[schema["type"]]), (where, value)  # type: ignore[arg-type]
    if schema["type"] in ("integer", "number"):
        assert not isinstance(value, bool), where
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), where
    if schema["type"] == "object":
        assert set(schema["required"]) <= set(value) <= set(schema["properties"]), (where, set(value))
        for key, inner in value.items():
            check(inner, schema["properties"][key], f"{where}.{key}")
    if schema["type"] == "array":
        for inner in value:
            check(inner, schema["items"], f"{where}[]")


@pytest.fixture
def written(tmp_path: Path) -> bytes:
    write_mcap(tmp_path / "out" / "run.mcap", summary(replay()))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.mcap"], "nothing half-written stays"
    return (tmp_path / "out" / "run.mcap").read_bytes()


def test_topics_counts_and_times(written: bytes) -> None:
    found = read(written)
    assert Counter(topic for topic, _, _ in found) == {
        **{"/scene": 1, "/vehicles": 5, "/tf": 5, "/ego": 5, "/v2v": 2, "/warnings": 2, "/verdict": 1, "/log": 5},
    }
    times = [at_ns for _, at_ns, _ in found]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (4_000_000_000, 4_200_000_000)


def test_schemas_are_json_schemas_and_every_message_keeps_to_its_own(written: bytes) -> None:
    summary = make_reader(io.BytesIO(written)).get_summary()
    assert summary is not None
    by_topic = {channel.topic: channel for channel in summary.channels.values()}
    assert set(by_topic) == set(TOPICS)
    schemas = {}
    for topic, channel in by_topic.items():
        schema = summary.schemas[channel.schema_id]
        assert (channel.message_encoding, schema.encoding) == ("json", "jsonschema")
        schemas[topic] = json.loads(schema.data)
        assert schemas[topic]["type"] == "object"
        assert schemas[topic]["title"] == schema.name
    assert schemas["/scene"]["title"] == "foxglove.SceneUpdate", "Foxglove goes by the name"
    for topic, _, value in read(written):
        check(value, schemas[topic], topic)


def test_every_schema_is_valid_by_the_reference_library(written: bytes) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="a second opinion, where jsonschema happens to be installed")
    for topic, schema in TOPICS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for other, _, value in read(written):
            if other == topic:
                jsonschema.validate(value, schema)


def test_the_ego_has_its_way_left(written: bytes) -> None:
    egos = [value for topic, _, value in read(written) if topic == "/ego"]
    assert [value["left_m"] for value in egos] == [9.5, 9.0, 8.5, 8.0, 7.5], "9 m at 4.05 s, by the judge"
    assert [value["way_m"] for value in egos] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert egos[0]["speed_kmh"] == 36.0


def test_boxes_walls_and_lines_of_sight(written: bytes) -> None:
    found = read(written)
    (scene,) = [value for topic, _, value in found if topic == "/scene"]
    assert [entity["id"] for entity in scene["entities"]] == ["road south", "building block"]
    assert len(scene["entities"][1]["triangles"][0]["points"]) == 3 * 2 * 3, "two triangles for each of three walls"
    moments = {at_ns: value["entities"] for topic, at_ns, value in found if topic == "/vehicles"}
    names = {at_ns: [entity["id"] for entity in entities] for at_ns, entities in moments.items()}
    assert names[4_000_000_000] == ["vehicle A", "vehicle E"], "X is not there yet, and nothing is made up"
    assert names[4_050_000_000] == ["vehicle A", "vehicle E", "vehicle X"]
    assert names[4_100_000_000][-1] == "sight E X"
    (box,) = moments[4_100_000_000][0]["cubes"]
    assert box["pose"]["position"] == {"x": 1.0, "y": 0.0, "z": 0.75}
    assert box["size"] == {"x": 4.5, "y": 1.8, "z": 1.5}
    ends = moments[4_100_000_000][-1]["lines"][0]["points"]
    assert [(end["x"], end["y"]) for end in ends] == [(-9.0, 3.0), (19.5, 1.0)]


def test_warnings_are_those_of_the_lap_that_is_shown(written: bytes) -> None:
    warnings = [value for topic, _, value in read(written) if topic == "/warnings"]
    assert [(one["seq"], one["about_crossing"]) for one in warnings] == [(7, True), (8, False)]
    assert warnings[0]["latency_to_ms"] == 101.0
    sentences = [value["message"] for topic, _, value in read(written) if topic == "/log"]
    assert sentences == [
        "E perceives the crossing vehicle; the ego has 9 m left",
        "warning, level 2: crossing vehicle X, seen by E",
        "brake auto: 7 m/s2 after 0.2 s, built up in 0.3 s",
        "warning, level 1: another vehicle C, seen by E",
        "CRASH at 16.2 km/h",
    ]
    (verdict,) = [value for topic, _, value in read(written) if topic == "/verdict"]
    assert verdict["deciding"]["split"] == [{"stage": "queue", "operators": ["O2"], "ns": 5}], "null is left out"


def test_the_same_replay_gives_the_same_bytes(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "plan.json").write_text("{}")
    for name in ("a.mcap", "b.mcap"):
        write_mcap(tmp_path / name, summary(replay()), tmp_path)
    data = (tmp_path / "a.mcap").read_bytes()
    assert data == (tmp_path / "b.mcap").read_bytes()
    attached = {one.name: one.data for one in make_reader(io.BytesIO(data)).iter_attachments()}
    assert attached["plan.json"] == b"{}"
    assert json.loads(attached["replay.json"]) == json.loads(json.dumps(summary(replay()).document()))
    assert {one.name for one in make_reader(io.BytesIO(written)).iter_attachments()} == {"replay.json"}


def test_a_replay_without_crossing_vehicle_warnings_or_verdict(tmp_path: Path) -> None:
    bare = replay()
    bare.update(verdict=None, laps=[], warnings=[])
    bare["scene"].update(crossing=None, perceives=[], occluders=[], roads=[])
    write_mcap(tmp_path / "bare.mcap", summary(bare))
    found = read((tmp_path / "bare.mcap").read_bytes())
    assert Counter(topic for topic, _, _ in found) == {"/scene": 1, "/vehicles": 5, "/tf": 5, "/ego": 5, "/v2v": 2}
    assert all("left_m" not in value for topic, _, value in found if topic == "/ego")


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    early = replay()
    early["scene"]["start_s"] = -3.0
    with SAID.refuses("run.mcap begins_below_zero"):
        write_mcap(tmp_path / "run.mcap", summary(early))
    assert not list(tmp_path.iterdir())
