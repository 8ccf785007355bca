"""A network of lanes as one JSON file of ours, which operators read by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from protos import json_shape
from protos.json_shape import ShapeError
from sim_vehicles.errors import bad_input
from sim_vehicles.maps.map_size import MAX_LANES, MAX_POINTS, MapSize
from sim_vehicles.maps.pieces import Piece, network
from sim_vehicles.readers.content import opened
from sim_vehicles.world.lane_network import Lane, LaneNetwork

VERSION = 1
MAX_BYTES = 100 * MAX_LANES + 40 * MAX_POINTS  # JSON is read as a whole
AGAIN = "write it again with 'sim-vehicles map FILE -o NAME.json'"


@dataclass(frozen=True)
class MapDocument:
    """What the file holds; the version stands first."""

    shimekiri_map: int
    lanes: tuple[Lane, ...]


def write_map_file(path: Path, network: LaneNetwork) -> None:
    """Writes the lanes in their order, one a line. BadInputError where that place cannot be written."""
    lanes = ",\n".join(json.dumps(json_shape.write(lane), separators=(",", ":")) for lane in network.lanes.values())
    try:
        path.write_text(f'{{"shimekiri_map": {VERSION}, "lanes": [\n{lanes}\n]}}\n', encoding="utf-8")
    except OSError as bad:
        raise bad_input("unwritable", f"cannot be written: {bad.strerror or bad}", file=path) from None


def read_map_file(path: Path) -> LaneNetwork:
    """The network of such a file, plain or gzip. BadInputError where it is damaged or of another version."""
    with opened(path) as stream:
        return map_of(path, stream)


def map_of(path: Path, stream: BinaryIO) -> LaneNetwork:
    """As `read_map_file`, of the bytes of an open file."""
    value = _json(path, stream)
    if not isinstance(value, Mapping) or "shimekiri_map" not in value:
        raise bad_input("unknown_format", "is JSON, but no map of 'sim-vehicles map'", AGAIN, file=path)
    version = value["shimekiri_map"]
    if version != VERSION:
        text = f"is a map of version {str(version)[:20]}, this reads version {VERSION}"
        raise bad_input("other_version", text, AGAIN, subject="shimekiri_map", file=path)
    try:
        document = json_shape.read(MapDocument, value)
    except ShapeError as bad:
        raise bad_input("wrong_form", str(bad), AGAIN, subject=bad.path, file=path) from None
    size = MapSize(path)
    for lane in document.lanes:
        size.lane(0)
        size.points(len(lane.line), 0)
    known = {lane.name for lane in document.lanes}
    for lane in document.lanes:
        for name in lane.following:
            if name not in known:
                text = f"lane {lane.name} leads into {name}, which is not in the file"
                raise bad_input("not_complete", text, AGAIN, subject=lane.name, file=path)
    return network(path, (Piece(0, lane.name, lane.line, lane.following, lane.width_m) for lane in document.lanes))


def _json(path: Path, stream: BinaryIO) -> object:
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise bad_input("too_large", f"holds more than {MAX_BYTES // 1_000_000} MB", AGAIN, file=path)
    try:
        value: object = json.loads(data)
    except json.JSONDecodeError as bad:
        raise bad_input("not_json", f"is not JSON: {bad.msg}", AGAIN, file=path, line=bad.lineno) from None
    except (ValueError, RecursionError) as bad:  # bytes that are no text, a number of thousands of digits, nesting
        raise bad_input("not_json", f"is not JSON that can be read: {bad}", AGAIN, file=path) from None
    return value
