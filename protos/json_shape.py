"""JSON objects as frozen dataclasses, read and written by the classes' own annotations.

A field is a key of its name, or of what `key` says. Every key has to be there, but for fields made by `omitted` and
`empty`, which are written only where they are not what they are by default. Of several classes it is the first whose
required keys and words (`Literal`) are there. Standard library only.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Json = Any  # a value as it stands in the file, which nobody looks into here
Field = Any  # what stands in a class for a field of any type, as `dataclasses.field` gives it
Shape = Any  # a type as annotations have it: a class, a union, a Literal
T = TypeVar("T")
Reader = Callable[[Json, str], Json]  # of a value and its path: an object of its type, which only annotations know


class ShapeError(ValueError):
    """A value that is not what its place asks for. path: the keys that lead to it, `a.b[3].c`."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path or 'it'} {text}")
        self.path, self.text = path, text


def key(name: str, **settings: Any) -> Field:
    """A field whose key is no name in Python. settings: as of `dataclasses.field`."""
    return dataclasses.field(metadata={"key": name}, **settings)


def omitted(default: object = None, key: str | None = None) -> Field:
    """A field that is written only where it is not that. key: as of `key`."""
    metadata = {"omitted": True} if key is None else {"omitted": True, "key": key}
    return dataclasses.field(default=default, metadata=metadata)


def empty() -> Field:
    """A field of names, written only where there are any."""
    return dataclasses.field(default_factory=dict, metadata={"omitted": True})


def coded(read: Reader, write: Callable[[Json], Json]) -> Field:
    """A field of a kind of its own. read: of a JSON value and its path, raises ShapeError; write: back again."""
    return dataclasses.field(metadata={"read": read, "write": write})


def read(shape: type[T], value: object, path: str = "") -> T:
    """The object of a parsed JSON value. Raises ShapeError."""
    of: Shape = shape
    found: T = _reader(of)(value, path)
    return found


def write(value: object) -> Json:
    """The JSON value of an object: what `read` has read, key for key and in this order."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        rows = (
            (name, getattr(value, attribute), default, of) for attribute, name, default, of in _written(type(value))
        )
        return {name: of(found) for name, found, default, of in rows if default is _ALWAYS or found != default}
    if isinstance(value, Mapping):
        return {name: write(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [write(each) for each in value]
    return value


_ALWAYS = object()


@cache
def _written(shape: type) -> tuple[tuple[str, str, object, Callable[[Json], Json]], ...]:
    """(attribute, key, default, what writes it) of each field; default: `_ALWAYS` where it is never left out."""
    return tuple(
        (
            each.name,
            each.metadata.get("key", each.name),
            _default(each) if each.metadata.get("omitted") else _ALWAYS,
            each.metadata.get("write", write),
        )
        for each in dataclasses.fields(shape)
    )


def _default(each: dataclasses.Field[object]) -> object:
    return each.default if each.default_factory is dataclasses.MISSING else each.default_factory()


@cache
def _reader(shape: Shape) -> Reader:
    """What turns a JSON value into one of that type."""
    if shape is Json:
        return lambda value, path: value
    if dataclasses.is_dataclass(shape):
        return _object(shape)
    origin: Shape = get_origin(shape)
    arguments = get_args(shape)
    if origin in (Union, types.UnionType):
        return _either(arguments)
    if origin is tuple:
        return _list(_reader(arguments[0])) if arguments[-1] is ... else _row(tuple(map(_reader, arguments)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_reader(arguments[1]))
    return _word(arguments) if origin is Literal else _scalar(shape)


def _either(kinds: tuple[object, ...]) -> Reader:
    inner = tuple(each for each in kinds if each is not type(None))
    of = _reader(inner[0]) if len(inner) == 1 else _one_of(inner)
    return of if len(inner) == len(kinds) else lambda value, path: None if value is None else of(value, path)


def _scalar(shape: type) -> Reader:
    wanted = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[shape]

    def scalar(value: object, path: str) -> object:
        if type(value) is float and not math.isfinite(value):
            raise ShapeError(path, "is not finite")
        if type(value) is shape or (shape is float and type(value) is int):
            return value
        raise ShapeError(path, f"is {_abridged(value)}, not {wanted}")

    return scalar


def _word(known: tuple[object, ...]) -> Reader:
    def word(value: object, path: str) -> object:
        if value not in known:
            raise ShapeError(path, f"is {_abridged(value)}, not {' or '.join(map(repr, known))}")
        return value

    return word


def _one_of(shapes: tuple[object, ...]) -> Reader:
    """The first of several classes whose required keys are there and whose words are its own; else the last one, which
    says what is wrong."""

    def fits(value: Mapping[str, object], shape: Shape) -> bool:
        required, words = _fields(shape)[1], _literals(shape)
        return all(name in value for name in required) and all(value[name] in each for name, each in words.items())

    def one(value: object, path: str) -> object:
        fitting = [shape for shape in shapes if isinstance(value, dict) and fits(value, shape)]
        return _reader((fitting or shapes[-1:])[0])(value, path)

    return one


def _list(of: Reader) -> Reader:
    def several(value: object, path: str) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise ShapeError(path, f"is {_abridged(value)}, not a list")
        return tuple(of(each, f"{path}[{place}]") for place, each in enumerate(value))

    return several


def _row(of: tuple[Reader, ...]) -> Reader:
    def row(value: object, path: str) -> tuple[object, ...]:
        if not isinstance(value, list) or len(value) != len(of):
            raise ShapeError(path, f"is {_abridged(value)}, not a list of {len(of)}")
        return tuple(one(each, f"{path}[{place}]") for place, (one, each) in enumerate(zip(of, value, strict=True)))

    return row


def _mapping(of: Reader) -> Reader:
    def mapping(value: object, path: str) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise ShapeError(path, f"is {_abridged(value)}, not an object")
        return {name: of(each, f"{path}.{name}") for name, each in value.items()}

    return mapping


@cache
def _fields(shape: Shape) -> tuple[dict[str, tuple[str, Reader]], list[str]]:
    """By key: attribute and reader; and the keys that have to be there."""
    hints, written = get_type_hints(shape), _written(shape)
    own = {each.name: each.metadata.get("read") for each in dataclasses.fields(shape)}
    readers = {name: (attribute, own[attribute] or _reader(hints[attribute])) for attribute, name, _, _ in written}
    return readers, [name for _, name, default, _ in written if default is _ALWAYS]


@cache
def _literals(shape: Shape) -> dict[str, tuple[object, ...]]:
    """By key: what a field that is one of a few words may say."""
    return {name: get_args(each) for name, each in get_type_hints(shape).items() if get_origin(each) is Literal}


def _object(shape: Shape) -> Reader:
    def one(value: object, path: str) -> object:
        if isinstance(value, shape):  # read before, as its keys stand among those of what holds it
            return value
        if not isinstance(value, dict):
            raise ShapeError(path, f"is {_abridged(value)}, not an object")
        readers, required = _fields(shape)  # not before: a shape may hold itself
        for name in required:
            if name not in value:
                raise ShapeError(path, f"has no {name}")
        given = {}
        for name, each in value.items():
            if name not in readers:
                raise ShapeError(path, f"has {name}, which is not known")
            attribute, of = readers[name]
            given[attribute] = of(each, f"{path}.{name}" if path else name)
        try:
            return shape(**given)
        except ValueError as error:  # of its own making
            raise ShapeError(path, f"is not right: {error}") from None

    return one


def _abridged(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


__all__ = ["Json", "ShapeError", "coded", "empty", "key", "omitted", "read", "write"]
