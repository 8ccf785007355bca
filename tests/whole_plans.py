"""Plans of a few lines, made whole: every key that a plan has and that is not given is there, with nothing in it."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from protos import plan_document
from protos.plan_document import Plan

NOTHING: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False}


def whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parsed JSON of a plan that says this and no more, with its hash."""
    made = plan_document.shaped(_filled(Plan, {"shimekiri": plan_document.VERSION, **values}))
    return made.to_json() | {"hash": plan_document.digest(made.to_json())}


def _filled(shape: Any, value: Any) -> Any:
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        kinds = [each for each in arguments if each is not type(None) and _is(value, each)]
        return _filled(kinds[0], value) if kinds and value is not None else value
    if dataclasses.is_dataclass(shape):
        return _object(shape, value)
    if origin is tuple and arguments[-1] is ...:
        return [_filled(arguments[0], each) for each in value]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: _filled(arguments[1], each) for name, each in value.items()}
    return value


def _is(value: Any, kind: Any) -> bool:
    """Whether the words (`Literal`) are those of the class."""
    hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
    words = {name: get_args(each) for name, each in hints.items() if get_origin(each) is Literal}
    return not isinstance(value, Mapping) or all(value.get(name) in each for name, each in words.items())


def _object(shape: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    hints, found = get_type_hints(shape), {}
    for each in dataclasses.fields(shape):
        name = each.metadata.get("key", each.name)
        if name in values or not each.metadata.get("omitted"):
            of = hints[each.name]
            found[name] = _filled(of, values[name] if name in values else _nothing(of))
    return found


def _nothing(shape: Any) -> Any:
    origin = get_origin(shape)
    if origin in (Union, types.UnionType) and type(None) not in get_args(shape):
        return _object(get_args(shape)[0], {})  # of several kinds the first
    if origin in (Union, types.UnionType) or shape is Any:
        return None
    if origin is Literal:
        return get_args(shape)[0]
    if shape in NOTHING:
        return NOTHING[shape]
    return [] if origin is tuple else {}


def altered(plan: Plan, change: Callable[[dict[str, Any]], object]) -> Plan:
    """The plan whose parsed JSON was changed; its hash is still that of what it was."""
    values = plan.to_json()
    change(values)
    return plan_document.shaped(values)


def hashed(values: Mapping[str, Any]) -> Plan:
    """The plan of parsed JSON that was changed, with the hash that it has by now."""
    return plan_document.of({**values, "hash": plan_document.digest(values)})
