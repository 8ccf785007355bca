"""The parent process: standard library only, highest FIFO priority where allowed, never busy.

It owns what must survive the others: the state directory's lock, the listening data sockets, the trace rings. It starts
one runtime per core and control, restarts what crashes, kills an operator that hangs, and ends everything in order. It
forks before anything heavy is imported, which keeps it small and its children's start quick.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from node_agent.host import ipc, scheduling
from node_agent.host.clock import now_ns
from node_agent.host.files.state_dir import StateError
from node_agent.host.log import ERROR, INFO, WARNING, Log
from node_agent.host.settings import Settings
from node_agent.supervisor.child_process import Child, StartError, status_text
from node_agent.supervisor.worker import Worker

WATCH_S = 0.02  # the hang cells are looked at this often
START_S = 120.0  # until all children are ready, on a machine that is slow or busy
RUNTIME_STOP_S = 3.0
CONTROL_STOP_S = 5.0
HEALTHY_NS = 10_000_000_000  # a child that lived so long is restarted without a pause


class Supervisor:
    """One agent. `run` returns the exit code."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log = Log(settings.name, "supervisor", settings.log_json)
        self.control = Child("control")
        self.places: list[Worker] = []  # a runtime each, in the order of their cores
        self._stop = False
        self._announced = False
        self._wake_r, self._wake_w = -1, -1

    def run(self) -> int:
        """Until SIGTERM or SIGINT."""
        try:
            self._prepare()
            self._start()
            self._serve()
        except (StartError, StateError) as error:
            self._say("not_started", str(error), ERROR)
            return error.code if isinstance(error, StartError) else 1
        finally:
            self._end()
        return 0

    # -- start

    def _prepare(self) -> None:
        state = self.settings.state
        try:
            state.lock()
        except OSError as error:
            raise StartError(f"cannot start: {error.strerror}; make room in {state.root}") from None
        for problem in state.starts.problems:
            self._say("starts_damaged", problem)
        state.rings.mark_abandoned()
        state.rings.sweep()
        self._listen()
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the selector
        if self.settings.rt:
            scheduling.fifo(scheduling.SUPERVISOR_PRIORITY)

    def _listen(self) -> None:
        """A data socket per place, before the first fork: every runtime knows where the others are."""
        for core in range(self.settings.cores):
            self.places.append(Worker(self.settings, core))
        names = tuple((place.name, place.address) for place in self.places)
        self.settings = replace(self.settings, data=names[0][1], places=names)
        for place in self.places:
            place.settings = self.settings.at(place.core)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop = True

    def _start(self) -> None:
        here = scheduling.cores()
        if 1 < self.settings.cores >= here:
            self._say(
                "no_core_left",
                f"{self.settings.cores} runtimes on {here} cores leave none for control and the rest of the machine:"
                f" bounds may not hold; give --cores {max(here - 1, 1)}",
            )
        try:
            for place in self.places:
                self._start_runtime(place)
            self._start_control()
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            there = f"{self.settings.state.root} and {self.settings.state.rings.parent}"
            raise StartError(f"cannot start: {error.strerror}{where}; make room in {there}") from None

    def _start_runtime(self, place: Worker) -> None:
        """A new incarnation: its number, its ring, its process, and a channel between it and control."""
        live = [other.ring.path for other in self.places if other.ring is not None]
        if self.settings.state.rings.make_room(live):
            self._say("ring_dropped", "the oldest trace ring was dropped: nobody drains them")
        ring = place.begin()
        self._tell_reserve()
        runtime_end, control_end = ipc.Channel.pair()

        def body(channel: ipc.Channel) -> int:
            control_end.close()
            from node_agent.runtime import process

            return process.main(
                place.settings, channel, runtime_end, place.listener, ring, place.count, tuple(place.taken_over)
            )

        self._fork(place.child, body)
        runtime_end.close()
        started = place.started()
        assert started is not None
        place.tell(self.control, started, control_end)

    def _tell_reserve(self) -> None:
        reserve, self.settings.state.reserve.taken = self.settings.state.reserve.taken, False
        if reserve:
            root = self.settings.state.root
            text = f"no space is left in {root}: the start took the reserve; make room there, or collect what ran"
            self._say("disk_full", text)

    def _start_control(self) -> None:
        def body(channel: ipc.Channel) -> int:
            scheduling.ordinary()
            from node_agent.control import entry

            return entry.main(self.settings, channel)

        self._fork(self.control, body)
        for place in self.places:
            place.tell_of_control(self.control)

    def _fork(self, child: Child, body: Callable[[ipc.Channel], int]) -> None:
        def become(parent: int, ours: ipc.Channel) -> None:
            scheduling.die_with(parent)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._wake_r)
            os.close(self._wake_w)
            self.settings.state.unlock()
            for place in self.places:
                place.give_up(own=place.child is child)
            if self.control.channel is not None:
                self.control.channel.close()
            ours.close()
            output = os.open(os.devnull, os.O_WRONLY)
            os.dup2(output, 1)  # stdout is for the line that says ready
            os.close(output)

        def checked(channel: ipc.Channel) -> int:
            from protos import requirements  # after the fork: the supervisor stays small

            if unmet := requirements.unmet():
                channel.send(ipc.Failed(requirements.mend(unmet)))
                return 1
            return body(channel)

        child.fork(body if child.started_ns else checked, become)  # a restart is quick

    # -- serve

    def _serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._wake_r, selectors.EVENT_READ)
        until = time.monotonic() + START_S
        while not self._stop:
            selector.select(WATCH_S if self._announced else 0.002)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_r, 4096)
            for place in self.places:
                if why := place.kill_if_hung():
                    self._ended(place, why)
                    self._restart(place.child, place)
            for child, of in self._children():
                self._look_after(child, of)
            if not self._announced:
                self._announce()
                if not self._announced and time.monotonic() > until:
                    late = " and ".join(child.name for child, _ in self._children() if not child.ready)
                    raise StartError(
                        f"{late} not ready within {START_S:g} s: this machine does far more than it can;"
                        " start the agent again when it does less"
                    )

    def _children(self) -> Iterator[tuple[Child, Worker | None]]:
        for place in self.places:
            yield place.child, place
        yield self.control, None

    def _look_after(self, child: Child, place: Worker | None) -> None:
        status = child.reap()
        if status is not None:
            self._on_end(child, place, status)
        else:
            self._listen_to(child, place)
        if not child.pid and now_ns() >= child.backoff.next_ns:
            self._restart(child, place)

    def _restart(self, child: Child, place: Worker | None) -> None:
        try:
            if place is not None:
                self._start_runtime(place)
            else:
                self._start_control()
        except OSError as error:  # memory, disk or descriptors ran out: they may come back
            child.backoff.failed(now_ns())
            if place is not None:
                self._ended(place, "not started")
            self._say(
                "restart_failed",
                f"{child.name} cannot be started now: {error.strerror}; trying again",
                process=child.name,
            )

    def _say(self, event: str, text: str, level: str = WARNING, **fields: object) -> None:
        self.log.say(event, text, level, event if level == WARNING else "", **fields)

    def _listen_to(self, child: Child, place: Worker | None) -> None:
        """Read what it says."""
        if child.channel is None:
            return
        for message, _ in child.channel.receive():
            if isinstance(message, ipc.Failed):
                child.failed = message.why
                if self._announced:
                    self._say("child_failed", f"{child.name}: {message.why}", process=child.name)
            elif isinstance(message, ipc.RuntimeReady) and place is not None:
                child.ready, place.rt = True, message.rt
            elif isinstance(message, ipc.ControlReady):
                child.ready = True
                self.settings = replace(self.settings, control=(self.settings.control[0], message.port))
                if self.settings.metrics is not None:  # the same one again, when control has to be restarted
                    self.settings = replace(self.settings, metrics=(self.settings.metrics[0], message.metrics))

    def _announce(self) -> None:
        if not all(child.ready for child, _ in self._children()):
            return
        settings = self.settings
        line: dict[str, object] = {
            "name": settings.name, "address": settings.control[0], "control": settings.control[1],
            "data": settings.data[1], "rt": all(place.rt for place in self.places), "pid": os.getpid(),
            "clock": settings.clock,
        }  # fmt: skip
        if settings.tls is not None:
            line["tls"] = True
        if settings.metrics is not None:
            line["metrics"] = settings.metrics[1]
        if settings.cores > 1:
            line["cores"] = [{"name": name, "data": address[1]} for name, address in settings.places]
        print(json.dumps(line), flush=True)  # noqa: T201
        self._announced = True
        rt = "with" if line["rt"] else "without"
        told = f"ready: control on port {settings.control[1]}, data on {settings.data[1]}, {rt} real-time priority"
        self._say("started", told, INFO, **line)
        gc.enable()

    def _on_end(self, child: Child, place: Worker | None, status: int) -> None:
        self._listen_to(child, place)
        if not self._announced:
            why = child.failed or f"{child.name} ended while starting ({status_text(status)})"
            raise StartError(why, max(os.waitstatus_to_exitcode(status), 1))
        if now_ns() - child.started_ns > HEALTHY_NS:
            child.backoff.succeeded()
        child.backoff.failed(now_ns())
        why = f"crashed: {status_text(status)}"
        self._say("crashed", f"{child.name} {why}; it is started again", process=child.name)
        if place is not None:
            self._ended(place, why)

    def _ended(self, place: Worker, why: str) -> None:
        """The incarnation is over: close its ring and say so."""
        ring = place.ring
        if ring is None:
            return
        place.mark_crashed()
        self._tell_ended(ring.header.boot, why)
        if why.startswith("operator hung"):
            self._say("operator_hung", f"{place.child.name} {why}; it is started again", place=place.name)
        ring.close()
        place.ring = None

    def _tell_ended(self, boot: int, why: str) -> None:
        if self.control.pid and self.control.channel is not None:
            self.control.channel.send(ipc.RuntimeEnded(boot, why))

    # -- end

    def _end(self) -> None:
        """Runtimes first, so that control can drain their last facts."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        for place in self.places:
            place.child.ask_to_stop()
        until = time.monotonic() + RUNTIME_STOP_S
        for place in self.places:
            clean = place.child.await_end(until)
            if place.ring is not None:
                place.mark_crashed()
                self._tell_ended(place.ring.header.boot, "ended" if clean else "killed")
        self.control.ask_to_stop()
        self.control.await_end(time.monotonic() + CONTROL_STOP_S)
        self.settings.state.rings.tidy()
        for place in self.places:
            place.listener.close()
        if self._announced:
            self._say("ended", "ended", INFO)
