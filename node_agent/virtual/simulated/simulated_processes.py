"""The processes of a simulated machine: the supervisor's rules, runtime and control as they are, in virtual time."""

from __future__ import annotations

import asyncio
import errno
import traceback
from asyncio import events
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from greenlet import GreenletExit

from node_agent.control.server import Control
from node_agent.core.lineage import Lineage
from node_agent.core.model import Step
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.log import INFO, Log
from node_agent.operators.registry import Registry
from node_agent.ports import Ports
from node_agent.runtime import process as runtime_process
from node_agent.runtime.deployments.cost_meter import Cost
from node_agent.runtime.loop import Runtime
from node_agent.supervisor.process_host import ConnectorsStart, Ended, RuntimeStart, Start
from node_agent.virtual.immediate_calls import ImmediateCallers
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_calls import SimulatedServer
from node_agent.virtual.simulated.simulated_channel import Channels, SimulatedEnd
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_loop import SimulatedLoop
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedListener, SimulatedNetwork
from node_agent.virtual.simulated.simulated_runtime import AmpleMachine, Telling, Told
from node_agent.virtual.simulated.virtual_time import Killed, Process, VirtualTime

MS = 1_000_000
RUNTIME_BEGINS_NS = 30 * MS  # from the fork, until what it imports is there
NEVER_NS = 1 << 62
CONTROL_BEGINS_NS = 300 * MS  # gRPC is large


class CountingLog(Log):
    """A log of which only the events are counted, and the last lines kept."""

    def __init__(self, node: str, part: str, counts: Counter[str], lines: list[str]) -> None:
        super().__init__(node, part)
        self._counts, self._lines, self._part = counts, lines, f"{node} {part}"

    def say(self, event: str, text: str, level: str = INFO, kind: str = "", **fields: object) -> bool:
        """Count it."""
        self._counts[event] += 1
        self._lines.append(f"{self._part}: {text}")
        return True


class DeclaredCosts:
    """`Meter`: each operator takes the time that its plan declares."""

    always = True

    def __init__(self, clock: SimulatedClock, work: Callable[[int], None]) -> None:
        self.costs: dict[Step, Cost] = {}
        self.began_ns = 0
        self._clock, self._work = clock, work

    def start(self) -> None:
        """The next instance begins now."""
        self.began_ns = self._clock.now_ns()

    def spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """The operator has returned."""
        self._work(step.cost_ns)


class Surroundings(NamedTuple):
    """What the processes of one machine share, from one boot to the next. registry: of a new runtime; on_result: told
    of each result that is delivered here; counts, lines: of the log; failures: of what no process caught;
    left: of processes that were killed, of which nothing may run any more, not even at its end."""

    time: VirtualTime
    host: SimulatedHost
    clock: SimulatedClock
    draws: Draws
    registry: Callable[[], Registry]
    on_result: Told
    counts: Counter[str]
    lines: list[str]
    failures: list[str]
    left: list[Any]

    def log(self, node: str, part: str) -> Log:
        """Of one process."""
        return CountingLog(node, part, self.counts, self.lines)


class SimulatedChild:
    """`ChildProcess`: a runtime or control. on_end: called when it has ended by itself."""

    def __init__(self, around: Surroundings, begins_ns: int, on_end: Callable[[], None]) -> None:
        self.around, self._begins_ns, self._on_end = around, begins_ns, on_end
        self._ended: Ended | None = None
        self.killed_by: type[BaseException] = GreenletExit
        self.working = False  # an operator runs
        self.stuck_since_ns = 0  # the true instant at which one began that was to take much longer; 0: none did
        self._stuck_ns = 0
        self.network = SimulatedNetwork(around.host, around.clock.now_ns, self._wait_until)
        self.process = self.network.process = Process(around.time, self._run)

    def body(self) -> int:
        """What it does; returns the exit code."""
        raise NotImplementedError

    def adopt(self, end: ChannelEnd) -> SimulatedEnd:
        """Wait for an end that is this process's."""
        assert isinstance(end, SimulatedEnd)
        self.network.adopt(end)
        return end

    def reap(self) -> Ended | None:
        """Told once."""
        ended, self._ended = self._ended, None
        return ended

    def kill(self) -> None:
        """The kernel closes what it had."""
        self.process.kill(self.killed_by)
        self.network.end()
        self._ended = None

    def die(self) -> None:
        """Killed by somebody else than the supervisor, which finds it."""
        if self.process.alive:
            self.kill()
            self._ended = Ended(-9, "killed by SIGKILL")
            self._on_end()

    def _run(self) -> None:
        self._wait_until(self.around.clock.now_ns() + self._begins_ns)
        try:
            code = self.body()
        except Exception:
            self.around.failures.append(f"{self.around.host.name}: {traceback.format_exc()}")
            code = 1
        self.around.time.after(0, lambda: self._finish(code))

    def _finish(self, code: int) -> None:
        self.network.end()
        self._ended = Ended(code, f"exit code {code}")
        self._on_end()

    def _wait_until(self, shown_ns: int) -> None:
        time = self.around.time
        self.process.sleep_until(max(self.around.clock.true_ns(shown_ns), time.now_ns + 1), wakeable=True)

    def get_stuck(self, ns: int) -> None:
        """The next operator takes so much more."""
        self._stuck_ns = ns

    def work(self, ns: int) -> None:
        """Let so much CPU time go by."""
        clock, time = self.around.clock, self.around.time
        until_ns = clock.now_ns() + ns + self._stuck_ns
        if self._stuck_ns:
            self._stuck_ns, self.stuck_since_ns = 0, time.now_ns
        self.working = True
        while clock.now_ns() < until_ns:
            self.process.sleep_until(max(clock.true_ns(until_ns), time.now_ns + 1))
        self.working = False


class RuntimeChild(SimulatedChild):
    """The runtime's own process, with its mail, its plans on disk and its ring."""

    def __init__(
        self, around: Surroundings, channels: Channels, what: RuntimeStart, channel: ChannelEnd,
        on_end: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(around, RUNTIME_BEGINS_NS, on_end)
        self.runtime: Runtime | None = None
        self._what, self._channels = what, channels
        self._supervisor = self.adopt(channels.again(cast("SimulatedEnd", channel)))
        self._control = self.adopt(channels.again(cast("SimulatedEnd", what.control)))

    def body(self) -> int:
        """As `runtime.process.main`."""
        what, around = self._what, self.around
        listener = cast("SimulatedListener", what.listener)
        self.network.listen(listener)
        around.counts["taken_over"] += len(what.taken_over)
        ring = what.settings.state.rings.open(what.ring.path)
        world = runtime_process.World(
            Ports(around.clock, self.network, AmpleMachine(), ImmediateCallers(around.clock.now_ns)),
            lambda number: self.adopt(self._channels.open_end(number)),
            around.log(what.settings.name, "runtime"), 0, DeclaredCosts(around.clock, self.work),
        )  # fmt: skip
        process = runtime_process.Process(
            what.settings, self._supervisor, self._control, listener, ring, what.starts, around.registry(), False,
            what.taken_over, world,
        )  # fmt: skip
        runtime = self.runtime = process.runtime
        name, epoch = what.settings.name, process.shared.lineage_epoch

        def report(lineage: Lineage, payload: Any) -> None:
            around.on_result(name, epoch, around.time.now_ns, lineage, payload)

        runtime.plans.commands = Telling(runtime, report)
        process.run()
        return 0


class ControlChild(SimulatedChild):
    """Control's own loop, with its deployments and its spool. port: where calls are answered."""

    def __init__(
        self, around: Surroundings, channels: Channels, what: Start, channel: ChannelEnd, on_end: Callable[[], None]
    ) -> None:
        super().__init__(around, CONTROL_BEGINS_NS, on_end)
        self.killed_by = Killed
        self._what, self._channels = what, channels
        self._supervisor = self.adopt(channels.again(cast("SimulatedEnd", channel)))

    def body(self) -> int:
        """As `control.entry.main`."""
        settings, around = self._what.settings, self.around
        self.loop = SimulatedLoop(self.network, around.clock.now_ns, self._failed)
        control = Control(
            settings, self._supervisor, SimulatedServer(around.host, settings.control[1], self.network),
            lambda number: self.adopt(self._channels.open_end(number)), around.log(settings.name, "control"),
            self.loop.time, lambda: None,
        )  # fmt: skip
        return self.loop.run_until_complete(control.run())

    def kill(self) -> None:
        """Its tasks are kept: one that is collected as garbage is closed, and runs once more for that."""
        if self.process.alive and hasattr(self, "loop"):
            self.around.left.extend(asyncio.all_tasks(self.loop))
        super().kill()

    def _failed(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else str(context)
        self.around.failures.append(f"{self.around.host.name} control: {text}")


class SimulatedProcessHost:
    """`ProcessHost` of one agent on a simulated machine. supervisor: the process in which the rules run."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.channels = Channels(around.host.wires)
        self.supervisor: Process | None = None
        self.runtime: RuntimeChild | None = None
        self.control: ControlChild | None = None
        self._listeners: list[SimulatedListener] = []

    def now_ns(self) -> int:
        """The node's clock."""
        return self._around.clock.now_ns()

    def wall_ns(self) -> int:
        """True time will do."""
        return self._around.time.now_ns

    def new_boot(self) -> int:
        """Drawn."""
        return self._around.draws.bits() | 1

    def listen(self, host: str, port: int, near: bool = False) -> SimulatedListener:
        """At that port of the machine."""
        listener = self._around.host.listen(port)
        self._listeners.append(listener)
        return listener

    def pair(self) -> tuple[ChannelEnd, ChannelEnd]:
        """In memory."""
        return self.channels.pair()

    def start(self, what: Start, channel: ChannelEnd, give_up: Callable[[], None]) -> SimulatedChild:
        """Nothing is copied, so nothing is given up."""
        if isinstance(what, RuntimeStart):
            self.runtime = RuntimeChild(self._around, self.channels, what, channel, self.wake)
            return self.runtime
        if isinstance(what, ConnectorsStart):
            raise OSError(errno.ENOSYS, "there is no other system in virtual time")
        self.control = ControlChild(self._around, self.channels, what, channel, self.wake)
        return self.control

    def sleep(self, ns: int) -> None:
        """The supervisor waits; a signal ends that early."""
        assert self.supervisor is not None
        time = self._around.time
        until_ns = self._around.clock.true_ns(self.now_ns() + ns)
        self.supervisor.sleep_until(max(until_ns, time.now_ns + 1), wakeable=True)

    def wake(self) -> None:
        """As SIGCHLD does."""
        if self.supervisor is not None:
            self.supervisor.wake()

    def park(self) -> None:
        """The process that runs now runs no more; it is to be killed."""
        events._set_running_loop(None)
        for process in self.processes():
            if process.current:
                process.sleep_until(NEVER_NS)

    def spend(self, ns: int) -> None:
        """The process that runs now waits for so long in a call, and does nothing else."""
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        for process in self.processes():
            if process.current:
                events._set_running_loop(None)
                process.sleep_until(self._around.time.now_ns + max(1, ns))
                events._set_running_loop(loop)

    def processes(self) -> list[Process]:
        """Those that live."""
        children = [child.process for child in (self.runtime, self.control) if child is not None]
        every = [self.supervisor, *children] if self.supervisor is not None else children
        return [process for process in every if process.alive]

    def die(self) -> None:
        """All of them at once, and what they listened at."""
        if self.supervisor is not None:
            self.supervisor.kill()
        for child in (self.runtime, self.control):
            if child is not None:
                child.kill()
        for listener in self._listeners:
            listener.close()
