"""What the coordinator needs of the world to talk to agents: `grpc_calls.py` has the real one, simulations another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class CallError(Exception):
    """A call has no answer. code: as gRPC has it, in lower case; details: as the other side says."""

    def __init__(self, code: str, details: str = "") -> None:
        super().__init__(code, details)
        self.code, self.details = code, details


class Calls(Protocol):
    """Calls to agents by name, and the time that goes by meanwhile."""

    def all(self, method: str, requests: Mapping[str, Any], seconds: float) -> dict[str, Any | CallError]:
        """Call the method on every node in `requests` at once; each node's reply, or what went wrong."""

    def stream(self, method: str, node: str, request: Any, seconds: float) -> Iterator[Any]:
        """The replies of one node. Raises CallError."""

    def diagnose(self, node: str) -> str:
        """Why a node that does not answer cannot be talked to, where that can be found out; empty: no reason."""

    def close(self) -> None:
        """No more calls."""

    def monotonic(self) -> float:
        """A clock for patience [s]."""

    def sleep(self, seconds: float) -> None:
        """Let that time go by."""
