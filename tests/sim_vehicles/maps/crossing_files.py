"""Small maps, made by hand, one per format, with the networks that are read of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from sim_vehicles.maps.map_formats import read_map
from sim_vehicles.world.lane_network import LaneNetwork

FOLDER = Path(__file__).parent / "crossings"
COMMONROAD, LANELET2 = FOLDER / "crossing.xml", FOLDER / "crossing.osm"
SUMO, OPENDRIVE = FOLDER / "crossing.net.xml", FOLDER / "two_roads.xodr"
WITHOUT_SUMO = (COMMONROAD, LANELET2, SUMO)
needs_sumo = pytest.mark.skipif(
    find_spec("sumo") is None, reason="SUMO is not installed: pip install 'shimekiri[record]'"
)


def read_text(tmp_path: Path, text: str | bytes) -> LaneNetwork:
    """The network of a file with that content."""
    path = tmp_path / "map"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_map(path)


def line_of(network: LaneNetwork, name: str) -> list[tuple[float, float]]:
    return list(network.lanes[name].line)
