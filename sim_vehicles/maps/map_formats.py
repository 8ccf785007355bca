"""Reads road maps: which format a file has, by its content, and its lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.maps import commonroad_lanelets, lanelet2, sumo_net
from sim_vehicles.maps.pieces import Piece, network
from sim_vehicles.maps.utm import Geodetic
from sim_vehicles.readers import commonroad
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, End, Start
from sim_vehicles.world.lane_network import LaneNetwork


def read_map(path: Path, origin: Geodetic = lanelet2.INTERACTION) -> LaneNetwork:
    """Reads the lanes of a CommonRoad scenario, a network of SUMO or a Lanelet2 map; plain or gzip.

    origin: of the plane onto which a Lanelet2 map of latitudes and longitudes is projected. BadInputError with the line
    where a file cannot be read.
    """
    with opened(path) as stream:
        found = Elements(path, stream)
        root = next(found)
        assert isinstance(root, Start)
        return network(path, _pieces(path, root, found, origin))


def _pieces(path: Path, root: Start, found: Iterator[Start | End], origin: Geodetic) -> Iterable[Piece]:
    match root.name:
        case commonroad.ROOT:
            commonroad.check_version(path, root)
            return commonroad_lanelets.pieces(path, found)
        case sumo_net.ROOT:
            return sumo_net.pieces(path, found)
        case lanelet2.ROOT:
            return lanelet2.pieces(path, found, origin)
    raise bad_input(
        "unknown_format", f"<{root.name}> is no map that is read", subject=root.name, file=path, line=root.line
    )
