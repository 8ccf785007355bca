"""Serves an agent's calls over gRPC, and what is measured over HTTP.

gRPC is spoken here over h2 and not by its own library, which takes 15 MB in each agent
([why](../../docs/decisions/grpc_without_its_library.md)).
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from node_agent.control.calls.grpc_connection import OPENING_S, Calls, GrpcConnection, Method, Replies
from node_agent.control.calls.refused_calls import RefusedCalls
from node_agent.control.plan_check import MOST_PLAN_BYTES, is_loopback
from node_agent.control.server import NotServedError
from node_agent.control.service import Agent
from node_agent.host.settings import Settings
from node_agent.tls.names import TlsError
from protos import agent_pb2

if TYPE_CHECKING:
    import ssl

SERVICE = agent_pb2.DESCRIPTOR.services_by_name["Agent"]
MOST_MESSAGE_BYTES = MOST_PLAN_BYTES + (1 << 16)
GRACE_S = 0.5
# Strangers: a connection that says nothing ends soon, and they leave descriptors for the trace and for plans.
MOST_CONNECTIONS = 256
MOST_HANDSHAKES = 32  # of TLS, a quarter of a megabyte each
AGAIN_S = 0.1


class GrpcServer:
    """`Server` of a live agent."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._listener: _Listener | None = None

    async def start(self, agent: Agent) -> tuple[int, int]:
        """Listen. Raises NotServedError."""
        log, tls = agent.deployments.log, self.settings.tls
        calls = Calls(methods(agent), RefusedCalls(log, agent.refused), log, tls is not None, MOST_MESSAGE_BYTES)
        listener = self._listener = _Listener(self._bound(), calls, self._context(tls))
        return listener.port, await self._serve_metrics(agent)

    async def stop(self) -> None:
        """With some grace."""
        if self._listener is not None:
            await self._listener.stop(GRACE_S)

    async def _serve_metrics(self, agent: Agent) -> int:
        """The port, 0 where nobody asked for it."""
        if self.settings.metrics is None:
            return 0
        from node_agent.control.metrics import http_server
        from node_agent.control.metrics.scrape import Scrapes

        host, port = self.settings.metrics
        try:
            return await http_server.serve(host, port, Scrapes(agent, self.settings), self.settings.tls)
        except OSError as error:
            why = f"metrics cannot be served on {host}:{port}: {error.strerror}"
            raise NotServedError("not_usable", why, "give another with --metrics", subject="--metrics") from None
        except TlsError as error:
            raise NotServedError.of(error) from None

    def _bound(self) -> socket.socket:
        host, port = self.settings.control
        if self.settings.tls is None and not is_loopback(host):
            why = f"control address {host}: without TLS only loopback addresses are served"
            raise NotServedError("insecure_off_loopback", why, "use 127.0.0.1", subject="--control")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        try:
            found = socket.create_server(
                (host, port), family=family, backlog=MOST_CONNECTIONS, dualstack_ipv6=both
            )  # fmt: skip
        except OSError:
            mend = "stop what uses it or give another with --control"
            raise NotServedError(
                "in_use", f"control port {port} on {host} is taken", mend, subject="--control"
            ) from None
        found.setblocking(False)
        return found

    def _context(self, identity: Path | None) -> "ssl.SSLContext | None":
        """A caller must show a certificate of the same CA."""
        if identity is None:
            return None
        from node_agent.tls.identity import server_context

        try:
            context = server_context(identity)
        except TlsError as error:
            raise NotServedError.of(error) from None
        context.set_alpn_protocols(["h2"])
        return context


def methods(agent: Agent) -> dict[str, Method]:
    """By their paths."""

    def replies(name: str, streams: bool) -> Replies:
        call: Callable[[Message], object] = getattr(agent, name)

        async def only(request: Message) -> AsyncIterator[Message]:
            yield await cast("Callable[[Message], asyncio.Future[Message]]", call)(request)

        return cast("Replies", call) if streams else only

    return {
        f"/{SERVICE.full_name}/{each.name}": Method(
            each.name, GetMessageClass(each.input_type).FromString, replies(each.name, each.server_streaming)
        )
        for each in SERVICE.methods
    }


class _Listener:
    """Accepts. Of too many connections the oldest goes that has not said anything yet."""

    def __init__(self, listening: socket.socket, calls: Calls, context: "ssl.SSLContext | None") -> None:
        self._listening, self._calls, self._context = listening, calls, context
        self._most_silent = MOST_CONNECTIONS if context is None else MOST_HANDSHAKES
        self._silent: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._open: dict[asyncio.Task[None], GrpcConnection] = {}
        self._task = asyncio.create_task(self._run())
        self.port: int = listening.getsockname()[1]

    async def stop(self, grace_s: float) -> None:
        """No more connections; calls that are under way have so long."""
        self._task.cancel()
        await asyncio.wait({self._task})
        self._listening.close()
        until_s = asyncio.get_running_loop().time() + grace_s
        for connection in self._open.values():
            connection.leave()
        while asyncio.get_running_loop().time() < until_s and not all(each.idle for each in self._open.values()):
            await asyncio.sleep(0.01)
        for connection in self._open.values():
            connection.close()
        if self._open:
            await asyncio.wait(self._open, timeout=grace_s)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                end, _ = await loop.sock_accept(self._listening)
            except OSError:  # no descriptor is left
                await asyncio.sleep(AGAIN_S)
                continue
            with contextlib.suppress(OSError):  # it may have gone again
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if await self._has_room():
                self._begin(end)
            else:
                end.close()
            await asyncio.sleep(0)  # an accept that succeeds at once lets nobody else run

    async def _has_room(self) -> bool:
        if len(self._open) < MOST_CONNECTIONS and len(self._silent) < self._most_silent:
            return True
        oldest = next(iter(self._silent), None)
        if oldest is None:
            return False
        oldest.cancel()
        await asyncio.wait({oldest})  # its descriptor goes before the next connection comes
        return True

    def _begin(self, end: socket.socket) -> None:
        connection = GrpcConnection(self._calls, lambda: self._silent.pop(task, None))
        task = asyncio.create_task(self._serve(end, connection))
        self._open[task] = connection
        self._silent[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        del self._open[task]
        self._silent.pop(task, None)

    async def _serve(self, end: socket.socket, connection: GrpcConnection) -> None:
        times = {} if self._context is None else {"ssl_handshake_timeout": OPENING_S, "ssl_shutdown_timeout": OPENING_S}
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):
                await loop.connect_accepted_socket(lambda: connection, end, ssl=self._context, **times)
                await connection.over
        finally:
            connection.abort()
