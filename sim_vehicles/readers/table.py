"""Tables: the lines of a CSV file in columns, and our own columns as records.

Our own format is a CSV table, plain or gzip, with the columns of `COLUMNS` in any order (further ones are ignored), in
the units of `motion`. Rows may be ordered by time or by vehicle; within one vehicle time must grow.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import nan
from pathlib import Path
from typing import IO, Any

import numpy as np

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.batches import Bad, Batch, cut, number, numbers
from sim_vehicles.world.motion import State, Track

COLUMNS = ("t_s", "id", "type", "length_m", "width_m", "x_m", "y_m", "heading_rad", "speed_mps")
NUMBERS = tuple(name for name in COLUMNS if name not in ("id", "type"))
SEPARATORS = ",;\t"


@dataclass(frozen=True)
class Block:
    """Some lines below a header: their numbers, their fields by column. `bad`: by index the lines that have not as many
    fields as the header; their fields are empty."""

    lines: Sequence[int]
    columns: Sequence[Sequence[str]]
    bad: Mapping[int, Bad]

    def without(self, dropped: Container[int]) -> Block:
        """Without the lines at these indices."""
        at = [k for k in range(len(self.lines)) if k not in dropped]
        columns = [[column[k] for k in at] for column in self.columns]
        bad = {new: self.bad[old] for new, old in enumerate(at) if old in self.bad}
        return Block([self.lines[k] for k in at], columns, bad)


class Table:
    """A CSV file, block by block; the separator is the one that the first line has most of. `names`: of the columns,
    by the first line that is not empty; none where there is no such line. Empty lines are passed over.

    BadInputError where it is no CSV text in UTF-8.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path = path
        self._text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        with self._csv_alone():
            first = self._text.readline()
            self._separator = max(SEPARATORS, key=first.count)
            reader = self._reader(chain([first], self._text))
            self.names = [name.strip() for name in next(filter(None, reader), [])]
        self._above = reader.line_num

    def blocks(self) -> Iterator[Block]:
        """All lines below the header."""
        with self._csv_alone():
            for lines in cut(self._text):
                text = "".join(lines)
                if '"' in text:  # from here on a field may hold a line's end
                    yield from self._by_reader(chain(lines, self._text))
                elif max(map(len, lines)) > csv.field_size_limit() or not self._fits(lines):
                    yield from self._by_reader(lines)
                else:
                    yield self._plain(text, len(lines))

    def _fits(self, lines: list[str]) -> bool:
        separators = len(self.names) - 1
        return all(line.count(self._separator) == separators for line in lines)

    def _plain(self, text: str, n: int) -> Block:
        """Of lines without quotes that have as many fields as the header: some four times as fast as csv's reader."""
        width, above = len(self.names), self._above
        self._above += n
        ended = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        fields = ended.replace("\n", self._separator).split(self._separator)
        return Block(range(above + 1, above + n + 1), [fields[k::width] for k in range(width)], {})

    def _by_reader(self, lines: Iterable[str]) -> Iterator[Block]:
        reader, above, width = self._reader(lines), self._above, len(self.names)
        empty = [""] * width
        for some in cut((above + reader.line_num, cells) for cells in reader if cells):
            bad = {
                k: Bad(line, f"{len(cells)} fields where the header has {width}")
                for k, (line, cells) in enumerate(some)
                if len(cells) != width
            }
            cells_of = (empty if k in bad else cells for k, (_, cells) in enumerate(some))
            yield Block([line for line, _ in some], list(zip(*cells_of, strict=True)), bad)
        self._above = above + reader.line_num

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self._separator, strict=True)

    @contextmanager
    def _csv_alone(self) -> Iterator[None]:
        try:
            yield
        except (UnicodeDecodeError, csv.Error) as broken:
            raise bad_input("not_csv", f"is not a CSV text: {broken}", file=self._path) from None


def batches(path: Path, found: Table) -> Iterator[Batch]:
    """The lines of a table with our columns as records. BadInputError where a column is missing."""
    names = found.names
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
    for block in found.blocks():
        yield _batch(block, {name: block.columns[k] for name, k in places.items()})


def write_motion(path: Path, rows: Iterable[tuple[str, Track, State]]) -> None:
    """Writes (t as printed, track, state) rows as a gzip CSV; its bytes depend on the rows alone (no time, no name)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for t_s, track, state in rows:
        numbers = (f"{state.x_m:.3f}", f"{state.y_m:.3f}", f"{state.heading_rad:.4f}", f"{state.speed_mps:.3f}")
        writer.writerow((t_s, track.id, track.type, f"{track.length_m:g}", f"{track.width_m:g}", *numbers))
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


def _batch(block: Block, texts: Mapping[str, Sequence[str]]) -> Batch:
    values = {name: numbers(texts[name]) for name in NUMBERS}
    sound = np.isfinite(list(values.values())).all(axis=0)
    bad = dict(block.bad)
    for k in np.flatnonzero(~sound).tolist():
        bad.setdefault(k, Bad(block.lines[k], _fault({name: texts[name][k] for name in NUMBERS})))
    ids = ["" if k in bad else text.strip() for k, text in enumerate(texts["id"])]
    types = [text.strip() for text in texts["type"]]
    numbers_of = {name: np.where(sound, column, nan) for name, column in values.items()}
    return Batch(block.lines, ids, types, bad, **numbers_of)


def _fault(texts: Mapping[str, str]) -> str:
    """Why a line is no record."""
    try:
        for name, text in texts.items():
            number(name, text)
    except ValueError as bad:
        return str(bad)
    raise AssertionError("the line is a record")
