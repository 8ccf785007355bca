"""Rows that belong together, found by key: a few lines of numpy in place of joins."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coordinator.report import report_extra

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
WIDEST = 1 << 62
MOST, LEAST = np.int64(1 << 62), np.int64(-(1 << 62))  # beyond every instant of a row


def codes(*columns: Ints) -> Ints:
    """A small number per row, equal where all columns are equal."""
    found: Ints = np.zeros(len(columns[0]), np.int64)
    span = 1
    for column in columns:
        if not len(column):
            return found
        least = int(column.min())
        width = int(column.max()) - least + 1
        if width * span > WIDEST:
            found, span = _numbered(found)
        own, width = (column - least, width) if width * span <= WIDEST else _numbered(column)
        found = found * width + own
        span *= width
    return _numbered(found)[0]


def _numbered(column: Ints) -> tuple[Ints, int]:
    """The same values by small numbers, and how many there are."""
    if not report_extra.has("pyarrow"):
        listed, found = np.unique(column, return_inverse=True)
        return found.astype(np.int64), len(listed)
    import pyarrow as pa

    listed = pa.array(column).dictionary_encode()  # by hashing, four times as fast as numpy's sorting
    return listed.indices.to_numpy().astype(np.int64), len(listed.dictionary)


class Pairs:
    """Rows of one table beside the rows of another that have the same key."""

    def __init__(self, asked: Sequence[Ints], told: Sequence[Ints]) -> None:
        """Columns of both keys, in the same order."""
        both = codes(*(np.concatenate(pair) for pair in zip(asked, told, strict=True)))
        self._asked, self._told = both[: len(asked[0])], both[len(asked[0]) :]
        self._size = int(both.max(initial=-1)) + 1

    def any(self) -> Bools:
        """Which of the asked rows have a partner."""
        found = np.zeros(self._size, np.bool_)
        found[self._told] = True
        return found[self._asked]

    def least(self, values: Ints) -> Ints:
        """The least value of the partners of each asked row; MOST where there is none."""
        found = np.full(self._size, MOST)
        np.minimum.at(found, self._told, values)
        return found[self._asked]

    def most(self, values: Ints) -> Ints:
        """The greatest value of the partners of each asked row; LEAST where there is none."""
        found = np.full(self._size, LEAST)
        np.maximum.at(found, self._told, values)
        return found[self._asked]
