"""The rules of the supervisor: what is started, watched, replaced and ended, and in which order.

It owns what must survive the others: the state directory's lock, the listening data sockets, the trace rings. It starts
one runtime per core, control, and the connectors where a plan has any, restarts what crashes, kills an operator that
hangs and a process that stands still, and ends everything in order. All it knows of the world comes through a
ProcessHost.
"""

from collections.abc import Iterator
from dataclasses import replace

from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.log import ERROR, INFO, WARNING, Log
from node_agent.host.settings import Settings
from node_agent.supervisor.child_process import SupervisedProcess
from node_agent.supervisor.connectors_process import ConnectorsProcess
from node_agent.supervisor.process_host import (
    ConnectorsStart,
    ControlStart,
    Ended,
    ProcessHost,
    RuntimeStart,
    Start,
    StartError,
)
from node_agent.supervisor.worker import Worker

SECOND_NS = 1_000_000_000
START_NS = 120 * SECOND_NS  # until all children are ready, on a machine that is slow or busy
RUNTIME_STOP_NS = 3 * SECOND_NS
CONTROL_STOP_NS = 5 * SECOND_NS
STOP_LOOK_NS = 2_000_000
HEALTHY_NS = 10 * SECOND_NS  # a child that lived so long is restarted without a pause
CONTROL_DUE_NS = 8 * SECOND_NS  # a disk may keep it for seconds


class Supervision:
    """One agent. announced: whether it has been ready. Call `prepare`, `start`, `step` again and again, then `end`."""

    def __init__(self, settings: Settings, host: ProcessHost, log: Log) -> None:
        self.settings, self.host, self.log = settings, host, log
        self.control = SupervisedProcess("control")
        self.places: list[Worker] = []  # a runtime each, in the order of their cores
        self.connectors = ConnectorsProcess(host, self._start_connectors, self.say)
        self.announced = False
        self._began_ns = host.now_ns()

    # -- start

    def prepare(self) -> None:
        """The state directory and the data sockets are this agent's. Raises StartError, StateError."""
        state = self.settings.state
        try:
            state.lock()
        except OSError as error:
            raise StartError("unwritable", f"cannot start: {error.strerror}", f"make room in {state.root}") from None
        for problem in state.starts.problems:
            self.say("starts_damaged", problem)
        state.rings.mark_abandoned()
        state.rings.sweep()
        self._listen()

    def _listen(self) -> None:
        """A data socket per place, before the first start: every runtime knows where the others are."""
        for core in range(self.settings.cores):
            self.places.append(Worker(self.settings, core, self.host))
        names = tuple((place.name, place.address) for place in self.places)
        self.settings = replace(self.settings, data=names[0][1], places=names)
        for place in self.places:
            place.settings = self.settings.at(place.core)

    def start(self) -> None:
        """The first runtimes, and control. Raises StartError."""
        try:
            for place in self.places:
                self._start_runtime(place)
            self._start_control()
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            there = f"{self.settings.state.root} and {self.settings.state.rings.parent}"
            raise StartError("unwritable", f"cannot start: {error.strerror}{where}", f"make room in {there}") from None

    def _start_runtime(self, place: Worker) -> None:
        """A new incarnation: its number, its ring, its process, and a channel between it and control."""
        live = [other.ring.path for other in self.places if other.ring is not None]
        if self.settings.state.rings.make_room(live):
            self.say("ring_dropped", "the oldest trace ring was dropped: nobody drains them")
        ring = place.begin()
        self._tell_reserve()
        runtime_end, control_end = self.host.pair()
        what = RuntimeStart(
            place.settings, runtime_end, place.listener, ring, place.count, tuple(place.taken_over)
        )  # fmt: skip
        try:
            self._begin(place.child, what, control_end)
        finally:
            runtime_end.close()
        started = place.started()
        assert started is not None
        place.tell(self.control, started, control_end)

    def _tell_reserve(self) -> None:
        reserve, self.settings.state.reserve.taken = self.settings.state.reserve.taken, False
        if reserve:
            root = self.settings.state.root
            text = f"no space is left in {root}: the start took the reserve; make room there, or collect what ran"
            self.say("disk_full", text)

    def _start_control(self) -> None:
        self._begin(self.control, ControlStart(self.settings))
        for place in self.places:
            place.tell_of_control(self.control)
        self._tell_replaced()

    def _start_connectors(self, child: SupervisedProcess, plans: ipc.Connect) -> None:
        self._begin(child, ConnectorsStart(self.settings, plans))

    def _begin(self, child: SupervisedProcess, what: Start, also: ChannelEnd | None = None) -> None:
        ours, theirs = self.host.pair()

        def give_up() -> None:
            self.settings.state.unlock()
            for place in self.places:
                place.give_up(own=place.child is child)
            for end in (self.control.channel, self.connectors.child.channel, also, ours):
                if end is not None:
                    end.close()

        try:
            process = self.host.start(what, theirs, give_up)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        child.started(process, ours, self.host.now_ns())

    # -- serve

    def step(self) -> None:
        """Look at everything once. Raises StartError where the agent does not become ready."""
        at_ns = self.host.now_ns()
        for place in self.places:
            if why := place.kill_if_hung(at_ns):
                self._ended(place, why)
                self._restart(place.child, place)
        for child, of in self.children():
            self._look_after(child, of)
        if (counted := self.connectors.step(at_ns)) is not None:
            self.control.say(counted)
        if not self.announced and all(child.ready for child, _ in self.children()):
            self.announced = True
        elif not self.announced and at_ns > self._began_ns + START_NS:
            late = " and ".join(child.name for child, _ in self.children() if not child.ready)
            raise StartError(
                "not_ready",
                f"{late} not ready within {START_NS // SECOND_NS} s: this machine does far more than it can",
                "start the agent again when it does less",
            )

    def children(self) -> Iterator[tuple[SupervisedProcess, Worker | None]]:
        """All of them; beside a runtime its place."""
        for place in self.places:
            yield place.child, place
        yield self.control, None

    def _look_after(self, child: SupervisedProcess, place: Worker | None) -> None:
        ended = child.reap()
        if ended is not None:
            self._on_end(child, place, ended)
        else:
            self._listen_to(child, place)
            self._kill_if_frozen(child, place)
        if child.process is None and self.host.now_ns() >= child.backoff.next_ns:
            self._restart(child, place)

    def _kill_if_frozen(self, child: SupervisedProcess, place: Worker | None) -> None:
        at_ns = self.host.now_ns()
        due_ns = child.due_ns if place is None else place.due_ns()
        if child.process is None or not child.ready:
            due_ns = 1 << 62 if child.process is None or not self.announced else child.started_ns + START_NS
        if not child.silence.look(at_ns, due_ns):
            return
        child.kill()
        child.replaced += 1
        why = f"{child.name} stood still and was killed"
        self.say("stood_still", f"{why}; it is started again", process=child.name)
        if place is not None:
            self._ended(place, f"crashed: {why}")
        self._tell_replaced()

    def _tell_replaced(self) -> None:
        runtimes = sum(place.child.replaced for place in self.places)
        if runtimes or self.control.replaced:
            self.control.say(ipc.Replaced(runtimes, self.control.replaced))

    def _restart(self, child: SupervisedProcess, place: Worker | None) -> None:
        try:
            if place is not None:
                self._start_runtime(place)
            else:
                self._start_control()
        except OSError as error:  # memory, disk or descriptors ran out: they may come back
            child.backoff.failed(self.host.now_ns())
            if place is not None:
                self._ended(place, "not started")
            self.say(
                "restart_failed",
                f"{child.name} cannot be started now: {error.strerror}; trying again",
                process=child.name,
            )

    def say(self, event: str, text: str, level: str = WARNING, **fields: object) -> None:
        """Log a line."""
        self.log.say(event, text, level, event if level == WARNING else "", **fields)

    def _listen_to(self, child: SupervisedProcess, place: Worker | None) -> None:
        """Read what it says."""
        if child.channel is None:
            return
        for message, _ in child.channel.receive():
            if isinstance(message, ipc.Failed):
                child.failed = message.why
                if self.announced:
                    self.say("child_failed", f"{child.name}: {message.why}", process=child.name)
            elif isinstance(message, ipc.RuntimeReady) and place is not None:
                child.ready, place.rt = True, message.rt
            elif isinstance(message, ipc.ControlReady):
                child.ready = True
                self.settings = replace(self.settings, control=(self.settings.control[0], message.port))
                self.connectors.tell_anew()
                if self.settings.metrics is not None:  # the same one again, when control has to be restarted
                    self.settings = replace(self.settings, metrics=(self.settings.metrics[0], message.metrics))
            elif isinstance(message, ipc.Connect):
                self.connectors.connect(message)
            if place is None:
                child.due_ns = self.host.now_ns() + CONTROL_DUE_NS

    def _on_end(self, child: SupervisedProcess, place: Worker | None, ended: Ended) -> None:
        self._listen_to(child, place)
        child.ready = False
        if not self.announced:
            why = child.failed or f"{child.name} ended while starting ({ended.text})"
            raise StartError("ended", why, exit_code=max(ended.code, 1), subject=child.name)
        at_ns = self.host.now_ns()
        if at_ns - child.started_ns > HEALTHY_NS:
            child.backoff.succeeded()
        child.backoff.failed(at_ns)
        why = f"crashed: {ended.text}"
        self.say("crashed", f"{child.name} {why}; it is started again", process=child.name)
        if place is not None:
            self._ended(place, why)

    def _ended(self, place: Worker, why: str) -> None:
        """The incarnation is over: close its ring and say so."""
        ring = place.ring
        if ring is None:
            return
        place.mark_crashed()
        self.control.say(ipc.RuntimeEnded(ring.header.boot, why))
        if why.startswith("operator hung"):
            self.say("operator_hung", f"{place.child.name} {why}; it is started again", place=place.name)
        ring.close()
        place.ring = None

    # -- end

    def fail(self, why: str) -> None:
        """Log why the agent does not start."""
        self.say("not_started", why, ERROR)

    def end(self) -> None:
        """Runtimes first, so that control can drain their last facts."""
        for place in self.places:
            place.child.ask_to_stop()
        until_ns = self.host.now_ns() + RUNTIME_STOP_NS
        for place in self.places:
            clean = self._await_end(place.child, until_ns)
            if place.ring is not None:
                place.mark_crashed()
                self.control.say(ipc.RuntimeEnded(place.ring.header.boot, "ended" if clean else "killed"))
        self.connectors.end()  # what the runtimes delivered last has been carried away
        self.control.ask_to_stop()
        self._await_end(self.control, self.host.now_ns() + CONTROL_STOP_NS)
        self.settings.state.rings.tidy()
        for place in self.places:
            place.listener.close()
        if self.announced:
            self.say("ended", "ended", INFO)

    def _await_end(self, child: SupervisedProcess, until_ns: int) -> bool:
        """False where it had to be killed, or ended badly."""
        if child.process is None:
            return True
        while self.host.now_ns() < until_ns:
            ended = child.reap()
            if ended is not None:
                return ended.code == 0
            self.host.sleep(STOP_LOOK_NS)
        child.kill()
        return False
