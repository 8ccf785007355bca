"""The runtime as it is, a process in virtual time, and the machine around it: its ring, its supervisor, its losses."""

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Step
from node_agent.host.log import INFO, Log
from node_agent.host.trace_ring import STATE, Inherited, Ring, RingFacts, inherited
from node_agent.operators.registry import Registry
from node_agent.ports import Ports
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.cost_meter import Cost
from node_agent.runtime.deployments.deployed_plan import ENDED, Deployed
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.loop import Runtime
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.immediate_calls import ImmediateCallers
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime
from protos.records import STATE_CRASHED, STATE_ENDED, Header, pack_header

RESTART_NS = 50_000_000  # from the end of a runtime to the next one
COLLECT_NS = 20_000_000  # control looks into the ring so often
RING_RECORDS = 4096

Told = Callable[[str, int, int, Lineage, Any], None]  # node, lineage epoch, true instant, lineage, payload
Route = tuple[int, str, str]  # a peer's number, its name, its address


class Silent(Log):
    """A log that nobody reads."""

    def say(self, event: str, text: str, level: str = INFO, kind: str = "", **fields: object) -> bool:
        """Nothing is said."""
        return True


class Incarnation(NamedTuple):
    """What one runtime has written, as far as it is known."""

    header: Header
    records: bytes
    state: int  # that its ring was closed with; 0: the power went, and what had not been drained with it


class NodePlan(NamedTuple):
    """What a node runs: its part of a plan, the plan's hash, its peers' addresses, what its operators cost."""

    plan: core.Plan
    hash: str
    routes: tuple[Route, ...]
    costs: Costs


class SimulatedCosts:
    """`Meter` that lets the time of each operator go by instead of measuring it."""

    always = True

    def __init__(self, clock: SimulatedClock, costs: Costs, work: Callable[[int], None]) -> None:
        """work: let so many ns of CPU time go by."""
        self.costs: dict[Step, Cost] = {}
        self.began_ns = 0
        self._clock, self._costs, self._work = clock, costs, work

    def start(self) -> None:
        """The next instance begins now."""
        self.began_ns = self._clock.now_ns()

    def spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """The operator has returned: it takes as long as it costs."""
        degraded = self.costs[step].degraded
        self._work(self._costs.cost_ns(-step.operator_id if degraded else step.operator_id, lineage))


class AmpleMachine:
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


class Telling:
    """The engine's commands, and somebody who is told of each result."""

    def __init__(self, runtime: Runtime, told: Callable[[Lineage, Any], None]) -> None:
        self._outbox, self._told = runtime.outbox, told
        self.send = runtime.outbox.send

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        self._told(lineage, payload)
        self._outbox.deliver(at_ns, loaded, output, lineage, payload)


class SimulatedNode:
    """A machine with an agent: what its supervisor and its control do around the runtime is done here.

    incarnations: of the runtimes that have ended. on_result: told of each result that is delivered here.
    """

    def __init__(
        self, time: VirtualTime, host: SimulatedHost, clock: SimulatedClock, draws: Draws, port: int,
        registry: Callable[[], Registry], on_result: Told | None = None, ring_records: int = RING_RECORDS,
    ) -> None:  # fmt: skip
        """registry: of a new process: operators keep their state in it."""
        self.name, self.time, self.host, self.clock, self._draws, self._port = (
            host.name,
            time,
            host,
            clock,
            draws,
            port,
        )
        self._registry, self._on_result, self._ring_records = registry, on_result, ring_records
        self.plan: NodePlan | None = None
        self.incarnations: list[Incarnation] = []
        self.deaf = False  # control does not drain the ring
        self.starts = 0
        self._boots: list[int] = []
        self._inherited: list[Inherited] = []
        self._listener = host.listen(port)
        self.running: SimulatedRuntime | None = None
        self._resumes = False
        self._collect_due = False
        self.asleep = False
        self.power_losses = 0

    @property
    def address(self) -> str:
        """Where tuples are taken in."""
        return f"{self.name}:{self._port}"

    def start(self) -> None:
        """The runtime begins, with the plan that was there before it."""
        if self.running is not None or self.asleep or not self.host.on:
            return
        assert self.plan is not None, "a node is started with a plan"
        self.starts += 1
        boot = self._draws.bits() | 1
        header = Header(self.name, self.plan.plan.index, boot, self.clock.domain, self.clock.drift_ppm,
                        self.clock.now_ns(), self.clock.now_ns(), starts=self.starts)  # fmt: skip
        ring = new_ring(header, self._ring_records)
        self.running = SimulatedRuntime(
            self, ring, self.plan, self._registry(), self._inherited, self._resumes, self._on_result
        )
        self._resumes = True
        self.running.network.listen(self._listener)
        if not self._collect_due:
            self._collect_due = True
            self.time.after(COLLECT_NS, self._collect)

    def crash(self) -> None:
        """The runtime is killed, and the supervisor starts another one."""
        running = self.running
        if running is not None:
            self._inherited = inherited(self._inherited, self.starts & 0xFFFF, running.ring)
            self._end(STATE_CRASHED)
            self.time.after(RESTART_NS, self.start)

    def power_off(self) -> None:
        """Everything that is not on the disk is gone: the ring, and what was promised in it."""
        self.power_losses += 1
        self.host.power_off()
        if self.running is not None:
            self._end(0)
        self._inherited = []

    def power_on(self, clock: SimulatedClock) -> None:
        """The machine boots; its clock begins anew and has another name."""
        self.clock = clock
        self.host.power_on()
        self._listener = self.host.listen(self._port)
        self.start()

    def suspend(self) -> None:
        """The machine sleeps: nothing runs, its clock stands still, nothing gets through to it."""
        self.asleep = True
        self.clock.stop()
        self._for_each_way(cut=True)
        self.pause()

    def go_on(self) -> None:
        """It wakes up."""
        self.asleep = False
        self.clock.go_on()
        self._for_each_way(cut=False)
        self.resume()
        self.start()

    def pause(self) -> None:
        """The runtime stands still, and nothing else does."""
        if self.running is not None:
            self.running.process.pause()

    def resume(self) -> None:
        """It goes on."""
        if self.running is not None:
            self.running.process.go_on()

    def stop(self) -> None:
        """The runtime ends as the supervisor asks it to."""
        if self.running is not None:
            self.running.runtime.stopping = True
            self.running.process.wake()

    def trace(self) -> list[Incarnation]:
        """Of all runtimes, the one that runs included."""
        running = self.running
        if running is None:
            return self.incarnations
        running.collect()
        return [*self.incarnations, Incarnation(running.ring.header, bytes(running.collected), 0)]

    def ended(self) -> None:
        """The runtime has ended by itself."""
        if self.running is not None and not self.running.process.alive:
            self._end(STATE_ENDED)

    def _for_each_way(self, cut: bool) -> None:
        for other in self.host.wires.hosts:
            if other != self.name:
                for way in (self.host.wires.way(self.name, other), self.host.wires.way(other, self.name)):
                    if cut:
                        way.cut()
                    else:
                        way.heal()

    def _collect(self) -> None:
        self._collect_due = self.running is not None
        if self.running is not None:
            if not (self.deaf or self.asleep):
                self.running.collect()
            self.time.after(COLLECT_NS, self._collect)

    def _end(self, state: int) -> None:
        running = self.running
        assert running is not None
        self.running = None
        running.process.kill()
        running.network.end()
        if state == STATE_CRASHED:
            running.ring.note_dropped()
            running.ring.cells[STATE] = state
        if state:
            running.collect()
        self.incarnations.append(Incarnation(running.ring.header, bytes(running.collected), state))


class SimulatedRuntime:
    """One incarnation: the runtime's own loop on a stack of its own."""

    def __init__(
        self, node: SimulatedNode, ring: Ring, what: NodePlan, registry: Registry, taken_over: Sequence[Inherited],
        resumes: bool, on_result: Told | None,
    ) -> None:  # fmt: skip
        self._node, self.ring, self._what = node, ring, what
        self.collected = bytearray()
        self.working = False  # an operator runs
        clock = node.clock
        self.network = SimulatedNetwork(node.host, clock.now_ns, self._wait_until)
        ports = Ports(clock, self.network, AmpleMachine(), ImmediateCallers(clock.now_ns))
        shared = Shared(
            node.name, ports, ring.header.boot, node.starts & 0xFFFF, RingFacts(ring), Silent(node.name, "runtime"),
        )  # fmt: skip
        meter = SimulatedCosts(clock, what.costs, self._work)
        self.runtime = Runtime(shared, shared.facts, registry, self._changed, None, meter)
        if on_result is not None:
            epoch, name, time = shared.lineage_epoch, node.name, node.time
            self.runtime.plans.commands = Telling(
                self.runtime, lambda lineage, payload: on_result(name, epoch, time.now_ns, lineage, payload)
            )
        self.runtime.attach(Acceptor(self.runtime.context, node._listener, None, taken_over))
        self._resumes = resumes
        self.process = self.network.process = Process(node.time, self._run)

    def collect(self) -> None:
        """Control drains the ring."""
        self.collected += self.ring.take(1 << 30)

    def _run(self) -> None:
        plans, what = self.runtime.plans, self._what
        why = self.runtime.add_plan(plans.load(what.plan, what.hash), what.routes)
        assert not why, why
        accepted, why = plans.commit(what.hash)
        assert accepted, why
        if self._resumes:
            plans.resumed(what.hash)
        self.runtime.run()
        self.runtime.end()
        self._node.time.after(0, self._node.ended)

    def _changed(self, deployed: Deployed, why: str) -> None:
        if deployed.state == ENDED:
            self.runtime.outbox.remove(deployed.loaded)

    def _wait_until(self, shown_ns: int) -> None:
        time = self._node.time
        self.process.sleep_until(max(self._node.clock.true_ns(shown_ns), time.now_ns + 1), wakeable=True)

    def _work(self, ns: int) -> None:
        clock, time = self._node.clock, self._node.time
        until_ns = clock.now_ns() + ns
        self.working = True
        while clock.now_ns() < until_ns:
            self.process.sleep_until(max(clock.true_ns(until_ns), time.now_ns + 1))
        self.working = False


def new_ring(header: Header, capacity_records: int) -> Ring:
    """A ring that is in no file: it outlives the runtime that writes it, as long as its machine has power."""
    memory = mmap.mmap(-1, Ring.size_bytes(capacity_records))
    packed = pack_header(header)
    memory[: len(packed)] = packed
    return Ring(Path(f"{header.boot:016x}.ring"), memory)
