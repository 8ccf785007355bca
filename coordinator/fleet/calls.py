"""What the coordinator needs of the world to talk to agents: `grpc_calls.py` has the real one, simulations another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol


class CallError(Exception):
    """A call has no answer. code: as gRPC has it, in lower case; details: as the other side says."""

    def __init__(self, code: str, details: str = "") -> None:
        super().__init__(code, details)
        self.code, self.details = code, details


class Calls(Protocol):
    """Calls to agents by name, and the time that goes by meanwhile."""

    def all(self, requests: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any | CallError]]:
        """Call each method on the nodes of its requests, all at once; by method, each node's reply, or what went
        wrong."""

    def stream(self, method: str, node: str, request: Any, seconds: float) -> Iterator[Any]:
        """The replies of one node. Raises CallError."""

    def diagnose(self, nodes: Collection[str], seconds: float) -> dict[str, str]:
        """Why nodes that did not answer within that time cannot be talked to, as far as that can be found out."""

    def close(self) -> None:
        """No more calls."""

    def monotonic(self) -> float:
        """A clock for patience [s]."""

    def sleep(self, seconds: float) -> None:
        """Let that time go by."""
