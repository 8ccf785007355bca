"""What the coordinator needs of the world to talk to agents: `grpc_calls.py` has the real one, simulations another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class CallError(Exception):
    """A call has no answer. code: as gRPC has it, in lower case; details: as the other side says. why: what is wrong
    with the connection, where that was found out."""

    def __init__(self, code: str, details: str = "", why: str = "") -> None:
        super().__init__(code, details, why)
        self.code, self.details, self.why = code, details, why


SILENT = frozenset({"unavailable", "deadline_exceeded"})  # codes of a node that did not answer


class Calls(Protocol):
    """Calls to agents by name, and the time that goes by meanwhile."""

    def all(self, requests: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any | CallError]]:
        """Call each method on the nodes of its requests, all at once; by method, each node's reply, or what went
        wrong. A look at why a node is silent is part of the time: everything has ended within `seconds`."""

    def stream(self, method: str, node: str, request: Any, seconds: float) -> Iterator[Any]:
        """The replies of one node. Raises CallError."""

    def close(self) -> None:
        """No more calls."""

    def monotonic(self) -> float:
        """A clock for patience [s]."""

    def sleep(self, seconds: float) -> None:
        """Let that time go by."""
