"""The control process's loop: the gRPC server, the channel to the supervisor, the trace rings."""

import asyncio
import contextlib
import gc

import grpc

from node_agent.control import authorization
from node_agent.control.deploy_driver import DeployDriver
from node_agent.control.plan_check import is_loopback
from node_agent.control.plan_store import PlanStore
from node_agent.control.refused_calls import RefusedCalls
from node_agent.control.service import OPTIONS, Agent
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.control.spool.spool_gauge import SpoolGauge
from node_agent.host import ipc
from node_agent.host.clock import now_ns
from node_agent.host.log import WARNING, Log
from node_agent.host.settings import Settings
from node_agent.tls.names import TlsError
from protos import agent_pb2_grpc

DRAIN_S = 0.03  # at 10 000 records/s a ring of 32 768 is full after 3 s
MOST_CALLS = 32
GRACE_S = 0.5


class Control:
    """One control process."""

    def __init__(self, settings: Settings, supervisor: ipc.Channel) -> None:
        self.settings, self.supervisor = settings, supervisor
        self.log = Log(settings.name, "control", settings.log_json)
        self._dropped = 0  # records, at the last look at the spool

    async def run(self) -> int:
        """Serve; returns the exit code."""
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        state = self.settings.state
        self.spool = SpoolFiles(state.spool, state.rings.paths, log=self.log, headers=state.starts.headers)
        name, cores = self.settings.name, self.settings.cores
        self.spool.drain()  # what the rings tell of plans counts as well
        store = PlanStore(state.plans, node=name, cores=cores, told=self.spool.plans)
        self.deployments = DeployDriver(store, self.log)
        for problem in self.deployments.store.problems:
            self.log.say("plans_damaged", problem, WARNING)
        refused = RefusedCalls(self.log)
        guards = [authorization.OnlyCoordinator()] if self.settings.tls is not None else []
        server = grpc.aio.server(interceptors=[refused, *guards], options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        self.gauge = SpoolGauge(self.spool.spool, self.log, self.spool.age_ns)
        agent = Agent(self.settings, self.deployments, self.spool, gauge=self.gauge, refused=refused.counters)
        agent_pb2_grpc.add_AgentServicer_to_server(agent, server)  # type: ignore[no-untyped-call]
        port, why = self._listen(server)
        if not port:
            self.supervisor.send(ipc.Failed(why))
            return 1
        await server.start()
        metrics, why = await self._serve_metrics(agent)
        if why:
            self.supervisor.send(ipc.Failed(why))
            return 1
        asyncio.get_running_loop().add_reader(self.supervisor.fileno(), self._supervisor_says)
        self.supervisor.send(ipc.ControlReady(port, metrics))
        gc.freeze()
        gc.enable()
        self._supervisor_says()
        spooling = asyncio.create_task(self._drain()), asyncio.create_task(self._sync(agent))
        code = await self.over
        for task in spooling:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await server.stop(GRACE_S)
        self.spool.drain()
        await agent.spool_sync()
        return code

    async def _serve_metrics(self, agent: Agent) -> tuple[int, str]:
        """The port, 0 where nobody asked for it, and why it cannot be."""
        if self.settings.metrics is None:
            return 0, ""
        from node_agent.control.metrics import http_server
        from node_agent.control.metrics.scrape import Scrapes

        host, port = self.settings.metrics
        try:
            return await http_server.serve(host, port, Scrapes(agent, self.settings), self.settings.tls), ""
        except OSError as error:
            return 0, f"metrics cannot be served on {host}:{port}: {error.strerror}; give another with --metrics"
        except ValueError as error:  # of the identity
            return 0, str(error)

    def _listen(self, server: grpc.aio.Server) -> tuple[int, str]:
        (host, port), tls = self.settings.control, self.settings.tls
        if tls is None and not is_loopback(host):
            return 0, f"control address {host}: without TLS only loopback addresses are served; use 127.0.0.1"
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, authorization.credentials(tls))
        except TlsError as error:
            return 0, str(error)
        except RuntimeError:
            bound = 0
        return bound, f"control port {port} on {host} is taken; stop what uses it or give another with --control"

    def _supervisor_says(self) -> None:
        for message, descriptor in self.supervisor.receive():
            match message:
                case ipc.RuntimeStarted(boot, _, _, core) if descriptor is not None:
                    self.deployments.runtime_started(core, boot, ipc.Channel.of(descriptor))
                case ipc.RuntimeEnded(boot):
                    self.deployments.runtime_ended(boot)
                    self.spool.drain()
                case ipc.Stop():
                    self._end(0)
        if self.supervisor.closed:
            self._end(1)

    def _end(self, code: int) -> None:
        asyncio.get_running_loop().remove_reader(self.supervisor.fileno())
        if not self.over.done():
            self.over.set_result(code)

    async def _drain(self) -> None:
        while True:
            self.spool.drain()
            await asyncio.sleep(DRAIN_S)

    async def _sync(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(self.settings.sync_s)
            await agent.spool_sync()
            dropped, self._dropped = self.spool.dropped > self._dropped, self.spool.dropped
            self.gauge.look(now_ns(), dropped)
            self.settings.state.reserve.fill()  # where the disk was full, and has room again
