"""The control process from its start to its end.

It is forked by the supervisor, which imports no asyncio: that is loaded here, after the fork.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from node_agent.host.channel_end import ChannelEnd
from node_agent.host.settings import Settings


def main(settings: Settings, supervisor: ChannelEnd) -> int:
    """Serve until the supervisor says Stop or is gone. Returns the exit code."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    with without_openssl() if settings.tls is None else nullcontext():
        import asyncio
    from node_agent.control.grpc_server import GrpcServer
    from node_agent.control.server import LOOKS, Control
    from protos.block_compression import cheapest

    control = Control(settings, supervisor, GrpcServer(settings), compression=cheapest(), looks=LOOKS)
    return asyncio.run(control.run())


@contextmanager
def without_openssl() -> Iterator[None]:
    """asyncio loads it where it can, and does without it."""
    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["ssl"]
