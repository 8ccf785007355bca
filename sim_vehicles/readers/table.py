"""Tables: the lines of a CSV file, and our own columns as rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from sim_vehicles.errors import BadInputError
from sim_vehicles.motion import COLUMNS, NUMBERS
from sim_vehicles.readers.rules import Bad, Row, number

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
        raise BadInputError(f"{path}: is not a CSV text: {broken}") from None


def rows(path: Path, names: list[str], found: Iterator[Line]) -> Iterator[Row | Bad]:
    """The lines below the header `names` as rows. BadInputError where a column is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise BadInputError(f"{path}:1: column {missing[0]} is missing; the columns must be {','.join(COLUMNS)}")
    places = {name: names.index(name) for name in COLUMNS}
    for line, cells in found:
        try:
            yield _row(line, cells, places, len(names))
        except ValueError as bad:
            yield Bad(line, str(bad))


def check_width(cells: list[str], width: int) -> None:
    """ValueError where a line has not as many fields as the header."""
    if len(cells) != width:
        raise ValueError(f"{len(cells)} fields where the header has {width}")


def _row(line: int, cells: list[str], places: dict[str, int], width: int) -> Row:
    check_width(cells, width)
    values = {name: number(name, cells[places[name]]) for name in NUMBERS}
    return Row(line, cells[places["id"]].strip(), cells[places["type"]].strip(), **values)
