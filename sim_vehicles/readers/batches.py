"""Batches of records in columns, as readers hand them on: numbers in arrays, no object for a record that is sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan, pi
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

SIZE = 16_384  # records of a batch, whose texts take some 10 MB

Floats = NDArray[np.float64]
Each = TypeVar("Each")


class Row(NamedTuple):
    """One record of one vehicle and its line in the file; (x, y) is the centre of its box, radians as in `State`."""

    line: int
    id: str
    type: str
    t_s: float
    length_m: float
    width_m: float
    x_m: float
    y_m: float
    heading_rad: float
    speed_mps: float


class Bad(NamedTuple):
    """A record that a reader could not make a row of, and why. `everywhere`: a fault of the whole file, which leaving
    the row out would only hide."""

    line: int
    what: str
    everywhere: bool = False


@dataclass(frozen=True)
class Batch:
    """Records in the order of the file, at least one; every column has one entry per record, in the units of `Row`.
    `bad`: by index what is no row; its id is empty and its numbers are NaN."""

    lines: Sequence[int]
    ids: Sequence[str]
    types: Sequence[str]
    bad: Mapping[int, Bad]
    t_s: Floats
    length_m: Floats
    width_m: Floats
    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, k: int) -> Row | Bad:
        """The k-th record by itself."""
        if k in self.bad:
            return self.bad[k]
        columns = (self.t_s, self.length_m, self.width_m, self.x_m, self.y_m, self.heading_rad, self.speed_mps)
        return Row(self.lines[k], self.ids[k], self.types[k], *(float(column[k]) for column in columns))


def in_batches(rows: Iterable[Row | Bad]) -> Iterator[Batch]:
    """The batches of a reader that makes row by row."""
    for some in cut(rows):
        whole = [one if isinstance(one, Row) else Row(one.line, "", "", *[nan] * 7) for one in some]
        lines, ids, types, *numbers = zip(*whole, strict=True)
        bad = {k: one for k, one in enumerate(some) if isinstance(one, Bad)}
        yield Batch(lines, ids, types, bad, *(np.array(column, dtype=np.float64) for column in numbers))


def cut(found: Iterable[Each]) -> Iterator[list[Each]]:
    """Lists of `SIZE`. Where `found` fails, what came before is handed on first: its faults stand before that one."""
    some: list[Each] = []
    try:
        for one in found:
            some.append(one)
            if len(some) == SIZE:
                yield some
                some = []
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some


def number(name: str, text: str) -> float:
    """The number that `text` says; ValueError with its name where it is none, or not finite."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, which is no number") from None
    if not isfinite(value):
        raise ValueError(f"{name} is {text.strip()}, which is not finite")
    return value


def numbers(texts: Sequence[str]) -> Floats:
    """The numbers that `texts` say, NaN where one says none."""
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return np.fromiter(map(_float_or_nan, texts), np.float64, len(texts))


def _float_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def wrapped(angle_rad: Floats) -> Floats:
    """The same angles in [-pi, pi), as `motion.wrap`."""
    return np.asarray((angle_rad + pi) % (2 * pi) - pi)
