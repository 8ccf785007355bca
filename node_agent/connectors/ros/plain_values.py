"""Between messages as rosbags has them and values of JSON.

A message is a mapping of its fields, an array a list. JSON has no NaN and no infinity: they become null, and null
becomes NaN. On the way out a field that is left out is zero or empty, and one that the type does not have is refused.
"""

from importlib import import_module
from math import isfinite
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys.store import Typestore

EMPTY = "structure_needs_at_least_one_member"  # the field of a type without fields
_TYPES = {"bool": "bool_", "byte": "uint8", "char": "uint8"}  # of NumPy, where they are called otherwise


def plain(store: Typestore, type_: str, value: Any) -> dict[str, Any]:
    """The JSON value of a message of that type."""
    fields = store.get_msgdef(type_).fields
    return {name: _part(store, each, getattr(value, name)) for name, each in fields if name != EMPTY}


def _part(store: Typestore, described: Any, value: Any) -> Any:
    kind, rest = described
    if kind == Nodetype.NAME:
        return plain(store, rest, value)
    if kind != Nodetype.BASE:
        listed = value if isinstance(value, list) else value.tolist()
        inner = rest[0]
        return listed if _is_whole(inner) else [_part(store, inner, each) for each in listed]
    return None if isinstance(value, float) and not isfinite(value) else value


def _is_whole(described: Any) -> bool:
    """A number or text that JSON has as it is."""
    return bool(described[0] == Nodetype.BASE and not described[1][0].startswith("float"))


def message(store: Typestore, type_: str, value: Any) -> Any:
    """The message of that type. Raises ValueError for what is none; rosbags says more as it writes it."""
    if not isinstance(value, dict):
        raise ValueError(f"{_short(value)} is no mapping of the fields of {type_}")
    definition = store.get_msgdef(type_)
    names = [name for name, _ in definition.fields]
    if unknown := value.keys() - set(names):
        raise ValueError(f"{type_} has no field {min(unknown)}: it has {', '.join(names)}")
    return definition.cls(**{name: _field(store, each, value.get(name), name) for name, each in definition.fields})


def _field(store: Typestore, described: Any, value: Any, name: str) -> Any:
    kind, rest = described
    if kind == Nodetype.NAME:
        return message(store, rest, {} if value is None else value)
    if kind == Nodetype.BASE:
        return _single(rest[0], value, name)
    inner, count = rest
    fixed = kind == Nodetype.ARRAY
    if value is None and fixed and not _is_number(inner):
        value = [None] * count
    values = [0] * (count if fixed else 0) if value is None else value
    if not isinstance(values, list):
        raise ValueError(f"{name} is {_short(value)}, and no list")
    if (fixed and len(values) != count) or (count and len(values) > count):
        raise ValueError(f"{name} has {len(values)} items, and its type {'has' if fixed else 'at most'} {count}")
    if not _is_number(inner):
        return [_field(store, inner, each, name) for each in values]
    numpy = import_module("numpy")
    base = inner[1][0]
    checked = [_single(base, each, name) for each in values]
    return numpy.array(checked, dtype=_TYPES.get(base, base))


def _single(base: str, value: Any, name: str) -> Any:
    if base == "string":
        found, ok = value if value is not None else "", isinstance(value, str | None)
    elif base == "bool":
        found, ok = bool(value), isinstance(value, bool | None)
    elif base.startswith("float"):
        found = float("nan") if value is None else value
        ok = isinstance(found, int | float) and not isinstance(found, bool)
    else:
        found = (
            int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else value or 0
        )  # as protobuf does
        ok = isinstance(found, int) and not isinstance(value, bool)
    if not ok:
        raise ValueError(f"{name} is {_short(value)}, and its type {base}")
    return found


def _is_number(described: Any) -> bool:
    return bool(described[0] == Nodetype.BASE and described[1][0] != "string")


def _short(value: Any) -> str:
    return f"{value!r:.40}"
