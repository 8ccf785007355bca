"""The reference pages of query.yaml, cluster.yaml and costs.yaml, made from the models that validate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coordinator.spec.files import schema
from coordinator.spec.files.quantities import DURATION_SCHEMA

FOLDER = Path("docs/reference/files")
HEAD = """\
# {kind}.yaml

{about}
A bare number where a unit belongs is refused. `coordinator validate --schema {kind}` prints the same as a JSON Schema,
for editors.

This page is made from the models in `coordinator/spec/files` by `python -m infra.generate`.
"""
ABOUT = {
    "query": "What is computed, and by when results are due.",
    "cluster": "The machines, and what they are linked by.",
    "costs": "What operators were measured to cost. `coordinator profile` writes it.",
}


def pages() -> dict[Path, str]:
    """The pages by path, in Markdown."""
    return {FOLDER / f"{kind}_yaml.md": _page(kind, json.loads(schema.schema_text(kind))) for kind in schema.MODELS}


def _page(kind: str, document: dict[str, Any]) -> str:
    defined: dict[str, Any] = document.get("$defs", {})
    lines = [HEAD.format(kind=kind, about=ABOUT[kind]), "## The file\n", *_table(document)]
    for name in _order(document, defined):
        lines += [f"## {_title(name)}\n", _text(defined[name]["description"]) + "\n", *_table(defined[name])]
    return "\n".join(lines).rstrip() + "\n"


def _order(node: dict[str, Any], defined: dict[str, Any]) -> list[str]:
    """The models as they are first named, from the top of the file down."""
    found: dict[str, None] = {}
    queue = [node.get("properties", {})]
    while queue:
        names = [name for name in _named(queue.pop(0)) if name not in found]
        found |= dict.fromkeys(names)
        queue += [defined[name].get("properties", {}) for name in dict.fromkeys(names)]
    return list(found)


def _named(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _named(value)
    elif isinstance(node, list):
        for value in node:
            yield from _named(value)


def _title(model: str) -> str:
    """`SourceFile` is about a source."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.removesuffix("File"))
    return words.capitalize()


def _table(model: dict[str, Any]) -> Iterator[str]:
    yield "| key | what | value | unless given |"
    yield "|---|---|---|---|"
    for key, value in model.get("properties", {}).items():
        default = "required" if key in model.get("required", ()) else _default(value)
        yield f"| `{key}` | {_text(value['description'])} | {_value(value)} | {default} |"
    yield ""


def _default(value: dict[str, Any]) -> str:
    given = value.get("default")
    if given is None or given in ([], {}):
        return ""
    return f"`{given}`" if isinstance(given, str) else f"`{json.dumps(given)}`"


def _value(node: dict[str, Any]) -> str:
    """What may be written, in few words."""
    for choices in ("anyOf", "oneOf"):
        if choices in node:
            kinds = dict.fromkeys(_value(each) for each in node[choices] if each.get("type") != "null")
            return " or ".join(kinds)
    if "$ref" in node:
        title = _title(node["$ref"].rpartition("/")[2])
        return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
    if "const" in node or "enum" in node:
        return ", ".join(f"`{each}`" for each in node.get("enum", [node.get("const")]))
    return _of_type(node)


def _of_type(node: dict[str, Any]) -> str:
    kind = node.get("type")
    if node.get("pattern") == DURATION_SCHEMA["pattern"]:
        return "duration, like `30 ms`"
    if kind == "string":
        return f"text, like `{node['examples'][0]}`" if "examples" in node else "text"
    if kind == "array":
        inner = node.get("items", {})
        pair = node.get("prefixItems") or inner.get("prefixItems")
        one = "pair" if pair else _value(inner) if inner else "value"
        return "a pair" if node.get("prefixItems") else f"list of: {one}"
    if kind == "object":
        inner = node.get("additionalProperties")
        named = node.get("patternProperties")
        inner = next(iter(named.values())) if named else inner
        return f"by name: {_value(inner)}" if isinstance(inner, dict) else "by name"
    return _number(node) if kind in ("integer", "number") else {"boolean": "`true`, `false`"}.get(str(kind), "any")


def _number(node: dict[str, Any]) -> str:
    bounds = [
        f"{word} {node[key]:g}"
        for key, word in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"))
        if key in node
    ]
    return " ".join(["whole number" if node["type"] == "integer" else "number", *bounds])


def _text(text: str) -> str:
    """Text that Markdown takes as it is; code stays code."""
    pieces = text.replace("|", "\\|").split("`")
    pieces[::2] = (re.sub(r"([*_<\[{])", r"\\\1", piece) for piece in pieces[::2])
    return "`".join(pieces)


__all__ = ["pages"]
