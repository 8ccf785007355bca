"""The cluster of a plan: nodes and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import empty, omitted
from protos.plan.catalog import Catalog
from protos.plan.charges import NodeCharges


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """cores: of its host, of which this is number `core`; cap: the most of its time that may be used; cpu: where it is
    pinned, -1: nowhere. memory_bytes 0: not limited."""

    index: int
    address: str
    speed: float
    host: str
    core: int
    cores: int
    memory_bytes: int
    host_memory_bytes: int
    cap: float
    policy: str
    policy_parameters: Mapping[str, int] = empty()
    policy_by_default: bool = omitted(False)
    emulate_cost_ns: int
    cpu: int
    charges: NodeCharges | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Both ways."""

    between: tuple[str, str]
    latency_ns: int
    bandwidth_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes, the links between them, the security mode and the operators that are installed."""

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]
    security: str
    installed: Catalog
