"""Where tuples enter a plan's graph, and the places outside that it is connected to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import Json, key, omitted
from protos.plan.arrivals import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Of a source: at most `tuples` in any `span_ns`. value: the expression's text, tree what agents evaluate; both
    empty: the earliest go on."""

    tuples: int
    span_ns: int
    value: str = ""
    tree: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """How the node of a source makes its tuples itself. run empty: a timer; every_ns 0: an iterator, at its own pace;
    offset_ns: of the ticks, below every_ns; cost_ns: CPU time of a call, at speed 1, `guessed` where nobody says it."""

    run: str = ""
    parameters: Mapping[str, Json] = key("with", default_factory=dict)
    every_ns: int = 0
    offset_ns: int = 0
    cost_ns: int = 0
    guessed: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A place outside that a node reads a source's messages from, or puts an output's results to; as in plan.proto."""

    kind: str
    url: str
    topic: str = omitted("")
    encoding: str = omitted("")
    schema: str = omitted("")
    stamp: str = omitted("")
    qos: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """forbid_streams: pairs of nodes between which its stream may not go. pull: its node makes its tuples; None:
    clients feed it. max_bytes: of a payload; 0: not declared. connector: a client that the node runs."""

    id: int
    at: str
    type: str
    stream: int
    max_age_ns: int
    arrival: Arrival
    forbid_streams: tuple[tuple[str, str], ...]
    limit: Limit | None = omitted()
    on_full: str = omitted("refuse")
    pull: Pull | None = omitted()
    max_bytes: int = omitted(0)
    connector: Connector | None = omitted()
