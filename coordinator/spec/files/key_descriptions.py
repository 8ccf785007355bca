"""Descriptions of keys, which stand in the docstrings of the models: a line `key: what it is` below the summary."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

LINE = re.compile(r"^(\w+): (.+(?:\n {2,}.+)*)$", re.MULTILINE)


def summary_of(model: type) -> str:
    """What stands before the keys."""
    return " ".join(cleandoc(model.__doc__ or "").partition("\n\n")[0].split())


def keys_of(model: type) -> dict[str, str]:
    """By key as it is written in the file; of classes that it inherits from as well."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        keys = cleandoc(each.__dict__.get("__doc__") or "").partition("\n\n")[2]
        found |= {key: " ".join(about.split()) for key, about in LINE.findall(keys)}
    return found


def describe(model: type, schema: dict[str, Any]) -> None:
    """Puts the descriptions into the JSON Schema of the model."""
    keys = keys_of(model)
    schema["description"] = summary_of(model)
    for key, value in schema.get("properties", {}).items():
        if key in keys:
            value["description"] = keys[key]
