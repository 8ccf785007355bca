"""The agent's gRPC service (protos/agent.proto). What comes in is checked in check.py."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from node_agent import ipc
from node_agent.control.check import MOST_PLAN_BYTES, RefusalError, checked_hash, checked_prepare
from node_agent.control.deployment import Reply
from node_agent.control.driver import DeployDriver
from node_agent.control.spool_files import SpoolFiles
from node_agent.settings import Settings
from protos import agent_pb2, agent_pb2_grpc, trace_pb2

ASK_S = 1.0
DESCRIBE_S = 30.0
MOST_HELD = 4096
OPTIONS = (
    ("grpc.so_reuseport", 0),  # a second agent on the port is refused, not given half of the calls
    ("grpc.max_receive_message_length", MOST_PLAN_BYTES + (1 << 16)),
    ("grpc.max_send_message_length", 4 << 20),
    ("grpc.max_metadata_size", 16 << 10),
)

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(slots=True)
class Agent(agent_pb2_grpc.AgentServicer):
    """All calls of one agent."""

    settings: Settings
    deployments: DeployDriver
    spool: SpoolFiles
    described: str = ""

    # -- deployments

    async def Prepare(self, request: agent_pb2.PrepareRequest, context: Context) -> agent_pb2.PlanReply:  # noqa: N802
        """Check, load in the runtime, store; accepted once it survives a crash."""
        try:
            plan = checked_prepare(request, self.settings.name)
        except RefusalError as refusal:
            return agent_pb2.PlanReply(accepted=False, why=str(refusal))
        return _reply(await self.deployments.prepare(plan))

    async def Commit(self, request: agent_pb2.CommitRequest, context: Context) -> agent_pb2.PlanReply:  # noqa: N802
        """Run a prepared plan."""
        return await self._on_plan(self.deployments.commit, request.hash, request.epoch)

    async def Abort(self, request: agent_pb2.AbortRequest, context: Context) -> agent_pb2.PlanReply:  # noqa: N802
        """Forget a prepared plan, and refuse its epoch from now on."""
        return await self._on_plan(self.deployments.abort, request.hash, request.epoch)

    async def Stop(self, request: agent_pb2.StopRequest, context: Context) -> agent_pb2.PlanReply:  # noqa: N802
        """Admit no more, drain, forget."""
        return await self._on_plan(self.deployments.stop, request.hash, request.epoch)

    async def _on_plan(self, what: Callable[[str, int], Any], hash_: bytes, epoch: int) -> agent_pb2.PlanReply:
        try:
            return _reply(await what(checked_hash(hash_, epoch), epoch))
        except RefusalError as refusal:
            return agent_pb2.PlanReply(accepted=False, why=str(refusal))

    # -- what there is to know

    async def Describe(self, request: agent_pb2.DescribeRequest, context: Context) -> agent_pb2.Description:  # noqa: N802
        """The machine and what is installed on it."""
        status = await self._status()
        return agent_pb2.Description(
            node=self.settings.name,
            version=_version(),
            operators_json=await self._operators(context),
            data_port=self.settings.data[1],
            rt=status is not None and status.rt,
            clock=self.settings.clock,
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )

    async def Status(self, request: agent_pb2.StatusRequest, context: Context) -> agent_pb2.StatusReply:  # noqa: N802
        """Counts of the runtime, and the plans as they are on disk."""
        status = await self._status()
        counts = {} if status is None else {each[0]: each[4:7] for each in status.plans}
        reply = agent_pb2.StatusReply(node=self.settings.name, runtime_alive=status is not None)
        for plan in self.deployments.machine.durable.deployments:
            ready, waiting, unacknowledged = counts.get(plan.hash, (0, 0, 0))
            reply.plans.add(
                hash=bytes.fromhex(plan.hash),
                epoch=plan.epoch,
                state=plan.state.name,
                query=plan.query,
                ready=ready,
                waiting=waiting,
                unacknowledged=unacknowledged,
            )
        reply.counters.add(name="highest_epoch", value=self.deployments.machine.durable.seen)
        if self.spool.problems:
            reply.counters.add(name="trace_problems", value=len(self.spool.problems))  # Health and the log name them
        if status is not None:
            reply.boot, reply.records_written = status.boot, status.records_written
            reply.uptime_ns = max(0, status.at_ns - status.started_ns)
            reply.busy_ns, reply.overhead_ns, reply.queue_bytes = status.busy_ns, status.overhead_ns, status.queue_bytes
            for name, value in sorted(status.counters.items()):
                reply.counters.add(name=name, value=value)
        return reply

    async def Profile(self, request: agent_pb2.ProfileRequest, context: Context) -> agent_pb2.ProfileReply:  # noqa: N802
        """What each operator of a plan has cost."""
        reply, link = agent_pb2.ProfileReply(), self.deployments.link
        if link is None:
            return reply
        answer = await link.ask_within(partial(ipc.AskProfile, hash=request.hash.hex()), ASK_S)
        if isinstance(answer, ipc.Profile):
            for operator, name, tuples, total_ns, worst_ns, squares in answer.costs:
                reply.costs.add(
                    operator_id=operator, name=name, tuples=tuples, total_ns=total_ns, worst_ns=worst_ns,
                    squares_ns2=squares,
                )  # fmt: skip
        return reply

    async def Health(self, request: agent_pb2.HealthRequest, context: Context) -> agent_pb2.HealthReply:  # noqa: N802
        """Whether all that is committed here runs; and everything that was found wrong."""
        failed = self.deployments.machine.failed
        wrong = [f"plan {hash_[:8]} does not run: {why}" for hash_, why in sorted(failed.items())]
        if await self._status() is None:
            wrong.append("the runtime does not answer")
        notes = [*wrong, *self.deployments.store.problems, *self.spool.problems]
        return agent_pb2.HealthReply(serving=not wrong, why="; ".join(notes[:16]))

    # -- the trace

    async def Trace(  # noqa: N802
        self, request: trace_pb2.TraceRequest, context: Context
    ) -> AsyncIterator[trace_pb2.TraceChunk]:
        """Free what the coordinator holds, then send everything that has been written up to now."""
        if len(request.held) > MOST_HELD:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"at most {MOST_HELD} incarnations in one request")
        held = {position.boot: position.records for position in request.held}
        self.spool.drain()
        self.spool.hold(held)
        for chunk in self.spool.chunks(held):
            yield trace_pb2.TraceChunk(**chunk._asdict())
            await asyncio.sleep(0)

    # -- inside

    async def _status(self) -> ipc.Status | None:
        link = self.deployments.link
        answer = None if link is None else await link.ask_within(ipc.AskStatus, ASK_S)
        return answer if isinstance(answer, ipc.Status) else None

    async def _operators(self, context: Context) -> str:
        """In a process of its own: what operators import would stay in this one's memory."""
        if not self.described:
            files = [argument for path in self.settings.operators for argument in ("--operators", str(path))]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "node_agent", "operators", "--json", *files,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                printed, errors = await asyncio.wait_for(process.communicate(), DESCRIBE_S)
            except TimeoutError:
                process.kill()
                await process.wait()
                printed, errors = b"", b"no answer"
            if process.returncode:
                why = errors.decode(errors="replace").strip()[-300:]
                await context.abort(grpc.StatusCode.INTERNAL, f"the operators here cannot be listed: {why}")
            self.described = printed.decode()
        return self.described


def _reply(reply: Reply) -> agent_pb2.PlanReply:
    return agent_pb2.PlanReply(accepted=reply.accepted, why=reply.why, state=reply.state.name)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("shimekiri")
    except metadata.PackageNotFoundError:
        return "unknown"
