"""A machine with an agent on it that nothing is left out of, in virtual time, and all that can happen to a machine."""

import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from node_agent.host.files.state_dir import StateDir, StateError
from node_agent.host.settings import Settings
from node_agent.operators.registry import Registry
from node_agent.supervisor.process_host import StartError
from node_agent.supervisor.supervision import Supervision
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk
from node_agent.virtual.simulated.simulated_network import SimulatedHost
from node_agent.virtual.simulated.simulated_processes import SimulatedProcessHost, Surroundings
from node_agent.virtual.simulated.simulated_rings import SimulatedRings
from node_agent.virtual.simulated.simulated_runtime import Told
from node_agent.virtual.simulated.virtual_time import Killed, Process, VirtualTime

WATCH_NS = 20_000_000
WATCHDOG_NS = 10_000_000_000  # as the unit file has it
AGAIN_NS = 2_000_000_000  # until systemd starts an agent that has failed again
CONTROL_PORT, DATA_PORT = 7700, 7701
STATE = Path("/state")
RING_RECORDS = 4096


class SimulatedMachine:
    """name: of the node; host: on the wires, named by its address; disk, rings: what its processes leave.

    The agent is started by the machine's service manager, at every boot and whenever it has failed. failures: what no
    process has caught; counts, lines: of the agent's log; boots: the true instants at which it was switched on.
    """

    def __init__(
        self, time: VirtualTime, name: str, host: SimulatedHost, clock: SimulatedClock, draws: Draws,
        registry: Callable[[], Registry], on_result: Told, ring_records: int = RING_RECORDS,
    ) -> None:  # fmt: skip
        self.name, self.time, self.host = name, time, host
        self.disk, self.rings = SimulatedDisk(draws), SimulatedRings(ring_records)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.lines: list[str] = []
        self._around = Surroundings(
            time, host, clock, draws, registry, on_result, self.counts, self.lines, self.failures, []
        )  # fmt: skip
        self.asleep = self._stopping = self._ended = False
        self._agents = 0
        self.agent: SimulatedProcessHost | None = None
        self._rules: Supervision | None = None  # of that agent
        self.boots: list[int] = []

    @property
    def clock(self) -> SimulatedClock:
        """Of this boot."""
        return self._around.clock

    @property
    def control(self) -> str:
        """Where calls are answered."""
        return f"{self.host.name}:{CONTROL_PORT}"

    @property
    def data(self) -> str:
        """Where tuples are taken in."""
        return f"{self.host.name}:{DATA_PORT}"

    # -- the agent

    def start(self) -> None:
        """Start the agent, unless it is there or nothing can start."""
        if self.agent is not None or not self.host.on or self.asleep:
            return
        self._agents += 1
        self.counts["agents"] += 1
        host = self.agent = SimulatedProcessHost(self._around)
        self._stopping = self._ended = False
        host.supervisor = Process(self.time, self._supervise)

    def _supervise(self) -> None:
        host, agent, code = self.agent, self._agents, 1
        assert host is not None
        try:
            code = self._serve(host)
        except Exception:
            self.failures.append(f"{self.name} supervisor: {traceback.format_exc()}")
        self.time.after(0, lambda: self._gone(agent, code))

    def _serve(self, host: SimulatedProcessHost) -> int:
        """As `Supervisor.run`."""
        try:
            state = StateDir(STATE, self.disk, self.rings)
        except StateError:
            return 1
        settings = Settings(
            self.name, (self.host.name, CONTROL_PORT), (self.host.name, DATA_PORT), state, clock=self.clock.domain,
            drift_ppm=self.clock.drift_ppm, rt=False,
        )  # fmt: skip
        rules = self._rules = Supervision(settings, host, self._around.log(self.name, "supervisor"))
        try:
            rules.prepare()
            rules.start()
            while not self._stopping:
                host.sleep(WATCH_NS)
                rules.step()
        except (StartError, StateError, OSError) as error:
            rules.fail(str(error))
            return 1
        finally:
            if not self._ended:  # else the process is dead, and does nothing more
                rules.end()
        return 0

    def _gone(self, agent: int, code: int) -> None:
        """The agent has ended by itself."""
        if agent == self._agents and self.agent is not None:
            self._end()
            if code:
                self.time.after(AGAIN_NS, self.start)

    def _end(self) -> None:
        host, self.agent, self._rules, self._ended = self.agent, None, None, True
        self.disk.before_step = _dead
        if host is not None:
            host.die()
        self.disk.before_step = _alive

    def spend(self, ns: int) -> None:
        """The process that runs now waits for so long, as for its disk."""
        if self.agent is not None:
            self.agent.spend(ns)

    # -- what happens to it

    def stop(self) -> None:
        """SIGTERM to the supervisor: the agent ends in order."""
        self._stopping = True
        if self.agent is not None:
            self.agent.wake()

    def kill_runtime(self) -> bool:
        """Whether there was one."""
        return self._kill("runtime")

    def kill_control(self) -> bool:
        """Whether there was one."""
        return self._kill("control")

    def _kill(self, which: str) -> bool:
        child = None if self.agent is None else getattr(self.agent, which)
        if child is None or not child.process.alive:
            return False
        child.die()
        return True

    def kill_supervisor(self) -> bool:
        """Its children die with it, and the service manager starts the agent again."""
        if self.agent is None:
            return False
        self._end()
        self.time.after(AGAIN_NS, self.start)
        return True

    def at_step(self, number: int, do: Callable[[], object], which: str = "") -> None:
        """Do it in the middle of what a process of the agent does on the disk: before its step of that number from now
        on, 0 for the next one; that a write has been done is a step as well. It has to kill that process, which does
        nothing more until then. which: the runtime's or control's steps alone."""
        left = number

        def look(step: str, path: Path) -> None:
            nonlocal left
            if which and not self._runs(which):
                return
            left -= 1
            if left >= 0 or self.agent is None:
                return
            self.forget_step()
            self.time.after(0, do)  # type: ignore[arg-type]
            self.agent.park()

        self.disk.before_step, self.disk.after_write = look, lambda path: look("written", path)

    def _runs(self, which: str) -> bool:
        child = None if self.agent is None else getattr(self.agent, which)
        return child is not None and child.process.current

    def forget_step(self) -> None:
        """What was to be done at a step, and was not, is not done."""
        self.disk.before_step, self.disk.after_write = _alive, _done

    def freeze(self, which: str) -> Callable[[], None] | None:
        """Stop the supervisor, the runtime or control as SIGSTOP does. Returns what lets it go on."""
        if self.agent is None:
            return None
        of = {
            "supervisor": self.agent.supervisor,
            "runtime": self.agent.runtime.process if self.agent.runtime is not None else None,
            "control": self.agent.control.process if self.agent.control is not None else None,
        }
        process = of[which]
        if process is None or not process.alive:
            return None
        process.pause()
        if which == "supervisor":
            self._give_up_silent(self._agents)
        return lambda: None if self.asleep else process.go_on()

    def watched(self, which: str) -> bool:
        """Whether that process is replaced soon where it stands still: one that has not said that it is ready may take
        two minutes for that."""
        ready = {child.name for child, _ in self._rules.children() if child.ready} if self._rules is not None else set()
        return which == "supervisor" or which in ready

    def _give_up_silent(self, agent: int) -> None:
        """The service manager gives up a supervisor that says nothing for a while."""

        def look() -> None:
            host = self.agent
            if agent == self._agents and host is not None and host.supervisor is not None and host.supervisor.paused:
                if self.asleep:
                    self._give_up_silent(agent)
                else:
                    self.counts["supervisor_stood_still"] += 1
                    self.kill_supervisor()

        self.time.after(WATCHDOG_NS, look)

    def power_off(self) -> None:
        """Everything that is not on the disk is gone."""
        self._end()
        self.host.power_off()
        self.rings.lose_power()
        self.disk.lose_power()

    def move(self, host: SimulatedHost) -> None:
        """It is at another address when it is switched on again."""
        self.host = host
        self._around = self._around._replace(host=host)

    def power_on(self, clock: SimulatedClock) -> None:
        """The machine boots; its clock begins anew and has another name."""
        self._around = self._around._replace(clock=clock)
        self.host.power_on()
        self.boots.append(self.time.now_ns)
        self.start()

    def suspend(self) -> None:
        """Nothing runs, the clock stands still, nothing gets through."""
        self.asleep = True
        self.clock.stop()
        self._for_each_way(cut=True)
        for process in self.agent.processes() if self.agent is not None else ():
            process.pause()

    def go_on(self) -> None:
        """It wakes up."""
        self.asleep = False
        self.clock.go_on()
        self._for_each_way(cut=False)
        for process in self.agent.processes() if self.agent is not None else ():
            process.go_on()
        self.start()

    def _for_each_way(self, cut: bool) -> None:
        wires, own = self.host.wires, self.host.name
        for other in wires.hosts:
            if other != own:
                for way in (wires.way(own, other), wires.way(other, own)):
                    way.cut() if cut else way.heal()


def _dead(step: str, path: Path) -> None:
    raise Killed


def _alive(step: str, path: Path) -> None:
    """Nothing happens."""


def _done(path: Path) -> None:
    """Nothing happens."""
