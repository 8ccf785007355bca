"""What the author of an operator and a client import; nothing in this package does.

    from node_agent.sdk import Aged, At, Many, Sink, Source, Tick, aggregate, codec, operator, source

Importing it has no side effect and loads neither protobuf nor sockets: what clients use is loaded at first use.
`docs/how_to/operators.md` is the manual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from node_agent.operators.api import At, Many, aggregate, codec, operator
from node_agent.operators.source_functions import Aged, Tick, source

if TYPE_CHECKING:
    from node_agent.client.async_source import AsyncSource
    from node_agent.client.client import Admitted, Outcomes, Refused, Result, Sink, Source
    from node_agent.client.connection import AgentError

__all__ = [
    "Admitted", "Aged", "AgentError", "AsyncSource", "At", "Many", "Outcomes", "Refused", "Result", "Sink", "Source",
    "Tick", "aggregate", "codec", "operator", "source",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        from node_agent.client import async_source, client, connection

        rooms = {"AgentError": connection, "AsyncSource": async_source}
        return getattr(rooms.get(name, client), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
