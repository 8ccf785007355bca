"""Every format: the networks of small maps as they are on disk, and what holds for each of them."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.maps import map_size
from sim_vehicles.maps.map_file import read_map_file, write_map_file
from sim_vehicles.maps.map_formats import lanelets_of, read_map
from tests.sentences import refused
from tests.sim_vehicles.maps.crossing_files import (
    COMMONROAD,
    LANELET2,
    OPENDRIVE,
    SUMO,
    WITHOUT_SUMO,
    needs_sumo,
    read_text,
)

WORD = re.compile(rb"[-\w.:]+")
WRITES = os.environ.get("SHIMEKIRI_GOLDEN") == "write"
EVERY = [*WITHOUT_SUMO, pytest.param(OPENDRIVE, marks=needs_sumo)]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_a_map_is_read_as_it_was(path: Path, tmp_path: Path) -> None:
    """Rewritten by SHIMEKIRI_GOLDEN=write."""
    golden, now = path.with_name(f"{path.name}.json"), tmp_path / "now.json"
    write_map_file(now, read_map(path))
    if WRITES:
        golden.write_bytes(now.read_bytes())
    assert now.read_text() == golden.read_text()
    assert read_map(golden).lanes == read_map(path).lanes


@pytest.mark.parametrize("path", WITHOUT_SUMO, ids=lambda path: path.name)
def test_a_packed_map_is_the_same(path: Path, tmp_path: Path) -> None:
    assert read_text(tmp_path, gzip.compress(path.read_bytes())).lanes == read_map(path).lanes


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_a_lane_ends_where_those_that_follow_it_begin(path: Path) -> None:
    network = read_map(path)
    pairs = [(lane, network.lanes[name]) for lane in network.lanes.values() for name in lane.following]
    assert pairs
    for lane, following in pairs:
        assert lane.line[-1] == pytest.approx(following.line[0], abs=0.01), (lane.name, following.name)


@pytest.mark.parametrize("path", [COMMONROAD, LANELET2, SUMO], ids=lambda path: path.name)
def test_the_crossing_is_driven_on_the_right_in_every_format(path: Path) -> None:
    """From the south, x is 1.75 and y grows; to the west, y is near 1.75 and x falls."""
    lines = [lane.line for lane in read_map(path).lanes.values()]
    north = [line for line in lines if line[0] == (1.75, -50.0)]
    west = [line for line in lines if line[-1][0] == -50.0 and line[0][0] == -8.0]
    assert len(north) == len(west) == 1
    assert all(x == 1.75 for x, _ in north[0]) and all(y > before for (_, before), (_, y) in pairwise(north[0]))
    assert all(x < before for (before, _), (x, _) in pairwise(west[0]))


def _mutations(data: bytes, draws: random.Random) -> Iterator[bytes]:
    """Files with one to three faults: numbers and names changed into others, or bytes cut out, doubled or changed."""
    words = WORD.findall(data)
    while True:
        changed = bytearray(data)
        for _ in range(draws.randint(1, 3)):
            if draws.random() < 0.7:
                spans = [found.span() for found in WORD.finditer(changed)]
                first, last = draws.choice(spans) if spans else (0, 0)
                texts = [b"", b"nan", b"1e999", b"-1", b"99999999", draws.choice(words), draws.choice(words)]
            else:
                first = draws.randrange(len(changed) + 1)
                last = min(len(changed), first + draws.choice((1, 3, 20, 200)))
                part = bytes(changed[first:last])
                texts = [b"", bytes([draws.randrange(256)]), part + part, part[::-1]]
            changed[first:last] = draws.choice(texts)
        yield bytes(changed)


@pytest.mark.parametrize("name", [path.name for path in WITHOUT_SUMO] + ["crossing.xml.json"])
def test_a_damaged_map_is_read_or_refused(name: str, tmp_path: Path, seed: int) -> None:
    """Nothing but BadInputError, and what is read can be written."""
    data = (COMMONROAD.parent / name).read_bytes()
    refusals = 0
    mutations = _mutations(data, random.Random(f"{seed} {name}"))
    for _ in range(200):
        text = next(mutations)
        try:
            network = read_text(tmp_path, text)
        except BadInputError as bad:
            refusals += 1
            assert bad.problem.mistake.code and bad.problem.file
            continue
        write_map_file(tmp_path / "again.json", network)
        assert read_map_file(tmp_path / "again.json").lanes == network.lanes
    assert 0 < refusals < 200


@pytest.mark.parametrize("path", WITHOUT_SUMO, ids=lambda path: path.name)
def test_another_process_gets_the_same_network(path: Path) -> None:
    network = read_map(path)
    assert pickle.loads(pickle.dumps(network)).lanes == network.lanes


@needs_sumo
def test_damaged_opendrive_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    mutations = _mutations(OPENDRIVE.read_bytes(), random.Random(seed))
    for _ in range(15):
        try:
            read_text(tmp_path, next(mutations))
        except BadInputError as bad:
            assert bad.problem.mistake.code


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<html><body/></html>", "map:1 unknown_format html"),
        ('{"ego": "a"}', "map unknown_format"),
        ("", "map:1 not_xml"),
        ('<!DOCTYPE osm [<!ENTITY a "a">]>\n<osm/>', "map:1 document_type osm"),
        ("<osm/>", "map no_lanes"),
        ("<net/>", "map no_lanes"),
        ('<commonRoad commonRoadVersion="2020a"/>', "map no_lanes"),
        ('<commonRoad commonRoadVersion="2017a"/>', "map:1 other_version commonRoadVersion"),
    ],
)
def test_what_is_no_map_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    with refused(fault, BadInputError):
        read_text(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with refused("map no_file", BadInputError):
        read_map(tmp_path / "map")


@pytest.mark.parametrize("path", WITHOUT_SUMO, ids=lambda path: path.name)
@pytest.mark.parametrize("bound", ["MAX_LANES", "MAX_POINTS"])
def test_a_map_is_bounded(path: Path, bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_size, bound, 4)
    with pytest.raises(BadInputError) as raised:
        read_map(path)
    assert raised.value.problem.mistake.code == "too_large" and raised.value.problem.line > 0


def test_the_lanelets_of_a_recording_are_those_of_its_scenario(tmp_path: Path) -> None:
    own = lanelets_of(COMMONROAD)
    assert own is not None and own.lanes == read_map(COMMONROAD).lanes
    assert lanelets_of(SUMO) is None
    table = tmp_path / "table.csv"
    table.write_text("t_s,id\n")
    assert lanelets_of(table) is None
    empty = tmp_path / "empty.xml"
    empty.write_text('<commonRoad commonRoadVersion="2020a"/>')
    assert lanelets_of(empty) is None
