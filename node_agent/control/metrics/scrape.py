"""What a scrape asks for: the runtimes' statuses, between two task instances, as Status does; the rest is control's."""

import asyncio
import os
import time
from pathlib import Path

import psutil

from node_agent.control.deployment import State
from node_agent.control.metrics import sampling
from node_agent.control.metrics.sampling import Asked, Operator, Process
from node_agent.control.service import Agent, version
from node_agent.host.files.place_names import place_name
from node_agent.host.settings import Settings
from protos import agent_pb2

FRESH_S = 0.25  # scrapes that come closer together get the same page
PROFILE_S = 10.0  # costs change slowly, and telling them takes the scheduling thread longest


class Scrapes:
    """One per control process. Raises TlsError where the agent's identity is none."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        self.agent, self.settings = agent, settings
        self._asking = asyncio.Lock()
        self._page, self._page_s = "", -FRESH_S
        self._operators: list[Operator] = []
        self._profiled_s = -PROFILE_S
        self._until_s = None if settings.tls is None else _until_s(settings.tls)

    async def page(self) -> str:
        """The page of /metrics."""
        async with self._asking:
            if time.monotonic() - self._page_s >= FRESH_S:
                self._page = sampling.text(await self._ask())
                self._page_s = time.monotonic()
            return self._page

    async def health(self) -> tuple[bool, str]:
        """As the call Health: whether all that is committed runs, and what was found wrong."""
        async with self._asking:
            reply = await self.agent.Health(agent_pb2.HealthRequest())
        return reply.serving, reply.why

    async def _ask(self) -> Asked:
        agent, settings = self.agent, self.settings
        statuses, machine = await agent.statuses(), agent.deployments.machine
        if time.monotonic() - self._profiled_s >= PROFILE_S:
            self._operators = await self._profile()
            self._profiled_s = time.monotonic()
        pids = {"supervisor": os.getppid(), "control": os.getpid()} | {
            f"runtime {place_name(settings.name, core)}": status.pid
            for core, status in enumerate(statuses)
            if status is not None and status.pid
        }
        if agent.connectors.pid:
            pids["connectors"] = agent.connectors.pid
        spool = agent.spool
        return Asked(
            settings.name, settings.cores, version(), settings.clock, not machine.failed and None not in statuses,
            statuses, agent.deployments.restarts, machine.durable.deployments, self._operators,
            [found for name, pid in pids.items() if (found := _process(name, pid)) is not None],
            (spool.spool.bytes, spool.spool.limit_bytes, spool.dropped), self._until_s,
            agent.gauge.now if agent.gauge is not None else None, agent.connectors,
        )  # fmt: skip

    async def _profile(self) -> list[Operator]:
        found = []
        for plan in self.agent.deployments.machine.durable.deployments:
            if plan.state in {State.COMMITTED, State.DRAINING}:
                request = agent_pb2.ProfileRequest(hash=bytes.fromhex(plan.hash))
                for cost in (await self.agent.Profile(request)).costs:
                    if cost.of != agent_pb2.MEASURED_OPERATOR:
                        continue
                    name = f"{cost.name} (degraded)" if cost.degraded else cost.name
                    found.append(Operator(plan.hash, name, cost.tuples, cost.total_ns, cost.worst_ns))
        return found


def _until_s(folder: Path) -> float:
    from node_agent.tls import identity  # loads OpenSSL

    return identity.load(folder).until_s


def _process(name: str, pid: int) -> Process | None:
    """None: it has just ended."""
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return Process(name, process.memory_info().rss, times.user + times.system)
    except psutil.Error:
        return None
