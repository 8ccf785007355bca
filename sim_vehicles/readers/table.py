"""Tables: the lines of a CSV file, and our own columns as rows.

Our own format is a CSV table, plain or gzip, with the columns of `COLUMNS` in any order (further ones are ignored), in
the units of `motion`. Rows may be ordered by time or by vehicle; within one vehicle time must grow.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.rules import Bad, Row, number
from sim_vehicles.world.motion import State, Track

COLUMNS = ("t_s", "id", "type", "length_m", "width_m", "x_m", "y_m", "heading_rad", "speed_mps")
NUMBERS = tuple(name for name in COLUMNS if name not in ("id", "type"))
SEPARATORS = ",;\t"

Line = tuple[int, list[str]]


def lines(path: Path, stream: IO[bytes]) -> Iterator[Line]:
    """Line number and fields of every line that is not empty; the separator is the one that the first line has most of.

    BadInputError where it is no CSV text in UTF-8.
    """
    try:
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        first = text.readline()
        separator = max(SEPARATORS, key=first.count)
        reader = csv.reader(chain([first], text), delimiter=separator, strict=True)
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except (UnicodeDecodeError, csv.Error) as broken:
        raise bad_input("not_csv", f"is not a CSV text: {broken}", file=path) from None


def rows(path: Path, names: list[str], found: Iterator[Line]) -> Iterator[Row | Bad]:
    """The lines below the header `names` as rows. BadInputError where a column is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise bad_input(
            "missing_column",
            f"column {missing[0]} is missing",
            f"the columns must be {','.join(COLUMNS)}",
            subject=missing[0],
            file=path,
            line=1,
        )
    places = {name: names.index(name) for name in COLUMNS}
    for line, cells in found:
        try:
            yield _row(line, cells, places, len(names))
        except ValueError as bad:
            yield Bad(line, str(bad))


def write_motion(path: Path, rows: Iterable[tuple[str, Track, State]]) -> None:
    """Writes (t as printed, track, state) rows as a gzip CSV; its bytes depend on the rows alone (no time, no name)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for t_s, track, state in rows:
        numbers = (f"{state.x_m:.3f}", f"{state.y_m:.3f}", f"{state.heading_rad:.4f}", f"{state.speed_mps:.3f}")
        writer.writerow((t_s, track.id, track.type, f"{track.length_m:g}", f"{track.width_m:g}", *numbers))
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


def check_width(cells: list[str], width: int) -> None:
    """ValueError where a line has not as many fields as the header."""
    if len(cells) != width:
        raise ValueError(f"{len(cells)} fields where the header has {width}")


def _row(line: int, cells: list[str], places: dict[str, int], width: int) -> Row:
    check_width(cells, width)
    values = {name: number(name, cells[places[name]]) for name in NUMBERS}
    return Row(line, cells[places["id"]].strip(), cells[places["type"]].strip(), **values)
