"""The operators that agents have installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import Json, empty, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An operator of operators.json. code: SHA-256 of its code; empty: not told."""

    version: str
    code: str
    kind: str
    inputs: Mapping[str, str]
    side: Mapping[str, str]
    output: str
    parameters: Mapping[str, Json] = key("with")
    variadic: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """What agents have installed. complete: nothing else. fields: of codecs, where they are known."""

    complete: bool
    codecs: tuple[str, ...]
    fields: Mapping[str, Json] = empty()
    operators: Mapping[str, Installed]
