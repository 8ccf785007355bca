"""Changes values in the text of a YAML file: every other byte stays, comments and alignment among them.

A value is found by the marks of its node and replaced there. ruamel.yaml's own round trip was rejected: it keeps
comments and sets the white space of the whole file anew, so that a change of one number is a difference of many lines.
The text is read again and compared, so a value that stands behind an anchor is refused and not changed for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


class NotInPlaceError(ValueError):
    """A value cannot be changed without changing another one; `path`: its keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(".".join(map(str, path)))


@dataclass(frozen=True)
class NewValue:
    """A value, as YAML on one line, under its keys; all but the last of them are there."""

    path: Path
    text: str


def changed(text: str, values: Sequence[NewValue]) -> str:
    """The text with these values, one after the other. Raises NotInPlaceError."""
    for value in values:
        text = _changed(text, value)
    return text


def _changed(text: str, value: NewValue) -> str:
    from ruamel.yaml.error import YAMLError

    node = _composed(text)
    for key in value.path[:-1]:
        node = _below(node, key)
        if node is None:
            raise NotInPlaceError(value.path)
    there = _below(node, value.path[-1])
    if there is not None:
        after = text[: there.start_mark.index] + value.text + text[there.end_mark.index :]
    else:
        after = _with_key(text, node, value)
    try:
        is_alike = _read(after) == _expected(text, value)
    except YAMLError as error:
        raise NotInPlaceError(value.path) from error
    if not is_alike:
        raise NotInPlaceError(value.path)
    return after


def _with_key(text: str, node: Any, value: NewValue) -> str:
    """One key more: the last of a mapping in braces, the first of one that is written in lines."""
    written = f"{value.path[-1]}: {value.text}"
    pairs = node.value
    if not isinstance(pairs, list) or not all(isinstance(each, tuple) for each in pairs):  # no mapping
        raise NotInPlaceError(value.path)
    if node.flow_style:
        end = node.end_mark.index - 1
        before = text[:end].rstrip()
        comma = "" if not pairs or before.endswith(",") else ","
        return f"{before}{comma}{' ' if pairs else ''}{written}{text[end:]}"
    start = pairs[0][0].start_mark
    return f"{text[: start.index]}{written}\n{' ' * start.column}{text[start.index :]}"


def _composed(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="rt").compose(text)


def _below(node: Any, key: str | int) -> Any:
    """The node under a key of a mapping, or at a position of a list; None: there is none."""
    if isinstance(key, int):
        return node.value[key] if isinstance(node.value, list) and key < len(node.value) else None
    pairs = node.value if isinstance(node.value, list) else []
    return next((each[1] for each in pairs if isinstance(each, tuple) and each[0].value == key), None)


def _read(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def _expected(text: str, value: NewValue) -> Any:
    """What the changed text has to say; every alias is a value of its own."""
    data = _unshared(_read(text))
    at = data
    for key in value.path[:-1]:
        at = at[key]
    at[value.path[-1]] = _read(value.text)
    return data


def _unshared(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _unshared(each) for key, each in data.items()}
    return [_unshared(each) for each in data] if isinstance(data, list) else data


__all__ = ["NewValue", "NotInPlaceError", "changed"]
