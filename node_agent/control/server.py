"""The control process's loop: the gRPC server, the channel to the supervisor, the trace rings."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable
from typing import Protocol, Self

from node_agent.control.deploy_driver import DeployDriver
from node_agent.control.plan_store import PlanStore
from node_agent.control.service import Agent
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.control.spool.spool_gauge import SpoolGauge
from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd, OpenEnd
from node_agent.host.log import ERROR, WARNING, Log
from node_agent.host.settings import Settings
from node_agent.problems import ProblemError
from protos.block_compression import ZLIB, Compression

DRAIN_S = 0.03  # at 10 000 records/s a ring of 32 768 is full after 3 s
LOOKS = 8  # at the rings, after which what is less than a whole block is taken as well


class NotServedError(ProblemError):
    """Calls or metrics cannot be served: why, and the mend."""

    @classmethod
    def of(cls, error: ProblemError) -> Self:
        """The same mistake: an identity cannot be used, for instance."""
        problem, mistake = error.problem, error.mistake
        return cls(error.code, mistake.text, mistake.mend, subject=mistake.subject, file=problem.file)


class Server(Protocol):
    """Answers calls of the coordinator with an `Agent`, and serves what is measured."""

    async def start(self, agent: Agent) -> tuple[int, int]:
        """The ports of calls and of metrics; 0: these are not served. Raises NotServedError."""

    async def stop(self) -> None:
        """No more calls; those that are under way have a moment left."""


def _settle() -> None:
    gc.freeze()
    gc.enable()


class Control:
    """One control process. monotonic: a clock for patience [s]; settle: called when everything is loaded; compression:
    of the records in the spool; looks: at the rings, of which one takes all and the others whole blocks."""

    def __init__(
        self, settings: Settings, supervisor: ChannelEnd, server: Server, open_end: OpenEnd = ipc.Channel.of,
        log: Log | None = None, monotonic: Callable[[], float] = time.monotonic, settle: Callable[[], None] = _settle,
        compression: Compression = ZLIB, looks: int = 1,
    ) -> None:  # fmt: skip
        self.settings, self.supervisor = settings, supervisor
        self.log = log or Log(settings.name, "control", settings.log_json)
        self._server, self._open_end, self._monotonic, self._settle = server, open_end, monotonic, settle
        self._compression, self._looks = compression, looks
        self._dropped = 0  # records, at the last look at the spool

    async def run(self) -> int:
        """Serve; returns the exit code."""
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        state = self.settings.state
        try:
            self.spool = SpoolFiles(
                state.spool, state.rings, log=self.log, headers=state.starts.headers, disk=state.disk,
                compression=self._compression,
            )  # fmt: skip
        except OSError as error:  # as on a disk that is read-only now; what it has is left as it is
            self.log.say("spool_unusable", f"the spool in {state.spool} cannot be mended ({error.strerror})", ERROR)
            return 1  # control is started again later, and nothing else waits for it
        name, cores = self.settings.name, self.settings.cores
        self.spool.drain()  # what the rings tell of plans counts as well
        store = PlanStore(state.plans, node=name, cores=cores, epochs_in_spool=self.spool.plans, disk=state.disk)
        try:
            self.deployments = DeployDriver(store, self.log, self.supervisor.send)
        except OSError as error:  # a disk that fails now may have it all at the next start
            self.log.say("plans_unreadable", f"the plans in {state.plans} cannot be read ({error.strerror})", ERROR)
            return 1
        for problem in self.deployments.store.problems:
            self.log.say("plans_damaged", problem, WARNING)
        self.gauge = SpoolGauge(self.spool.spool, self.log, self.spool.age_ns)
        agent = self.agent = Agent(
            self.settings, self.deployments, self.spool, monotonic=self._monotonic, gauge=self.gauge
        )
        try:
            port, metrics = await self._server.start(agent)
        except NotServedError as error:
            self.supervisor.send(ipc.Failed(str(error)))
            return 1
        asyncio.get_running_loop().add_reader(self.supervisor.fileno(), self._supervisor_says)
        self.supervisor.send(ipc.ControlReady(port, metrics))
        self._settle()
        self._supervisor_says()
        going = [asyncio.create_task(each) for each in (self._drain(), self._sync(agent), self._beat())]
        code = await self.over
        for task in going:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._server.stop()
        self.spool.drain()
        await agent.spool_sync()
        return code

    def _supervisor_says(self) -> None:
        for message, descriptor in self.supervisor.receive():
            match message:
                case ipc.RuntimeStarted(boot, _, _, core) if descriptor is not None:
                    self.deployments.runtime_started(core, boot, self._open_end(descriptor))
                    self._take_rest()  # its ring is known from now on
                case ipc.RuntimeEnded(boot):
                    self.deployments.runtime_ended(boot)
                    self.spool.drain()
                case ipc.Replaced():
                    self.agent.replaced = message
                case ipc.Connectors():
                    self.agent.connectors = message
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
            for look in range(self._looks):
                self.spool.drain(whole_blocks=look > 0)
                await asyncio.sleep(DRAIN_S)

    def _take_rest(self) -> None:
        """What waits for a whole block, where anything does."""
        if self._looks > 1:
            self.spool.drain()

    async def _beat(self) -> None:
        while True:
            self.supervisor.send(ipc.Alive())
            self.deployments.connector_plans.tell()
            await asyncio.sleep(ipc.ALIVE_S)

    async def _sync(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(self.settings.sync_s)
            self._take_rest()
            await agent.spool_sync()
            dropped, self._dropped = self.spool.dropped > self._dropped, self.spool.dropped
            self.gauge.look(int(self._monotonic() * 1e9), dropped)
            self.settings.state.reserve.fill()  # where the disk was full, and has room again
