"""Changes values in the text of a YAML file: every other byte stays, comments and alignment among them.

A value is found by the marks of its node and replaced there. ruamel.yaml's own round trip was rejected: it keeps
comments and sets the white space of the whole file anew, so that a change of one number is a difference of many lines.
The text is read again and compared, so a value that stands behind an anchor is refused and not changed for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """The first way to write it that reads as it should."""
    from ruamel.yaml.error import YAMLError

    node = _composed(text)
    for key in value.path[:-1]:
        node = _below(node, key)
        if node is None:
            raise NotInPlaceError(value.path)
    there = _below(node, value.path[-1])
    expected = None
    for after in _replaced(text, there, value) if there is not None else _with_key(text, node, value):
        try:
            expected = _expected(text, value) if expected is None else expected
            if _read(after) == expected:
                return after
        except YAMLError:
            continue
    raise NotInPlaceError(value.path)


def _replaced(text: str, there: Any, value: NewValue) -> Iterator[str]:
    """In the quotation marks that it had, where it is text."""
    before, behind = text[: there.start_mark.index], text[there.end_mark.index :]
    yield f"{before}{_quoted(value.text, _quotes(there))}{behind}"
    yield f"{before}{value.text}{behind}"


def _with_key(text: str, node: Any, value: NewValue) -> Iterator[str]:
    """One key more: the last of a mapping in braces, the first of one that is written in lines."""
    pairs = node.value
    if not isinstance(pairs, list) or not all(isinstance(each, tuple) for each in pairs):  # no mapping
        return
    quotes = _quotes(pairs[-1][0]) if pairs else ""
    written = f"{quotes}{value.path[-1]}{quotes}: {_quoted(value.text, quotes)}"
    if node.flow_style:
        end = node.end_mark.index - 1
        before = text[:end].rstrip()
        comma = "" if not pairs or before.endswith(",") else ","
        yield f"{before}{comma}{' ' if pairs else ''}{written}{text[end:]}"
        last = pairs[-1][1].end_mark.index if pairs else end  # a comment may stand between it and the brace
        yield f"{text[:last]}, {written}{text[last:]}"
        return
    start = pairs[0][0].start_mark.index
    line = text.rfind("\n", 0, start) + 1
    indent, end_of_line = " " * (start - line), "\r\n" if "\r\n" in text else "\n"
    if not text[line:start].strip():
        above = _above_comments(text, line)  # which are of the key below them
        yield f"{text[:above]}{indent}{written}{end_of_line}{text[above:]}"
    yield f"{text[:start]}{written}{end_of_line}{indent}{text[start:]}"


def _above_comments(text: str, line: int) -> int:
    """Where the first of the lines with nothing but a comment begins that stand directly above a line."""
    while line:
        before = text.rfind("\n", 0, line - 1) + 1
        if not text[before:line].lstrip().startswith("#"):
            break
        line = before
    return line


def _quotes(node: Any) -> str:
    """Quotation marks of a scalar; none where it has none."""
    style = getattr(node, "style", None)
    return style if style in ("'", '"') else ""


def _quoted(text: str, quotes: str) -> str:
    """In quotation marks, where it is text that stands without any."""
    return f"{quotes}{text}{quotes}" if _read(text) == text else text


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
