"""Columns of values: arrays of NumPy, arrays and tables of Arrow, frames of pandas and Polars, mappings of columns.

Each is known by the shape of its objects, so that none of these packages is imported here: their caller has them. A
table has a tuple per row, an array has one per item of its first axis.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from node_agent.problems import UnusableValueError

PLAIN = frozenset({bool, float, int, str})
NESTED = frozenset({dict, list})
NO_VALUE = frozenset({"NAType", "NaTType", "NoneType"})  # how NumPy's masks, Arrow, pandas and Polars say null
KINDS = "columns are of integers, floats of at most 8 bytes, conditions, text, or lists of these"
_LISTS = ("to_pylist", "to_list", "tolist")  # Arrow; Polars and pandas; NumPy, array.array and memoryview
_NOT_LISTED = {  # kinds of NumPy's types of which `tolist` gives something else
    "M": "instants of the calendar",
    "m": "durations",
    "S": "bytes without their trailing zeros",
}


class Column(NamedTuple):
    """The values of one column as Python has them. kinds: their classes."""

    values: list[Any]
    kinds: frozenset[type]


class Table(NamedTuple):
    """Named columns of one length."""

    names: list[str]
    columns: list[Column]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per row."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in zip(*(each.values for each in self.columns), strict=True)]


def table(values: Any) -> Table | None:
    """What has named columns: a mapping of columns, a frame, a table or a record batch, an array of records. None: it
    is something else. Raises UnusableValueError."""
    found = _named(values)
    if found is None:
        return None
    names = [name for name, _ in found]
    for name in names:
        if not isinstance(name, str):
            text = f"column {name!r:.80}: its name is no text"
            raise UnusableValueError("unsupported", text, "give it a name of text", subject=repr(name))
        if names.count(name) > 1:
            raise UnusableValueError("given_twice", f"two columns are called {name!r}", subject=name)
    columns = [column(each, name) for name, each in found]
    for name, each in zip(names, columns, strict=True):
        same_length(name, len(each.values), len(columns[0].values))
    return Table(names, columns)


def is_array(values: Any) -> bool:
    """Whether these are the values of one column, rather than any iterable."""
    return not isinstance(values, str | bytes | bytearray) and _lister(values) is not None


def column(values: Any, name: str = "") -> Column:
    """One column. Raises UnusableValueError for nulls, for NaN in numbers, and for types that are none of JSON."""
    lister = _lister(values)
    if lister is None:
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            text = f"{_called(name)} is a {type(values).__name__}, not an array or a list"
            raise UnusableValueError("unsupported", text, KINDS, subject=name)
        plain = list(values)  # what cannot be sent of them is found value by value
        return Column(plain, frozenset(map(type, plain)))
    why = _NOT_LISTED.get(getattr(getattr(values, "dtype", None), "kind", ""))
    if why is not None:
        raise UnusableValueError("unsupported", f"{_called(name)} is of {values.dtype}: {why}", KINDS, subject=name)
    _check_mask(values, name)
    found = lister()
    if not isinstance(found, list):
        raise _single(name)
    kinds = frozenset(map(type, found))
    if any(kind.__module__ == "numpy" for kind in kinds):  # of sparse columns and of arrays of objects
        found = [each.item() if type(each).__module__ == "numpy" else each for each in found]
        kinds = frozenset(map(type, found))
    _check_values(found, kinds, name)
    return Column(found, kinds)


def check_items(values: Any, name: str = "") -> None:
    """Raises UnusableValueError where an array of NumPy has no first axis, and where items of it are masked."""
    if values.shape == ():
        raise _single(name)
    _check_mask(values, name)


def same_length(name: str, length: int, expected: int) -> None:
    """Raises UnusableValueError where a column is longer or shorter than the others."""
    if length != expected:
        text = f"{_called(name)} has {length} values, the others have {expected}"
        raise UnusableValueError("other_length", text, "give one per tuple", subject=name)


def _named(values: Any) -> list[tuple[Any, Any]] | None:
    """Names and columns, in order."""
    if isinstance(values, Mapping):
        return list(values.items())
    fields = getattr(getattr(values, "dtype", None), "names", None)
    if fields:
        return [(name, values[name]) for name in fields]
    names = getattr(values, "column_names", None)
    if names is not None:
        return [(name, values.column(place)) for place, name in enumerate(names)]
    names = getattr(values, "columns", None)
    if names is not None and hasattr(values, "__getitem__") and not isinstance(values, Sequence):
        return [(name, values[name]) for name in names]
    if hasattr(values, "__arrow_c_stream__") and _lister(values) is None:
        text = f"a {type(values).__name__} says neither its columns nor its values"
        raise UnusableValueError("unsupported", text, "make it a table first: pyarrow.table(...)")
    return None


def _lister(values: Any) -> Any:
    """The method that gives all values as Python has them; None: it has none."""
    return next((found for name in _LISTS if callable(found := getattr(values, name, None))), None)


def _check_mask(values: Any, name: str) -> None:
    mask: Any = getattr(values, "mask", None)  # pandas has a method of that name, without a shape
    if getattr(mask, "shape", ()) and mask.dtype.names is None and mask.any():
        raise _null(name, next(row for row, each in enumerate(mask) if each.any()), "no value")


def _check_values(values: list[Any], kinds: frozenset[type], name: str) -> None:
    missing = {kind for kind in kinds if kind.__name__ in NO_VALUE}
    if missing:
        row = next(row for row, value in enumerate(values) if type(value) in missing)
        raise _null(name, row, "no value")
    if float in kinds and not all(isfinite(value) for value in values if value.__class__ is float):
        row = next(row for row, value in enumerate(values) if value.__class__ is float and not isfinite(value))
        raise _null(name, row, f"{values[row]}, which JSON has not")
    others = sorted(kind.__name__ for kind in kinds - PLAIN - NESTED - {bytes})
    if others:
        text = f"{_called(name)} has values of {', '.join(others)}"
        raise UnusableValueError("unsupported", text, KINDS, subject=name)


def _null(name: str, row: int, what: str) -> UnusableValueError:
    text = f"{_called(name)} has {what} in row {row}"
    return UnusableValueError("null", text, "leave such rows out, or fill them in", subject=name)


def _single(name: str) -> UnusableValueError:
    text = f"{_called(name)} has no first axis: it is a single value"
    return UnusableValueError("unsupported", text, "give an array with an item per tuple, or use send", subject=name)


def _called(name: str) -> str:
    return f"column {name!r}" if name else "the array"
