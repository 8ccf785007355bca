"""A node of the virtual cluster: the agents' runtime on a clock that stands still while it works, and an ideal network.

What takes time in virtual time is what operators cost, what a decision is said to cost, and links.
"""

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Step
from node_agent.host.log import INFO, Log
from node_agent.host.trace_ring import Ring, RingFacts
from node_agent.operators.registry import Registry
from node_agent.ports import READABLE, Ports, Suspended
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.cost_meter import Cost
from node_agent.runtime.deployments.deployed_plan import ENDED, Deployed
from node_agent.runtime.deployments.lifecycle import Policies
from node_agent.runtime.executor import Operate
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.loop import Pace, Runtime
from node_agent.virtual.cluster.burst_barrier import BurstBarrier
from node_agent.virtual.cluster.ideal_network import IdealListener, IdealNetwork, Reach, Traffic
from node_agent.virtual.cluster.loop_stack import LoopStack
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.immediate_calls import ImmediateCallers
from node_agent.wire.plan_error import PlanError
from protos.records import Header, pack_header

RING_RECORDS = 1 << 17
PACE = Pace(drain_every_ns=0, tick_ns=0, most_tick_ns=100_000_000, oversleep_ns=0)  # looking at sockets takes no time
DRIFT_PPM = 0


class Observer(Protocol):
    """Who is told of results, of operators that raise, and of loops that have nothing to do."""

    def delivered(self, at_ns: int, plan: core.Plan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """A result is there; `at_ns` on the clock of the events."""

    def failed(self, node: str, what: str, error: BaseException) -> None:
        """That operator raised on a tuple, which is lost; or that source, which then has none."""

    def idle(self) -> None:
        """A node waits."""


class NodeSettings(NamedTuple):
    """domain: of the clock. decision_ns: what a decision costs. operate: runs operators in place of `executor.apply`;
    None: that. barrier: outputs wait for the rest of their burst. seldom_ns: how far looks at timers are apart at most,
    where that is more than PACE says."""

    domain: str
    boot: int
    trial: int
    policies: Policies
    decision_ns: int = 0
    operate: Operate | None = None
    barrier: bool = False
    seldom_ns: int = 0


class VirtualTrace:
    """What a node writes, in all trials: its ring, and what was taken from there. keeps: whether that is kept."""

    def __init__(self, header: Header, keeps: bool) -> None:
        memory = mmap.mmap(-1, Ring.size_bytes(RING_RECORDS))
        packed = pack_header(header)
        memory[: len(packed)] = packed
        self._ring, self._keeps, self._taken = Ring(Path("virtual.ring"), memory), keeps, bytearray()
        self.facts = RingFacts(self._ring)

    def make_room(self) -> None:
        """Call it often: nothing is ever dropped."""
        if self._ring.pending_bytes > self._ring.capacity >> 2:
            self.data()

    def data(self) -> bytearray:
        """All records that were published."""
        taken = self._ring.take(1 << 40)
        if self._keeps:
            self._taken += taken
        return self._taken


class _Clock:
    """`ports.Clock`: that of the events."""

    drift_ppm = DRIFT_PPM
    steady_since_ns: int | None = None

    def __init__(self, traffic: Traffic, domain: str) -> None:
        events = traffic.events
        self.domain = domain
        self.now_ns: Callable[[], int] = lambda: events.now_ns
        self.cpu_ns = self.now_ns

    def suspended(self) -> Suspended | None:
        return None


class _Machine:
    """`ports.Machine` with memory and cores for everything."""

    @property
    def real_time_share(self) -> float:
        """No such class."""
        return 0

    def real_time(self, wanted: bool) -> None:
        """Nothing."""

    def resident_bytes(self) -> int:
        return 0

    def pin(self, cpu: int) -> bool:
        return True

    def settle(self) -> None:
        """Nothing to collect."""


class _Quiet(Log):
    """A log that nobody reads."""

    def say(self, event: str, text: str, level: str = INFO, kind: str = "", **fields: object) -> bool:
        return True


class _Meter:
    """`Meter` that lets the time of decisions and operators go by. instances: that have begun."""

    always = True

    def __init__(self, traffic: Traffic, decision_ns: int, work: Callable[[int], None]) -> None:
        self.work = work
        self.costs: dict[Step, Cost] = {}
        self.priced: dict[Step, tuple[Costs, int]] = {}
        self.began_ns = self.instances = 0
        self.runtime: Runtime | None = None
        self._events, self._decision_ns = traffic.events, decision_ns

    def start(self) -> None:
        """An instance was chosen: it begins when that has been paid for."""
        self.instances += 1
        if self._decision_ns and self._decided():
            assert self.runtime is not None
            self.work(self._decision_ns)
            self.runtime.backpressure.overhead_ns += self._decision_ns
        self.began_ns = self._events.now_ns

    def _decided(self) -> bool:
        assert self.runtime is not None
        return any(slot.engine.job is not None and slot.engine.decided for slot in self.runtime.plans.engine_slots)

    def spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """The operator has returned: it takes as long as it costs."""
        costs, operator = self.priced[step]
        self.work(costs.cost_ns(operator, lineage))


class _Telling:
    """The engine's commands, and somebody who is told of each result."""

    def __init__(self, runtime: Runtime, observer: Observer) -> None:
        self._deliver, self._observer = runtime.outbox.deliver, observer
        self.send = runtime.outbox.send

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        self._observer.delivered(at_ns, loaded.plan, output, lineage, payload)
        self._deliver(at_ns, loaded, output, lineage, payload)


class VirtualNode:
    """One node in one trial. plan: what the node is called. trace: where its facts go."""

    def __init__(
        self, plan: core.Plan, settings: NodeSettings, traffic: Traffic, trace: VirtualTrace, registry: Registry,
        reach: Reach, observer: Observer, ticking: Callable[[str], tuple[int, int]],
    ) -> None:  # fmt: skip
        """ticking: from when until when a source that the node makes itself ticks."""
        self.name, self.index = plan.node, plan.index
        self._settings, self._observer, self._trace = settings, observer, trace
        self._network = IdealNetwork(traffic, reach, self._before, self._served, observer.idle)
        clock = _Clock(traffic, settings.domain)
        self._callers = ImmediateCallers(clock.now_ns)
        self._going_on: deque[str] = deque()  # iterators whose next value is due
        self._bell = next(traffic.descriptors)
        self._network.add(self._bell, self)
        ports = Ports(clock, self._network, _Machine(), self._callers)
        shared = Shared(self.name, ports, settings.boot, settings.trial, trace.facts, _Quiet(self.name, "runtime"))
        self._meter = _Meter(traffic, settings.decision_ns, self._work)
        self._listens = True  # not while a batch runs: that keeps an agent from its sockets
        self._timed = False  # some plan has windows, or feeds them, or fuses
        self._events = traffic.events
        pace = PACE._replace(most_tick_ns=max(PACE.most_tick_ns, settings.seldom_ns))
        runtime = self._runtime = Runtime(shared, trace.facts, registry, self._changed, None, self._meter, pace)
        runtime.plans.commands = _Telling(runtime, observer)
        runtime.plans.policies = settings.policies
        runtime.pulled.within(ticking)
        runtime.pulled.on_failed(lambda name, error: observer.failed(self.name, f"source {name}", error))
        self.listener = IdealListener(traffic, self.name)
        runtime.attach(Acceptor(runtime.context, self.listener))
        self.listener.network = self._network
        self._stack = LoopStack(traffic.events, runtime.run)
        self._network.stack = self._stack
        self._meter.runtime = runtime

    # -- plans

    def prepare(self, plan: core.Plan, plan_hash: str, routes: tuple[tuple[int, str, str], ...], costs: Costs) -> None:
        """Load a plan beside those that run. Raises PlanError."""
        runtime = self._runtime
        deployed = runtime.plans.load(plan, plan_hash)
        for step in deployed.loaded.steps:
            self._meter.priced[step] = costs, step.operator_id
        for variant in deployed.loaded.variants:
            self._meter.priced[variant] = costs, -variant.operator_id
        self._listens = not deployed.engine_slot.engine.batching
        beats = any(source.beat_ns or source.pull is not None for source in plan.sources)
        self._timed = self._timed or bool(deployed.loaded.windows) or beats
        self._timed |= deployed.loaded.fuses
        self._hook(deployed)
        why = runtime.add_plan(deployed, routes)
        if why:
            raise PlanError("not_connected", why)
        self._stack.wake()

    def _hook(self, deployed: Deployed) -> None:
        settings, executor = self._settings, deployed.engine_slot.executor
        if settings.operate is not None:
            executor.operate, executor.stepwise = settings.operate, True
        if settings.barrier and executor.barrier is None:
            executor.barrier, executor.stepwise = BurstBarrier(executor.engine, executor.now), True
        executor.failed = self._failed

    def _failed(self, step: Step, error: BaseException) -> None:
        self._observer.failed(self.name, f"operator {self._meter.costs[step].name}", error)

    def go_on(self, source: str, tuples: int) -> None:
        """The iterator of a source gives so many more."""
        for _ in range(tuples):
            self._going_on.append(source)
            self._network.notify(self._bell, READABLE)

    def on_ready(self, at_ns: int, mask: int) -> None:
        """Within a drain: one of them."""
        self._callers.go_on(self._going_on.popleft())

    def holds(self, plan_hash: str) -> bool:
        """Whether that plan is loaded."""
        return plan_hash in self._runtime.plans.by_hash

    def commit(self, plan_hash: str) -> None:
        """Admit under that plan from now on. Heartbeats say so before anything more is read."""
        self._runtime.plans.commit(plan_hash)
        self._runtime.heartbeats.send(self._events.now_ns)
        self._send()
        self._stack.wake()

    def end_heartbeats(self) -> None:
        """No window that is still open has to do with anything that was admitted."""
        self._runtime.heartbeats.by_source.clear()

    def _changed(self, deployed: Deployed, why: str) -> None:
        if deployed.state == ENDED:
            self._runtime.outbox.remove(deployed.loaded)

    def source(self, name: str) -> tuple[int, str] | None:
        """The stream on which tuples of that source are admitted now."""
        found = self._runtime.plans.source(name)
        return None if found is None else (found[1].stream, found[0].codecs[found[1].stream].name)

    def _work(self, ns: int) -> None:
        """Let the time of an operator go by; what comes meanwhile is taken in when it comes."""
        if not self._listens:
            self._stack.work(ns)
            return
        until_ns = look_ns = self._events.now_ns + ns
        self._send()
        while True:
            if self._timed:
                look_ns = max(self._events.now_ns, min(until_ns, self._due_ns()))
            if self._stack.work_until(look_ns) and look_ns == until_ns:
                return
            self._take_in()

    def _due_ns(self) -> int:
        dues = [slot.engine.due_ns for slot in self._runtime.plans.engine_slots]
        own_ns = min(self._runtime.heartbeats.due_ns, self._runtime.pulled.due_ns)
        return min([own_ns, *(due for due in dues if due is not None)])

    def _take_in(self) -> None:
        runtime, now_ns = self._runtime, self._events.now_ns
        self._network.serve()
        runtime.pulled.release(now_ns)
        runtime.context.arrivals.apply(now_ns)
        runtime.heartbeats.send(now_ns)
        for slot in runtime.plans.engine_slots:
            due_ns = slot.engine.due_ns
            if due_ns is not None and due_ns <= now_ns:
                slot.engine.expire(now_ns)
        self._send()

    def _before(self) -> None:
        self._trace.make_room()
        if self._listens:
            self._send()

    def _served(self) -> None:
        if self._listens:
            self._runtime.context.arrivals.apply(self._events.now_ns)
            self._send()

    def _send(self) -> None:
        """What operators have given leaves when they end."""
        outbox = self._runtime.outbox
        if outbox.dirty:
            self._trace.facts.publish()
            outbox.flush(self._events.now_ns)

    # -- what is known of it

    @property
    def quiet(self) -> bool:
        """Nothing waits here, and nothing runs."""
        plans = self._runtime.plans
        if self._network.unserved or len(plans.by_hash) > 1:
            return False
        for slot in plans.engine_slots:
            if slot.engine.queued or slot.engine.job is not None:
                return False
        for deployed in plans.by_hash.values():
            if deployed.loaded.waiting or deployed.held:
                return False
        return not any(len(link.sender) or link.pending for link in self._runtime.outbox.links.values())

    @property
    def instances(self) -> int:
        """Task instances that have begun."""
        return self._meter.instances

    @property
    def made_here(self) -> int:
        """Tuples of sources of its own that were admitted."""
        return self._runtime.pulled.admitted

    @property
    def refused_here(self) -> int:
        """Such tuples, and ticks that came to none."""
        return self._runtime.pulled.refused

    def shed(self) -> Iterator[tuple[int, int]]:
        """What was shed so far: policy, tuples."""
        for slot in self._runtime.plans.engine_slots:
            yield from slot.engine.ledger.shed_by.items()

    def windows(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """How windows ended so far, by operator."""
        for slot in self._runtime.plans.engine_slots:
            for windowed in slot.engine.windows.operators:
                if windowed.state.newest is windowed:
                    yield windowed.name, windowed.state.counts

    def numbers(self) -> dict[str, int]:
        """By peer: the number of the next tuple on the link there."""
        return {name: link.sender.next_seq for name, link in self._runtime.outbox.links.items()}

    def number_from(self, numbers: Mapping[str, int]) -> None:
        """Links go on from these numbers."""
        for name, link in self._runtime.outbox.links.items():
            link.sender.number_from(numbers.get(name, 1))

    def end(self, last: bool) -> None:
        """The trial has ended; last: and the incarnation with it."""
        self._stack.end()
        if last:
            self._runtime.end()
        else:
            self._runtime.shared.refusals.write()
            self._trace.facts.publish()


__all__ = ["NodeSettings", "Observer", "VirtualNode", "VirtualTrace"]
