"""The agent's gRPC service (protos/agent.proto). What comes in is checked in check.py."""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from node_agent.control.calls.call_errors import CallError, Code
from node_agent.control.deploy_driver import DeployDriver
from node_agent.control.deployment import AnswerRequest, Deployment
from node_agent.control.identities import Identities
from node_agent.control.plan_check import RefusalError, checked_hash, checked_prepare
from node_agent.control.runtime_channel import Question
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.control.spool.spool_gauge import SpoolGauge, SpoolLevel
from node_agent.host import ipc
from node_agent.host.files.place_names import place_name
from node_agent.host.settings import Settings
from protos import agent_pb2, trace_pb2
from protos.installed import metadata, release

ASK_S = 1.0
DESCRIBE_S = 30.0
MOST_HELD = 4096

PROFILED = (
    "operator_id", "name", "degraded", "tuples", "total_ns", "elapsed_ns", "worst_ns", "later_worst_ns", "squares_ns2",
    "bucket_ns", "bucket_calls", "of",
)  # of OperatorCost, in the order of ipc.Profile  # fmt: skip


@dataclass(slots=True)
class Agent:
    """All calls of one agent, by their names in the service. Each may raise CallError."""

    settings: Settings
    deployments: DeployDriver
    spool: SpoolFiles
    described: str = ""
    identities: Identities = field(default_factory=Identities)
    monotonic: Callable[[], float] = time.monotonic
    replaced: ipc.Replaced = field(default_factory=lambda: ipc.Replaced(0, 0))
    connectors: ipc.Connectors = field(default_factory=lambda: ipc.Connectors((), 0))
    gauge: SpoolGauge | None = None
    refused: Counter[str] = field(default_factory=Counter)  # calls, by counter
    syncing: asyncio.Lock = field(default_factory=asyncio.Lock)

    # -- deployments

    async def Prepare(self, request: agent_pb2.PrepareRequest) -> agent_pb2.PlanReply:  # noqa: N802
        """Check, load in the runtime, store; accepted once it survives a crash."""
        try:
            plan = checked_prepare(request, self.settings.name, self.settings.cores, self.settings.tls is not None)
        except RefusalError as refusal:
            return agent_pb2.PlanReply(accepted=False, why=str(refusal))
        return _plan_reply(await self.deployments.prepare(plan))

    async def Commit(self, request: agent_pb2.CommitRequest) -> agent_pb2.PlanReply:  # noqa: N802
        """Run a prepared plan."""
        return await self._on_plan(self.deployments.commit, request.hash, request.epoch)

    async def Abort(self, request: agent_pb2.AbortRequest) -> agent_pb2.PlanReply:  # noqa: N802
        """Forget a prepared plan, and refuse its epoch from now on."""
        return await self._on_plan(self.deployments.abort, request.hash, request.epoch)

    async def Stop(self, request: agent_pb2.StopRequest) -> agent_pb2.PlanReply:  # noqa: N802
        """Admit no more, drain, forget."""
        return await self._on_plan(self.deployments.stop, request.hash, request.epoch)

    async def _on_plan(self, what: Callable[[str, int], Any], hash_: bytes, epoch: int) -> agent_pb2.PlanReply:
        try:
            return _plan_reply(await what(checked_hash(hash_, epoch), epoch))
        except RefusalError as refusal:
            return agent_pb2.PlanReply(accepted=False, why=str(refusal))

    # -- what there is to know

    async def Describe(self, request: agent_pb2.DescribeRequest) -> agent_pb2.Description:  # noqa: N802
        """The machine and what is installed on it."""
        statuses = await self.statuses()
        fifo = [status is not None and status.rt for status in statuses]
        places = self.settings.places or ((self.settings.name, self.settings.data),)
        return agent_pb2.Description(
            node=self.settings.name,
            version=version(),
            operators_json=await self._operators(),
            data_port=self.settings.data[1],
            rt=all(fifo),
            clock=self.settings.clock,
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            places=[
                agent_pb2.Place(name=name, data_port=address[1], rt=rt)
                for (name, address), rt in zip(places, fifo, strict=True)
            ],
        )

    async def Status(self, request: agent_pb2.StatusRequest) -> agent_pb2.StatusReply:  # noqa: N802
        """Counts of the runtimes, and the plans as they are on disk."""
        durable, statuses = self.deployments.machine.durable, await self.statuses()
        reply = status_reply(self.settings.name, statuses, durable.deployments, self._agent_counters())
        reply.version, restarts = version(), self.deployments.restarts
        reply.restarts = sum(restarts.values())
        if self.gauge is not None:
            reply.spool.CopyFrom(_spool(self.gauge.now, self.spool.dropped))
        reply.connectors.extend(self._connectors())
        operators = await self._identities()
        reply.operators.extend(found for place in operators.values() for found in place if found not in reply.operators)
        if len(statuses) > 1:
            for core, status in enumerate(statuses):
                here = [plan for plan in durable.deployments if core in plan.places]
                counters = {} if core else self._agent_counters()
                place = status_reply(place_name(self.settings.name, core), [status], here, counters)
                place.version, place.restarts = reply.version, restarts.get(core, 0)
                place.spool.CopyFrom(reply.spool)
                place.connectors.extend(() if core else reply.connectors)
                place.operators.extend(operators.get(core, ()))
                reply.places.append(place)
        return reply

    def _agent_counters(self) -> dict[str, int]:
        durable = self.deployments.machine.durable
        counters = {"highest_epoch": durable.seen, "plans_kept": len(durable.ran), **self.refused}
        if self.spool.problems:
            counters["trace_problems"] = len(self.spool.problems)  # Health and the log name them
        if damaged := len(self.settings.state.starts.problems) + len(self.deployments.store.problems):
            counters["files_damaged"] = damaged  # the same
        for name, count in zip(("runtimes_stood_still", "controls_stood_still"), self.replaced, strict=True):
            if count:
                counters[name] = count
        for name, direction, _, _, events, *_ in self.connectors.rows:
            counters |= {f"connector.{direction}.{name}.{event}": count for event, count in events if count}
        if self.connectors.restarts:
            counters["connectors_restarts"] = self.connectors.restarts
        return counters

    def _connectors(self) -> Iterator[agent_pb2.ConnectorStatus]:
        for stream, direction, kind, connected, _, was_connected, apart_ns, why in self.connectors.rows:
            yield agent_pb2.ConnectorStatus(
                stream=stream, direction=direction, kind=kind, connected=connected, was_connected=was_connected,
                apart_ns=apart_ns, why=why,
            )  # fmt: skip

    async def Profile(self, request: agent_pb2.ProfileRequest) -> agent_pb2.ProfileReply:  # noqa: N802
        """What each operator of a plan has cost."""
        reply = agent_pb2.ProfileReply()
        for link in list(self.deployments.links.values()):
            first, end = 0, self.monotonic() + ASK_S
            while (left := end - self.monotonic()) > 0:
                question = partial(ipc.AskProfile, hash=request.hash.hex(), first=first)
                answer = await link.ask_within(question, left)
                if not isinstance(answer, ipc.Profile):
                    break
                for row in answer.costs:
                    fields: dict[str, Any] = dict(zip(PROFILED, row, strict=True))
                    reply.costs.add(**fields)
                if not (first := answer.next):
                    break
        return reply

    async def Health(self, request: agent_pb2.HealthRequest) -> agent_pb2.HealthReply:  # noqa: N802
        """Whether all that is committed here runs; and everything that was found wrong."""
        failed = self.deployments.machine.failed
        wrong = [f"plan {hash_[:8]} does not run: {why}" for hash_, why in sorted(failed.items())]
        wrong += self.deployments.unresumed
        for core, status in enumerate(await self.statuses()):
            if status is None:
                of = f" of {place_name(self.settings.name, core)}" if self.settings.cores > 1 else ""
                wrong.append(f"the runtime{of} does not answer")
        found = [*self.settings.state.starts.problems, *self.deployments.store.problems, *self.spool.problems]
        notes = list(dict.fromkeys([*wrong, *found]))
        return agent_pb2.HealthReply(serving=not wrong, why="; ".join(notes[:16]))

    # -- runs

    async def Plans(  # noqa: N802
        self, request: agent_pb2.PlansRequest
    ) -> AsyncIterator[agent_pb2.PlanDocument]:
        """Forget what the coordinator holds, if it says so, then send the other plans that have run here."""
        if len(request.held) + len(request.wanted) > MOST_HELD:
            raise CallError(Code.INVALID_ARGUMENT, f"at most {MOST_HELD} plans in one request")
        held, wanted = (frozenset(hash_.hex() for hash_ in found) for found in (request.held, request.wanted))
        if request.forget:
            await self.deployments.collected(held)  # where the disk does not take it, the next collection says it again
        kept = [each.hash for each in self.deployments.machine.durable.ran]
        for hash_ in [each for each in kept if each not in held and (each in wanted or not wanted)]:
            document = agent_pb2.PlanDocument(hash=bytes.fromhex(hash_))
            try:
                document.plan = self.deployments.store.whole(hash_)
            except ValueError as error:
                document.why = str(error)
            yield document

    # -- the trace

    async def Trace(  # noqa: N802
        self, request: trace_pb2.TraceRequest
    ) -> AsyncIterator[trace_pb2.TraceChunk]:
        """Free what the coordinator holds, then send everything that has been written up to now and that the disk has.

        A loss of power takes nothing that was sent, or the coordinator would find an incarnation with fewer records
        than it holds, and could not go on with it. What could not be synced is sent by a later call.
        """
        if len(request.held) > MOST_HELD:
            raise CallError(Code.INVALID_ARGUMENT, f"at most {MOST_HELD} incarnations in one request")
        held = {position.boot: position.records for position in request.held}
        await self.spool_sync()
        try:
            self.spool.hold(held)
        except OSError as error:  # a full disk hands over all the same
            self.spool.note(f"records that the coordinator holds cannot be freed ({error.strerror})")
        self.spool.drain()  # on a full disk there is room for it now
        until = self.spool.totals()
        self.spool.seal(held)
        await self.spool_sync()
        try:
            for chunk in self.spool.chunks(held, self.spool.on_disk(until, held)):
                yield trace_pb2.TraceChunk(**chunk._asdict())
                await asyncio.sleep(0)
        except OSError as error:
            why = f"the spool cannot be read ({error.strerror}); mend the disk and collect again"
            raise CallError(Code.INTERNAL, why) from None

    # -- inside

    async def spool_sync(self) -> None:
        """What the spool has now is on the disk, or the log says why not. One call after the other: what another one is
        about to sync is not on the disk yet."""
        async with self.syncing:
            paths, totals = self.spool.unsynced(), self.spool.totals()
            try:
                await asyncio.to_thread(self.spool.disk.sync, paths)
            except OSError as error:
                self.spool.failed_to_sync(paths, error)
            else:
                self.spool.synced(totals)

    async def statuses(self) -> list[ipc.Status | None]:
        """Of every place, in order; None: its runtime does not answer."""
        answers = await self._ask_all(ipc.AskStatus, range(self.settings.cores))
        return [answer if isinstance(answer, ipc.Status) else None for answer in answers]

    async def _identities(self) -> dict[int, list[agent_pb2.OperatorIdentity]]:
        """Of what each place has loaded for its plans. They are asked where plans have changed."""
        links, plans = self.deployments.links, self.deployments.machine.durable.deployments
        state = tuple((plan.hash, plan.state) for plan in plans)
        wanted = [core for core, link in links.items() if self.identities.stale(core, (link.boot, state))]
        for core, answer in zip(wanted, await self._ask_all(ipc.AskOperators, wanted), strict=True):
            if isinstance(answer, ipc.Operators) and core in links:
                self.identities.put(core, (links[core].boot, state), answer)
        return {core: self.identities.of(core) for core in sorted(links)}

    async def _ask_all(self, question: Question, cores: Sequence[int]) -> list[ipc.Message | None]:
        links = self.deployments.links
        asked = {core: links[core].ask(question) for core in cores if core in links}
        if asked:
            await asyncio.wait(asked.values(), timeout=ASK_S)
        there = {core: answer.result() for core, answer in asked.items() if answer.done()}
        return [there.get(core) for core in cores]

    async def _operators(self) -> str:
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
                raise CallError(Code.INTERNAL, f"the operators here cannot be listed: {why}")
            self.described = printed.decode()
        return self.described


def status_reply(
    name: str, statuses: Sequence[ipc.Status | None], plans: Sequence[Deployment], counters: Mapping[str, int] = {}
) -> agent_pb2.StatusReply:
    """Of one place or, summed up, of several; counters come before those of the runtimes."""
    alive = [status for status in statuses if status is not None]
    reply = agent_pb2.StatusReply(
        node=name, runtime_alive=len(alive) == len(statuses), rt=bool(alive) and all(status.rt for status in alive)
    )
    for plan in plans:
        counts = [each[4:7] for status in alive for each in status.plans if each[0] == plan.hash]
        ready, waiting, unacknowledged = map(sum, zip((0, 0, 0), *counts, strict=True))
        reply.plans.add(
            hash=bytes.fromhex(plan.hash),
            epoch=plan.epoch,
            state=plan.state.name,
            query=plan.query,
            ready=ready,
            waiting=waiting,
            unacknowledged=unacknowledged,
            queries=plan.query.split("+"),
        )
    _figures(reply, alive)
    summed = Counter[str]()
    for status in alive:
        reply.boot = reply.boot or status.boot
        reply.uptime_ns = max(reply.uptime_ns, status.at_ns - status.started_ns)
        reply.busy_ns += status.busy_ns
        reply.overhead_ns += status.overhead_ns
        reply.queue_bytes += status.queue_bytes
        reply.queue_limit_bytes += status.queue_limit_bytes
        reply.records_written += status.records_written
        reply.longest_hold_ns = max(reply.longest_hold_ns, status.longest_hold_ns)
        summed.update(status.counters)
    for counter, value in (*counters.items(), *sorted(summed.items())):
        reply.counters.add(name=counter, value=value)
    return reply


def _figures(reply: agent_pb2.StatusReply, alive: Sequence[ipc.Status]) -> None:
    """Outputs, of the reply; sources and units, of its plans."""
    plans = {plan.hash.hex(): plan for plan in reply.plans}
    for status in alive:
        for name, deadline_ns, met, late, undecidable, worst_ns, latencies in status.outputs:  # each in one place
            reply.outputs.add(
                name=name, deadline_ns=deadline_ns, met=met, late=late, undecidable=undecidable, worst_ns=worst_ns,
                latencies=(agent_pb2.Latencies(most_ns=most_ns, results=n) for most_ns, n in latencies),
            )  # fmt: skip
        for hash_, name, admitted, shed, lost, refused, policed in status.sources:
            if hash_ in plans:
                plans[hash_].sources.add(
                    name=name, admitted=admitted, shed=shed, lost=lost, refused=refused, policed=policed
                )
        for hash_, id_, operators, sub_deadline_ns, queued, runs, shed, lost, *timed in status.units:
            if hash_ in plans:
                instances, timed_ns, worst_ns, recent_ns, unfused = timed
                plans[hash_].units.add(
                    id=id_, operators=operators, sub_deadline_ns=sub_deadline_ns, queued=queued, runs=runs, shed=shed,
                    lost=lost, timed=instances, timed_ns=timed_ns, worst_ns=worst_ns, recent_ns=recent_ns,
                    unfused=unfused,
                )  # fmt: skip


def _spool(now: SpoolLevel, dropped: int) -> agent_pb2.SpoolStatus:
    found = agent_pb2.SpoolStatus(
        bytes=now.bytes, limit_bytes=now.limit_bytes, oldest_ns=now.oldest_ns, dropped=dropped
    )
    if now.full_in_ns is not None:
        found.full_in_ns = now.full_in_ns
    return found


def _plan_reply(reply: AnswerRequest) -> agent_pb2.PlanReply:
    return agent_pb2.PlanReply(accepted=reply.accepted, why=reply.why, state=reply.state.name)


@cache
def version() -> str:
    """Of what is installed here."""
    return metadata.version(release.NAME) or "unknown"
