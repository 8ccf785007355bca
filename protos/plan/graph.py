"""A plan's graph: sources, operators, outputs and the streams between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import empty, omitted
from protos.plan.arrivals import Arrival
from protos.plan.operators import Operator
from protos.plan.outputs import Output
from protos.plan.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What a source or an operator produces. type: of its codec. max_bytes: of a payload; 0: as fits one frame."""

    id: int
    type: str
    max_bytes: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of an operator, by the name that users know. add: the operator that collects; source: what they are
    admitted as; useful_ns: how long a result is of use after its end; arrival: None by count."""

    add: str
    source: int
    at: str
    kind: str
    length: int
    hop: int
    lateness_ns: int
    first: bool
    by: str
    on: tuple[str, ...]
    size: str
    most: int
    useful_ns: int
    wait_ns: int
    sources: tuple[str, ...]
    shed: str | None
    arrival: Arrival | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """All of it by name."""

    sources: Mapping[str, Source]
    operators: Mapping[str, Operator]
    outputs: Mapping[str, Output]
    streams: Mapping[str, Stream]
    windows: Mapping[str, Windows] = empty()
