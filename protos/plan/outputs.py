"""Where results leave a plan's graph, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass

from protos.json_shape import key, omitted
from protos.plan.sources import Connector


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """What an output asks for beyond its deadline."""

    wait_ns: int | None = omitted()
    throughput_per_s: float | None = omitted()
    latency_ns: int | None = omitted()
    queue_bytes: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedConfidence:
    """share: of an output's results, to be within its bound. independent: instances' costs have nothing to do with each
    other, says the query."""

    share: float
    independent: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """origin: the stream that it delivers, by the name of what produces it. age_ns: how old the oldest datum behind a
    result may be when it is delivered; reaction_ns: from a change at a source to the first result that reflects it;
    None: not asked. age_without, reaction_without: sources that they do not count. connector: its node puts
    results there. confidence: None: the bound is to hold for every result."""

    id: int
    origin: str = key("from")
    at: str
    deadline_ns: int
    qos: Qos | None = omitted()
    age_ns: int | None = omitted()
    age_without: tuple[str, ...] = omitted(())
    reaction_ns: int | None = omitted()
    reaction_without: tuple[str, ...] = omitted(())
    connector: Connector | None = omitted()
    confidence: AskedConfidence | None = omitted()
