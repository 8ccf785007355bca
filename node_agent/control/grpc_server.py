"""Serves an agent's calls over gRPC, and what is measured over HTTP."""

import grpc

from node_agent.control import authorization
from node_agent.control.plan_check import MOST_PLAN_BYTES, is_loopback
from node_agent.control.refused_calls import RefusedCalls
from node_agent.control.server import NotServedError
from node_agent.control.service import Agent
from node_agent.host.settings import Settings
from node_agent.tls.names import TlsError
from protos import agent_pb2_grpc

MOST_CALLS = 32
GRACE_S = 0.5
MOST_CONNECTIONS = 256
OPTIONS = (
    ("grpc.so_reuseport", 0),  # a second agent on the port is refused, not given half of the calls
    ("grpc.max_receive_message_length", MOST_PLAN_BYTES + (1 << 16)),
    ("grpc.max_send_message_length", MOST_PLAN_BYTES + (1 << 16)),
    ("grpc.max_metadata_size", 16 << 10),
    # Strangers: a connection that says nothing ends soon, and they leave descriptors for the trace and for plans.
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", 5000),
)


class GrpcServer:
    """`Server` of a live agent."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._server: grpc.aio.Server | None = None

    async def start(self, agent: Agent) -> tuple[int, int]:
        """Listen. Raises NotServedError."""
        guards = [authorization.OnlyCoordinator()] if self.settings.tls is not None else []
        refused = RefusedCalls(agent.deployments.log, agent.refused)
        server = grpc.aio.server(interceptors=[refused, *guards], options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        agent_pb2_grpc.add_AgentServicer_to_server(agent, server)  # type: ignore[no-untyped-call]
        port = self._listen(server)
        await server.start()
        self._server = server
        return port, await self._serve_metrics(agent)

    async def stop(self) -> None:
        """With some grace."""
        if self._server is not None:
            await self._server.stop(GRACE_S)

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

    def _listen(self, server: grpc.aio.Server) -> int:
        (host, port), tls = self.settings.control, self.settings.tls
        if tls is None and not is_loopback(host):
            why = f"control address {host}: without TLS only loopback addresses are served"
            raise NotServedError("insecure_off_loopback", why, "use 127.0.0.1", subject="--control")
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, authorization.credentials(tls))
        except TlsError as error:
            raise NotServedError.of(error) from None
        except RuntimeError:
            bound = 0
        if not bound:
            mend = "stop what uses it or give another with --control"
            raise NotServedError("in_use", f"control port {port} on {host} is taken", mend, subject="--control")
        return bound
