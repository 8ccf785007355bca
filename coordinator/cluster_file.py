"""The shape of cluster.yaml, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from coordinator.query_file import Duration, DurationOrZero, Memory, Name, Pair, Strict
from coordinator.units_of_measure import rate_bps

POLICIES = (
    "edf", "edf-e2e", "edf-op", "fifo", "spt", "rr", "muf", "taat", "bts", "bts1", "ats", "ats1", "adaptive", "qed",
    "pqed", "pqed-printed", "slack", "ideal",
)  # fmt: skip
NOT_YET: dict[str, str] = {}
CORE_LINK_NS = 500_000  # assumed where not given: above the measured p99 of hops between two cores


def _bandwidth(text: object) -> int:
    value = rate_bps(text)
    if value <= 0:
        raise ValueError(f"is '{text}'; it has to be above 0, like '100 Mbit/s'")
    return value


Bandwidth = Annotated[int, BeforeValidator(_bandwidth), WithJsonSchema({"type": "string", "examples": ["100 Mbit/s"]})]


class EmulateFile(Strict):
    """The node plays a slower one: every operator uses at least this much CPU time per tuple."""

    cost_per_tuple: Duration


class ChargesFile(Strict):
    """What the runtime costs there beside the operators, as `node-agent charges` measures it: CPU time per task
    instance, per tuple read from a socket, per update of a side input."""

    decision: Duration
    drain: Duration
    side: Duration


class NodeFile(Strict):
    """`speed` 1 is the speed at which costs are declared; `cap`: the largest utilisation of a core; `cpu`: the core to
    pin to, the first of `cores` in a row; `core_link`: latency between two of its cores."""

    address: str
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    cores: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    core_link: DurationOrZero | None = None
    memory: Memory | None = None
    cap: Annotated[float, Field(gt=0, le=1)] = 0.9
    policy: str = "edf"
    emulate: EmulateFile | None = None
    charges: ChargesFile | None = None
    cpu: Annotated[int, Field(ge=0, strict=True)] | None = None


class LinkFile(Strict):
    """Both ways, worst case, between two nodes; all their cores share it."""

    between: Pair
    latency: DurationOrZero = 0
    bandwidth: Bandwidth | None = None


class ClusterFile(Strict):
    """cluster.yaml. Without `links:` every pair of nodes is linked, without delay."""

    shimekiri: Literal[1]
    nodes: dict[Name, NodeFile] = Field(min_length=1)
    links: list[LinkFile] | None = None
    operators: str | None = None
    security: Any = "insecure-loopback"
