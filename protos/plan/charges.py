"""What bounds charge for the runtime."""

from __future__ import annotations

from dataclasses import dataclass

from protos.json_shape import omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCharges:
    """What the runtime costs on a node, ns of its CPU time at any speed. decision_ns: choosing and ending one
    task instance; drain_ns: one tuple, or absence punctuation, read from a socket, until it is admitted; side_ns: one
    update of a side input of one operator."""

    decision_ns: int
    drain_ns: int
    side_ns: int

    def __post_init__(self) -> None:
        if min(self.decision_ns, self.drain_ns, self.side_ns) < 0:
            raise ValueError("charges cannot be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCharged:
    """said: where a node's charges come from."""

    said: str
    decision_ns: int
    drain_ns: int
    side_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedOverhead:
    """What the bounds charge for the runtime."""

    decision_ns: int
    drain_ns: int
    side_ns: int
    drained: bool
    drain_every_ns: int
    tuple_bytes: int
    per_node: bool
    loading_ns: int = omitted(0)
