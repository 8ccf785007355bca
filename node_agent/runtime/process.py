"""The runtime process from fork to exit: builds the parts, loads the plans on disk, answers control, ends cleanly."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from node_agent.core.incremental import Incremental, finish
from node_agent.host import ipc, scheduling
from node_agent.host.channel_end import ChannelEnd, OpenEnd
from node_agent.host.files import plan_files
from node_agent.host.live_ports import live_ports
from node_agent.host.log import ERROR, Log
from node_agent.host.operator_output import operator_output
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import BEAT, Inherited, Ring, RingFacts
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.ports import Listener, Ports
from node_agent.runtime import status
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments import cost_meter
from node_agent.runtime.deployments.deployed_plan import ENDED, PREPARED, Deployed
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.loop import DUE_NS, Runtime, secured
from node_agent.tls.names import TlsError

Answer = tuple[bool, str]

COLLECT = (20_000, 20, 50)  # tuples and jobs hold no cycles: collecting them often finds nothing
MOST_OPERATORS, MOST_FILES = 256, 256  # that control is told of
MOST_WHY = 4000  # characters: an operator's error message may be longer than a message between the processes


def main(
    settings: Settings, supervisor: ChannelEnd, control: ChannelEnd, listener: Listener, ring: Ring, epoch: int,
    taken_over: Sequence[Inherited] = (),
) -> int:  # fmt: skip
    """Run until the supervisor says Stop. Returns the exit code.

    epoch: count of runtime starts. taken_over: what dead incarnations had taken over or acknowledged.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # to the whole group; the supervisor says Stop
    sys.stdout = operator_output(Log(settings.name, "runtime", settings.log_json))
    try:
        registry = Registry(settings.operators, checks=settings.checks)
    except OperatorError as error:
        supervisor.send(ipc.Failed(str(error)))
        return 2
    rt = settings.rt and scheduling.fifo(scheduling.RUNTIME_PRIORITY)
    scheduling.exact_timers()
    gc.enable()
    gc.set_threshold(*COLLECT)
    try:
        process = Process(settings, supervisor, control, listener, ring, epoch, registry, rt, taken_over)
    except TlsError as error:
        supervisor.send(ipc.Failed(str(error)))
        return 2
    process.run()
    return 0


class World(NamedTuple):
    """What a runtime process has of the world. pid: 0 where there is none; meter: of what operators cost, where that is
    not measured."""

    ports: Ports
    open_end: OpenEnd
    log: Log
    pid: int = 0
    meter: cost_meter.Meter | None = None


def live_world(settings: Settings, rt: bool = False) -> World:
    """Of a process on this machine."""
    log = Log(settings.name, "runtime", settings.log_json)
    ports = live_ports(settings.clock, settings.drift_ppm, rt, settings.neighbours)
    return World(ports, ipc.Channel.of, log, os.getpid())


class Process:
    """Mail from the other processes becomes calls of the runtime, done between instances."""

    def __init__(
        self, settings: Settings, supervisor: ChannelEnd, control: ChannelEnd, listener: Listener, ring: Ring,
        epoch: int, registry: Registry, rt: bool, taken_over: Sequence[Inherited] = (), world: World | None = None,
    ) -> None:  # fmt: skip
        """world: this machine, unless another is given. Raises TlsError."""
        self.settings, self.supervisor, self.control, self.rt = settings, supervisor, control, rt
        self.world = world = world or live_world(settings, rt)
        self.shared = Shared(
            settings.name, world.ports, ring.header.boot, epoch & 0xFFFF, RingFacts(ring), world.log
        )  # fmt: skip
        self.ring, self.started_ns = ring, self.shared.now_ns()
        security = secured(self.shared, settings.tls)
        self.runtime = Runtime(self.shared, self.shared.facts, registry, self._changed, security, world.meter)
        self.runtime.attach(Acceptor(self.runtime.context, listener, security, taken_over))
        self.shared.network.add(supervisor.fileno(), _Requests(lambda: self._read(self.supervisor), self.runtime))
        self._listen_to_control()
        self.calls: dict[type[ipc.Message], Callable[..., Answer]] = {
            ipc.Commit: lambda ask: self.runtime.plans.commit(ask.hash, ask.epoch),
            ipc.Abort: lambda ask: self._unload(self.runtime.plans.abort, ask.hash),
            ipc.Drain: self._drain,
        }

    def run(self) -> None:
        """Load what is on disk, serve, end."""
        self.resume()
        self.ring.cells[BEAT] = self.shared.now_ns() + DUE_NS
        self.supervisor.send(ipc.RuntimeReady(self.rt, len(self.runtime.plans.by_hash)))
        self.runtime.run()
        self.runtime.end()
        sys.stderr.flush()

    def resume(self) -> None:
        """Load what the incarnation before had committed or was draining."""
        try:
            stored = plan_files.read_state(self.settings.state.plans, self.settings.state.disk)
        except ValueError as error:
            self.shared.note("plans_damaged", str(error))
            return
        # The one that admits first: of the others, what is the same as in it gets its instances (loading.py).
        for each in sorted(stored.plans, key=lambda each: (each.state != plan_files.COMMITTED, -each.epoch)):
            why = self._resume_one(each)
            if why:
                self.shared.note("plans_not_resumed", f"plan {each.hash[:8]} is not resumed: {why}")

    def _resume_one(self, stored: plan_files.StoredPlan) -> str:
        """Load it and put it into the state that it had; returns why it cannot be."""
        settings = self.settings
        if settings.core not in stored.locals:
            return ""  # it needs other places of this agent only
        node = settings.places[0][0] if settings.places else settings.name
        if why := plan_files.missing_cores(stored.locals, settings.cores, node):
            return why
        if why := plan_files.damage(settings.state.plans, stored, settings.core, settings.state.disk):
            self.shared.counters["plans_damaged"] += 1
            return why
        accepted, why = finish(self.prepare(stored.hash, stored.epoch, stored.routes, stored.routed))
        if accepted and stored.state == plan_files.COMMITTED:
            accepted, why = self.runtime.plans.commit(stored.hash, stored.latest)
        elif accepted and stored.state == plan_files.DRAINING:  # never the one that admits, not for an instant
            accepted, why = self.runtime.plans.drain(stored.hash)
        if accepted and stored.state != plan_files.PREPARED:
            self.runtime.plans.resumed(stored.hash)
        return "" if accepted else why

    # -- what the others ask

    def prepare(self, plan_hash: str, epoch: int, routes: plan_files.Routes, routed: int) -> Incremental[Answer]:
        """Load a plan beside those that run, a slice at a time. Whether it is prepared, else why not. routed: the epoch
        of the deployment that the routes are of."""
        plans, routes = self.runtime.plans, self.settings.own_routes(routes)
        known = plans.by_hash.get(plan_hash)
        if known is not None and known.state == PREPARED and known.plan.epoch != epoch:
            # Left by a deployment that was neither committed nor given up. The epoch is in all that was made of it and
            # says which of two plans is the later one, so the plan is made again.
            self._unload(plans.abort, plan_hash)
        elif known is not None:
            why = self.runtime.add_plan(known, routes, routed)  # a peer may have moved
            return not why, why
        state = self.settings.state
        accepted, why = yield from plans.preparing(state.plans, plan_hash, epoch, self.settings.core, state.disk)
        if not accepted:
            return False, why
        deployed = plans.by_hash[plan_hash]
        why = self.runtime.add_plan(deployed, routes, routed)
        if why:
            self._forget(deployed)
            plans.abort(plan_hash)
        return not why, why

    def _unload(self, call: Callable[[str], Answer], plan_hash: str) -> Answer:
        deployed = self.runtime.plans.by_hash.get(plan_hash)
        answer = call(plan_hash)
        if deployed is not None and plan_hash not in self.runtime.plans.by_hash:
            self._forget(deployed)
        return answer

    def _drain(self, ask: ipc.Drain) -> Answer:
        """What could not be loaded has nothing left to run."""
        if ask.hash not in self.runtime.plans.by_hash:
            self.control.send(ipc.PlanChanged(ask.hash, 0, ENDED, "it is not loaded"))
        return self._unload(self.runtime.plans.drain, ask.hash)

    def _forget(self, deployed: Deployed) -> None:
        self.runtime.outbox.remove(deployed.loaded)

    def _changed(self, deployed: Deployed, why: str) -> None:
        if deployed.state == ENDED:
            self._forget(deployed)
        self.control.send(ipc.PlanChanged(deployed.hash, deployed.plan.epoch, deployed.state, why))

    def _listen_to_control(self) -> None:
        if not self.control.closed:
            self.shared.network.add(self.control.fileno(), _Requests(lambda: self._read(self.control), self.runtime))

    def _leave_control(self) -> None:
        """Also where a message that could not be sent has told first that it is gone: its end stays readable then, and
        nobody would ever read it."""
        if self.control.fileno() >= 0:
            self.shared.network.remove(self.control.fileno())
            self.control.close()

    def _read(self, channel: ChannelEnd) -> None:
        for message, descriptor in channel.receive():
            self._on_message(message, descriptor)
        if channel.closed:
            self.shared.network.remove(channel.fileno())
            if channel is self.supervisor:
                self.runtime.stopping = True
            else:
                channel.close()

    def _on_message(self, message: ipc.Message, descriptor: int | None) -> None:
        if isinstance(message, ipc.Stop):
            self.runtime.stopping = True
        elif isinstance(message, ipc.NewChannel) and descriptor is not None:
            self._leave_control()
            self.control = self.world.open_end(descriptor)
            self._listen_to_control()
        elif isinstance(message, ipc.AskStatus):
            self.control.send(self._status(message.id))
        elif isinstance(message, ipc.AskProfile):
            deployed = self.runtime.plans.by_hash.get(message.hash)
            found, more = cost_meter.rows(deployed.measured if deployed else (), message.first)
            self.control.send(ipc.Profile(message.id, found, more))
        elif isinstance(message, ipc.AskOperators):
            self.control.send(self._operators(message.id))
        elif isinstance(message, ipc.Prepare | ipc.Commit | ipc.Abort | ipc.Drain):
            self._ask(message)

    def _ask(self, message: ipc.Prepare | ipc.Commit | ipc.Abort | ipc.Drain) -> None:
        """Loading takes slices between task instances; what comes after it waits for its end, in order."""
        work, sliced = self._work(message, self.control), self.runtime.sliced
        if isinstance(message, ipc.Prepare):
            sliced.add(work)
        else:
            sliced.at_once(work)

    def _work(self, message: ipc.Prepare | ipc.Commit | ipc.Abort | ipc.Drain, asked: ChannelEnd) -> Incremental[None]:
        """Do it, and answer the process that asked, if it is still there."""
        try:
            if isinstance(message, ipc.Prepare):
                accepted, why = yield from self.prepare(message.hash, message.epoch, message.routes, message.routed)
            else:
                accepted, why = self.calls[type(message)](message)
        except Exception as error:  # an operator's constructor, or a fault of the agent: no reason to end other plans
            asked_for, why = type(message).__name__.lower(), traceback.format_exc().rstrip()
            text = f"plan {message.hash[:8]}: {asked_for} failed\n{why}"
            self.shared.log.say("plan_failed", text, ERROR, plan=message.hash)
            accepted, why = False, f"{type(error).__name__}: {error}"
        self.shared.facts.publish()
        state = self.runtime.plans.state(message.hash)
        if not asked.closed:
            asked.send(ipc.PlanAnswer(message.id, accepted, why[:MOST_WHY], state))

    def _status(self, id_: int) -> ipc.Status:
        runtime, load = self.runtime, self.runtime.backpressure
        runtime.plans.count_policed(self.shared.now_ns())
        plans = tuple(
            (each.hash, each.plan.epoch, each.state, each.plan.query, each.ready, each.loaded.waiting, each.held)
            for each in runtime.plans.by_hash.values()
        )
        figures = status.rows(self.shared.now_ns(), runtime.plans, runtime.outbox.delivery_counts)
        if figures.left_out:
            self.shared.counters["figures_left_out"] = figures.left_out
        return ipc.Status(
            id_, self.ring.header.boot, self.rt, self.started_ns, self.shared.now_ns(), load.busy_ns, load.overhead_ns,
            load.queue_bytes, self.shared.facts.written_records, runtime.sliced.longest_ns, plans,
            dict(self.shared.counters), figures.outputs, figures.units, figures.sources,
            runtime.plans.limit_bytes, runtime.outbox.link_states(), self.world.pid,
        )  # fmt: skip

    def _operators(self, id_: int) -> ipc.Operators:
        plans = self.runtime.plans
        runs = {run for each in plans.by_hash.values() for run in each.plan.runs}
        files: dict[tuple[str, str], int] = {}
        rows: list[tuple[str, str, str, tuple[int, ...]]] = []
        for identity, made_of in plans.registry.loaded():
            if identity.run in runs and len(rows) < MOST_OPERATORS:
                here = [(str(path), sha256) for path, sha256 in made_of.items()]
                places = tuple(files.setdefault(each, len(files)) for each in here if len(files) < MOST_FILES)
                rows.append((identity.run, identity.version, identity.code, places))
        return ipc.Operators(id_, tuple(rows), tuple(files))


class _Requests:
    """A channel has something: read it between instances."""

    def __init__(self, read: Callable[[], None], runtime: Runtime) -> None:
        self._read, self._runtime = read, runtime

    def on_ready(self, at_ns: int, mask: int) -> None:
        """Within a drain."""
        if self._read not in self._runtime.requests:
            self._runtime.requests.append(self._read)
