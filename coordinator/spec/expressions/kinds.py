"""Kinds of the values of an expression's parts, as far as they are known before a tuple has been seen.

A kind is "number", "condition", "text", "null", "list", "bytes", a mapping of field names to kinds (a message), or
None: not known. Of JSON streams nothing is known; of protobuf messages everything is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from coordinator.spec.files.yaml_source import nearest
from protos.expressions import ARITHMETIC, CHOICE, EQUALITY, LOGIC, SINCE

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

Kind = Union[None, str, "Mapping[str, Kind]"]
Fields = Mapping[str, Kind]
NUMBERS = ("number", "condition")  # a condition counts as 1 or 0
WORDS = {
    "number": "a number",
    "condition": "true or false",
    "text": "text",
    "null": "null",
    "list": "a list",
    "bytes": "bytes",
}


class KindError(ValueError):
    """An operation on what it cannot take; `index` says which argument (-1: all of them together)."""

    def __init__(self, index: int, text: str) -> None:
        self.index = index
        super().__init__(text)


class MessageFields(Mapping[str, Kind]):
    """The fields of a protobuf message, looked up as they are asked for: messages may contain themselves."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._fields: Mapping[str, FieldDescriptor] = descriptor.fields_by_name

    def __getitem__(self, name: str) -> Kind:
        return _of_field(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _of_field(field: Any) -> Kind:
    if field.is_repeated:
        return "list"
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return MessageFields(field.message_type)
    if field.type == field.TYPE_BYTES:
        return "bytes"
    return {field.CPPTYPE_STRING: "text", field.CPPTYPE_BOOL: "condition"}.get(field.cpp_type, "number")


def worded(kind: Kind) -> str:
    """The kind in words."""
    return WORDS.get(kind, "unknown") if isinstance(kind, str) else "unknown" if kind is None else "a message"


def field(kind: Kind, path: Sequence[str]) -> Kind:
    """The kind of the field that `path` leads to from a value of this kind. Raises KindError with the index of the
    name that there is not."""
    for index, name in enumerate(path):
        if kind is None:
            return None
        if isinstance(kind, str):
            raise KindError(index, f"'{'.'.join(path[:index]) or 'this'}' is {worded(kind)} and has no field '{name}'")
        if name not in kind:
            where = f" in '{'.'.join(path[:index])}'" if index else ""
            raise KindError(index, f"there is no field '{name}'{where}; {nearest(name, kind)}")
        kind = kind[name]
    return kind


def result(operation: str, kinds: Sequence[Kind]) -> Kind:
    """The kind of an operation's result. Raises KindError where it cannot take what it is given."""
    if operation in ARITHMETIC:
        _each(kinds, NUMBERS, f"'{'-' if operation == 'neg' else operation}' takes numbers")
        return "number"
    if operation in LOGIC:
        _each(kinds, ("condition",), f"'{operation}' takes conditions")
        return "condition"
    if operation == CHOICE:
        _each(kinds[:1], ("condition",), "'if' begins with a condition")
        return _either(kinds[1], kinds[2])
    if operation == SINCE:
        _each(kinds, (*NUMBERS, "text"), "'since' takes numbers or texts that name what a tuple is about")
        return "number"
    _each(kinds, (*NUMBERS, "text", "null") if operation in EQUALITY else (*NUMBERS, "text"), _compares(operation))
    one, other = (("number" if kind in NUMBERS else kind) for kind in kinds)
    if one is not None and other is not None and one != other and not (one == "null" == other):
        raise KindError(-1, f"'{operation}' compares {worded(one)} with {worded(other)}; compare equals with equals")
    return "condition"


def _compares(operation: str) -> str:
    return f"'{operation}' compares numbers or texts" + (" or null" if operation in EQUALITY else "")


def _each(kinds: Sequence[Kind], allowed: Sequence[str], text: str) -> None:
    for index, kind in enumerate(kinds):
        if kind is None or kind in allowed:
            continue
        mend = "; write a comparison, like 'speed != 0'" if allowed == ("condition",) else ""
        if isinstance(kind, Mapping) and kind:
            mend = f"; name one of its fields, like '.{min(kind)}'"
        raise KindError(index, f"{text}, and this is {worded(kind)}{mend}")


def _either(one: Kind, other: Kind) -> Kind:
    if one is None or other is None:
        return None
    if one == other or (one in NUMBERS and other in NUMBERS):
        return one if one == other else "number"
    raise KindError(-1, f"'if' gives {worded(one)} or {worded(other)}; let both be of one kind")
