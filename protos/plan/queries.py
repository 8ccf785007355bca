"""What was asked for: the files that a plan was made of, and what of it belongs to which query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """SHA-256 of the files that the plan was made of; empty: there was none."""

    query: str
    cluster: str
    operators: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPart:
    """What belongs to one of the queries that are planned together: names in the plan, in its own file's order. called:
    what the file calls an operator, by its name there, where the two differ."""

    sources: tuple[str, ...]
    operators: tuple[str, ...]
    outputs: tuple[str, ...]
    sha256: str
    called: Mapping[str, str] = field(default_factory=dict)
