"""Reads recorded motion: which format a recording has, by its content, and its motion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from sim_vehicles.errors import bad_input
from sim_vehicles.readers import commonroad, fcd, table
from sim_vehicles.readers.batches import in_batches
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, Start
from sim_vehicles.readers.rules import gather
from sim_vehicles.readers.sizes import Kind
from sim_vehicles.readers.table import COLUMNS
from sim_vehicles.world.motion import Motion


def read_motion(path: Path, skip_bad_rows: bool = False, kinds: Mapping[str, Kind] | None = None) -> Motion:
    """Reads a recording, its format told by its content: our CSV, SUMO's floating-car data (XML or CSV), a CommonRoad
    scenario (XML); each plain or gzip. `kinds`: SUMO's vehicle types, if they are known.

    A row that cannot be (a field that is no finite number, time that does not grow for its vehicle, over 100 m/s by its
    speed or by the distance from the record before, a vehicle of no size) raises BadInputError with its line; with
    `skip_bad_rows` it is left out and noted in `Motion.skipped`. A file that is none of these is always refused.
    MissingToolError where a format needs a package that is not installed.
    """
    with opened(path) as stream:
        head = stream.peek(1024)
        if head.startswith(b"PAR1"):
            raise bad_input(
                "parquet", "is Parquet, which is not read", "record XML or CSV (--fcd-output FILE.xml)", file=path
            )
        if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
            return _xml(path, stream, skip_bad_rows, kinds)
        return _table(path, stream, skip_bad_rows, kinds)


def _xml(path: Path, stream: BinaryIO, skip_bad_rows: bool, kinds: Mapping[str, Kind] | None) -> Motion:
    found = Elements(path, stream)
    root = next(found)
    if isinstance(root, Start) and root.name == fcd.ROOT:
        data = fcd.Fcd(path, kinds)
        return data.motion(data.from_xml(found), skip_bad_rows)
    if isinstance(root, Start) and root.name == commonroad.ROOT:
        return gather(path, in_batches(commonroad.rows(path, root, found)), skip_bad_rows)
    raise bad_input(
        "unknown_format",
        f"<{root.name}> is neither SUMO's <{fcd.ROOT}> (--fcd-output) nor a CommonRoad scenario (<{commonroad.ROOT}>)",
        subject=root.name,
        file=path,
        line=root.line,
    )


def _table(path: Path, stream: BinaryIO, skip_bad_rows: bool, kinds: Mapping[str, Kind] | None) -> Motion:
    found = table.Table(path, stream)
    if not found.names:
        raise bad_input(
            "empty_file", "the file is empty", f"the columns must be {','.join(COLUMNS)}", file=path, line=1
        )
    if fcd.is_table(found.names):
        data = fcd.Fcd(path, kinds)
        return data.motion(data.from_table(found), skip_bad_rows)
    return gather(path, table.batches(path, found), skip_bad_rows)
