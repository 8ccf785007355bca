"""The shape of cluster.yaml, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator

from coordinator.query_file import Duration, DurationOrZero, Name, Pair, Strict
from coordinator.units_of_measure import rate_bps, size_bytes

POLICIES = ("edf", "edf-e2e", "edf-op", "fifo")
NOT_YET: dict[str, str] = {}


def _bandwidth(text: object) -> int:
    value = rate_bps(text)
    if value <= 0:
        raise ValueError(f"is '{text}'; it has to be above 0, like '100 Mbit/s'")
    return value


def _memory(text: object) -> int:
    value = size_bytes(text)
    if value <= 0:
        raise ValueError(f"is '{text}'; it has to be above 0, like '256 MiB'")
    return value


Bandwidth = Annotated[int, BeforeValidator(_bandwidth), WithJsonSchema({"type": "string", "examples": ["100 Mbit/s"]})]
Memory = Annotated[int, BeforeValidator(_memory), WithJsonSchema({"type": "string", "examples": ["256 MiB"]})]


class EmulateFile(Strict):
    """The node plays a slower one: every operator uses at least this much CPU time per tuple."""

    cost_per_tuple: Duration


class NodeFile(Strict):
    """`speed` 1 is the speed at which costs are declared; `cap`: the largest utilisation; `cpu`: the core to pin to."""

    address: str
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    cores: Annotated[int, Field(ge=1, strict=True)] = 1
    memory: Memory | None = None
    cap: Annotated[float, Field(gt=0, le=1)] = 0.9
    policy: str = "edf"
    emulate: EmulateFile | None = None
    cpu: Annotated[int, Field(ge=0, strict=True)] | None = None

    @field_validator("cores")
    @classmethod
    def _one_core(cls, value: int) -> int:
        if value != 1:
            raise ValueError("other than 1 is not available yet; write one node per core, each with its 'cpu:'")
        return value


class LinkFile(Strict):
    """Both ways, worst case."""

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
