"""Reads road maps: which format a file has, by its content, and its lanes."""

from __future__ import annotations

from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.maps import commonroad_lanelets
from sim_vehicles.maps.pieces import network
from sim_vehicles.readers import commonroad
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, Start
from sim_vehicles.world.lane_network import LaneNetwork


def read_map(path: Path) -> LaneNetwork:
    """Reads the lanes of a CommonRoad scenario, plain or gzip. BadInputError with the line where it cannot be read."""
    with opened(path) as stream:
        found = Elements(path, stream)
        root = next(found)
        if isinstance(root, Start) and root.name == commonroad.ROOT:
            commonroad.check_version(path, root)
            return network(path, commonroad_lanelets.pieces(path, found))
        raise bad_input(
            "unknown_format", f"<{root.name}> is no map that is read", subject=root.name, file=path, line=root.line
        )
