"""JSON values: which need no conversion, and what becomes of the others.

What a stream of JSON carries are None, bool, int, finite float, str, and lists and dictionaries of them with keys that
are text. An operator may give more: a tuple is a list, a NumPy scalar a number, a NumPy array a list of (lists of)
numbers, an instance of a subclass what JSON makes of it. NumPy is known by the shape of its objects and never imported.
"""

from collections.abc import Iterable
from typing import Any

LARGE = 10**18
NUMBER, ITEM, KEY = 26, 2, 4  # bytes that they take: a number at most, an item at least, quotes and separators
ESCAPED = 6  # bytes that a character takes at most
KINDS = "biufU"  # of NumPy: conditions, integers, floats, text
WIDEST = 8  # bytes of a number that Python has as well


def left(value: Any, most: int, depth: int) -> int:  # noqa: PLR0911, PLR0912 - the hot path: no calls
    """Of `most` bytes those that are left when a plain value is written; below 0: it is not plain, it is nested deeper
    than that, or it has to be written to see how long it is."""
    inside: Iterable[Any]
    if value.__class__ is dict:
        try:
            keys = "".join(value)
        except TypeError:
            return -1
        if not keys.isascii():  # it may be half a character, which cannot be written
            return -1
        most -= ESCAPED * len(keys) + KEY * len(value)
        inside = value.values()
    elif value.__class__ is list:
        inside = value
    else:
        inside = (value,)
        depth += 1
    if not depth:
        return -1
    for each in inside:
        kind = each.__class__
        if kind is float:
            if each - each != 0:
                return -1
            most -= NUMBER
        elif kind is str:
            if not each.isascii():
                return -1
            most -= ESCAPED * len(each) + KEY
        elif kind is int:
            if not -LARGE < each < LARGE:
                return -1
            most -= NUMBER
        elif kind is bool or each is None:
            most -= NUMBER
        elif kind is dict or kind is list:
            most = left(each, most - KEY, depth - 1)
        else:
            return -1
        if most < 0:
            return -1
    return most


def foreign(value: Any, most: int) -> Any:
    """For json.JSONEncoder: a NumPy scalar or array as Python has it. Raises TypeError for all else, and for what
    would take more bytes than `most`."""
    dtype: Any = getattr(value, "dtype", None)
    convert = getattr(value, "tolist", None)
    kind = getattr(dtype, "kind", None)
    if convert is None or not isinstance(kind, str):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    if kind not in KINDS or (kind in "iuf" and dtype.itemsize > WIDEST):
        raise TypeError(f"{type(value).__name__} of {dtype} is not JSON: of numbers, conditions and text only")
    if value.size * ITEM > most:
        raise TypeError(f"{type(value).__name__} of {value.size} numbers is too large")
    return convert()


def check_keys(value: Any, depth: int) -> None:
    """Raises TypeError where a dictionary has a key that is no text: JSON would make it one, so that two may become
    one, and who reads it finds another."""
    if not depth:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r:.80} is no text; write str(...)")
            check_keys(inner, depth - 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_keys(inner, depth - 1)


__all__ = ["check_keys", "foreign", "left"]
