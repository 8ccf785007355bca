"""Reads road maps: which format a file has, by its content, and its lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sim_vehicles.errors import BadInputError, bad_input
from sim_vehicles.maps import commonroad_lanelets, lanelet2, opendrive, sumo_net
from sim_vehicles.maps.map_file import map_of
from sim_vehicles.maps.pieces import Piece, network
from sim_vehicles.maps.utm import Geodetic
from sim_vehicles.readers import commonroad
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, End, Start
from sim_vehicles.world.lane_network import LaneNetwork


def read_map(path: Path, origin: Geodetic = lanelet2.INTERACTION) -> LaneNetwork:
    """Reads the lanes of our own JSON, a CommonRoad scenario, a Lanelet2 map, a network of SUMO or OpenDRIVE; plain or
    gzip.

    origin: of the plane onto which a Lanelet2 map of latitudes and longitudes is projected. BadInputError with the line
    where a file cannot be read; MissingToolError where OpenDRIVE cannot be for lack of SUMO.
    """
    with opened(path) as stream:
        head = stream.peek(1024).removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"{"):
            return map_of(path, stream)
        found = Elements(path, stream)
        root = next(found)
        assert isinstance(root, Start)
        return network(path, _pieces(path, root, found, origin))


def lanelets_of(path: Path) -> LaneNetwork | None:
    """The lanelets of a recording that is a CommonRoad scenario; None for another one, and for one without lanelets.
    BadInputError for lanelets that cannot be read."""
    with opened(path) as stream:
        if not stream.peek(1024).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
            return None
        found = Elements(path, stream)
        root = next(found)
        if not isinstance(root, Start) or root.name != commonroad.ROOT:
            return None
        try:
            return network(path, _pieces(path, root, found, lanelet2.INTERACTION))
        except BadInputError as bad:
            if bad.problem.mistake.code == "no_lanes":
                return None
            raise


def _pieces(path: Path, root: Start, found: Iterator[Start | End], origin: Geodetic) -> Iterable[Piece]:
    match root.name:
        case commonroad.ROOT:
            commonroad.check_version(path, root)
            return commonroad_lanelets.pieces(path, found)
        case sumo_net.ROOT:
            return sumo_net.pieces(path, found)
        case lanelet2.ROOT:
            return lanelet2.pieces(path, found, origin)
        case opendrive.ROOT:
            return opendrive.pieces(path, found)
    raise bad_input(
        "unknown_format",
        f"<{root.name}> is no map that is read",
        "give a CommonRoad scenario, a Lanelet2 map (.osm), a network of SUMO (.net.xml) or OpenDRIVE (.xodr)",
        subject=root.name,
        file=path,
        line=root.line,
    )
