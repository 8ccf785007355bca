"""The parent process: standard library only, highest FIFO priority where allowed, never busy.

It owns what must survive the others: the state directory's lock, the listening data socket, the trace rings. It starts
the runtime and control, restarts what crashes, kills an operator that hangs, and ends everything in order. It forks
before anything heavy is imported, which keeps it small and its children's start quick.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from node_agent import ipc
from node_agent.clock_domain import new_boot, now_ns
from node_agent.link.backoff import Backoff
from node_agent.ring import STATE, Ring, TakenOver
from node_agent.runtime import scheduling
from node_agent.settings import Settings
from node_agent.state_dir import StateError
from node_agent.watch import hung, write_hung
from protos import records

WATCH_S = 0.02  # the hang cell is looked at this often
MOST_TAKEN_OVER = 256  # tuples of killed incarnations that may be sent again; older ones are forgotten
START_S = 30.0  # until both children are ready
RUNTIME_STOP_S = 3.0
CONTROL_STOP_S = 5.0
HEALTHY_NS = 10_000_000_000  # a child that lived so long is restarted without a pause
BACKLOG = 128


class StartError(Exception):
    """The agent cannot start; one sentence with the mend, and the exit code."""

    def __init__(self, why: str, code: int = 1) -> None:
        super().__init__(why)
        self.code = code


class Child:
    """One child process and the channel to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pid = 0  # 0: not running
        self.channel: ipc.Channel | None = None
        self.started_ns = 0
        self.backoff = Backoff(50_000_000, 2_000_000_000)
        self.ready = False
        self.failed = ""  # why it cannot start

    def reap(self) -> int | None:
        """Its wait status if it has ended, else None."""
        if not self.pid:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid, self.ready = 0, False
        return status

    def kill(self) -> None:
        """At once, and reaped."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid, self.ready = 0, False

    def stop(self, seconds: float) -> bool:
        """Say Stop and wait. False where it had to be killed."""
        if not self.pid or self.channel is None:
            return True
        self.channel.send(ipc.Stop())
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            status = self.reap()
            if status is not None:
                return status == 0
            time.sleep(0.002)
        self.kill()
        return False


class Supervisor:
    """One agent. `run` returns the exit code."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.runtime, self.control = Child("runtime"), Child("control")
        self.ring: Ring | None = None
        self.rt = False
        self.listener: socket.socket | None = None
        self._count = 0  # of runtime starts
        self._taken_over: deque[tuple[int, TakenOver]] = deque(maxlen=MOST_TAKEN_OVER)  # with the lineage epoch
        self._pending: tuple[ipc.RuntimeStarted, ipc.Channel] | None = None  # control is not there to be told
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
            self._say(str(error))
            return error.code if isinstance(error, StartError) else 1
        finally:
            self._end()
        return 0

    # -- start

    def _start(self) -> None:
        try:
            self._start_runtime()
            self._start_control()
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            raise StartError(f"cannot start: {error.strerror}{where}; make room") from None

    def _prepare(self) -> None:
        state = self.settings.state
        state.lock()
        state.mark_abandoned()
        state.sweep()
        self.listener = _listen(self.settings)
        self.settings = replace(self.settings, data=self.listener.getsockname()[:2])
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the selector
        if self.settings.rt:
            scheduling.fifo(scheduling.SUPERVISOR_PRIORITY)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop = True

    def _start_runtime(self) -> None:
        """A new incarnation: its number, its ring, its process, and a channel between it and control."""
        state, listener = self.settings.state, self.listener
        assert listener is not None
        count = state.count_start()
        if state.make_room():
            self._say("the oldest trace ring was dropped: nobody drains them")
        header = records.Header(
            node=self.settings.name, node_index=records.NO_REF, boot=new_boot(), clock=self.settings.clock,
            drift_ppm=self.settings.drift_ppm, started_ns=now_ns(), wall_ns=time.time_ns(),
        )  # fmt: skip
        ring = self.ring = Ring.create(state.ring_path(header.boot), header)
        self._count = count
        runtime_end, control_end = ipc.Channel.pair()

        def body(channel: ipc.Channel) -> int:
            control_end.close()
            from node_agent.runtime import process

            return process.main(self.settings, channel, runtime_end, listener, ring, count, tuple(self._taken_over))

        self._fork(self.runtime, body)
        runtime_end.close()
        self._to_control(ipc.RuntimeStarted(header.boot, count, str(ring.path)), control_end)

    def _start_control(self) -> None:
        """Control, and a channel between it and the runtime that is there already."""

        def body(channel: ipc.Channel) -> int:
            scheduling.ordinary()
            if self.listener is not None:
                self.listener.close()
            from node_agent.control import main

            return main.main(self.settings, channel)

        self._fork(self.control, body)
        pending, self._pending = self._pending, None
        if pending is not None:
            self._to_control(*pending)
        elif self.ring is not None:
            runtime_end, control_end = ipc.Channel.pair()
            if self.runtime.pid and self.runtime.channel is not None:
                self.runtime.channel.send(ipc.NewChannel(), runtime_end.fileno())
            runtime_end.close()
            self._to_control(ipc.RuntimeStarted(self.ring.header.boot, self._count, str(self.ring.path)), control_end)

    def _to_control(self, message: ipc.RuntimeStarted, end: ipc.Channel) -> None:
        channel = self.control.channel
        if not self.control.pid or channel is None or not channel.send(message, end.fileno()):
            if self._pending is not None:
                self._pending[1].close()
            self._pending = (message, end)
            return
        end.close()

    def _fork(self, child: Child, body: Callable[[ipc.Channel], int]) -> None:
        ours, theirs = ipc.Channel.pair()
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # a collection would write to pages that are shared with the child
        pid = os.fork()
        if not pid:
            code = 1
            try:
                gc.disable()
                self._become_child(parent, ours)
                code = body(theirs)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        theirs.close()
        if child.channel is not None:
            child.channel.close()
        child.pid, child.channel, child.started_ns, child.ready = pid, ours, now_ns(), False

    def _become_child(self, parent: int, ours: ipc.Channel) -> None:
        scheduling.die_with(parent)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._wake_r)
        os.close(self._wake_w)
        self.settings.state.unlock()
        for other in (self.runtime, self.control):
            if other.channel is not None:
                other.channel.close()
        ours.close()
        if self._pending is not None:
            self._pending[1].close()
        output = os.open(os.devnull, os.O_WRONLY)
        os.dup2(output, 1)  # stdout is for the line that says ready
        os.close(output)

    # -- serve

    def _serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._wake_r, selectors.EVENT_READ)
        until = time.monotonic() + START_S
        while not self._stop:
            selector.select(WATCH_S if self._announced else 0.002)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_r, 4096)
            self._watch()
            for child in (self.runtime, self.control):
                status = child.reap()
                if status is not None:
                    self._on_end(child, status)
                else:
                    self._listen_to(child)
                if not child.pid and now_ns() >= child.backoff.next_ns:
                    self._restart(child)
            if not self._announced:
                self._announce()
                if not self._announced and time.monotonic() > until:
                    raise StartError(f"not ready within {START_S:g} s")

    def _restart(self, child: Child) -> None:
        try:
            (self._start_runtime if child is self.runtime else self._start_control)()
        except OSError as error:  # memory, disk or descriptors ran out: they may come back
            child.backoff.failed(now_ns())
            if child is self.runtime:
                self._ended("not started")
            self._say(f"{child.name} cannot be started now: {error.strerror}; trying again")

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody may read it any more
            print(f"node-agent {self.settings.name}: {text}", file=sys.stderr, flush=True)  # noqa: T201

    def _listen_to(self, child: Child) -> None:
        """Read what it says."""
        if child.channel is None:
            return
        for message, _ in child.channel.receive():
            if isinstance(message, ipc.Failed):
                child.failed = message.why
                if self._announced:
                    self._say(f"{child.name}: {message.why}")
            elif isinstance(message, ipc.RuntimeReady):
                child.ready, self.rt = True, message.rt
            elif isinstance(message, ipc.ControlReady):
                child.ready = True
                self.settings = replace(self.settings, control=(self.settings.control[0], message.port))

    def _announce(self) -> None:
        if not (self.runtime.ready and self.control.ready):
            return
        settings = self.settings
        line = {
            "name": settings.name, "address": settings.control[0], "control": settings.control[1],
            "data": settings.data[1], "rt": self.rt, "pid": os.getpid(), "clock": settings.clock,
        }  # fmt: skip
        print(json.dumps(line), flush=True)  # noqa: T201
        self._announced = True
        gc.enable()

    def _watch(self) -> None:
        """Kill an operator that hangs."""
        ring = self.ring
        if ring is None or not self.runtime.pid:
            return
        running = hung(ring, now_ns())
        if running is None:
            return
        self.runtime.kill()
        self._taken_over.extend((self._count & 0xFFFF, each) for each in ring.promised())
        ring.note_dropped()
        write_hung(ring, running, now_ns())
        self._ended(f"operator hung: unit {running.unit} was killed after {running.hang_ns / 1e9:g} s")
        self._restart(self.runtime)

    def _on_end(self, child: Child, status: int) -> None:
        self._listen_to(child)
        if not self._announced:
            why = child.failed or f"{child.name} ended while starting ({_status(status)})"
            raise StartError(why, max(os.waitstatus_to_exitcode(status), 1))
        if now_ns() - child.started_ns > HEALTHY_NS:
            child.backoff.succeeded()
        child.backoff.failed(now_ns())
        why = f"crashed: {_status(status)}"
        self._say(f"{child.name} {why}; it is started again")
        if child is self.runtime:
            self._ended(why)

    def _ended(self, why: str) -> None:
        """The incarnation is over: close its ring and say so."""
        ring = self.ring
        if ring is None:
            return
        if ring.cells[STATE] == 0:
            ring.note_dropped()
            ring.cells[STATE] = records.STATE_CRASHED
        if self.control.pid and self.control.channel is not None:
            self.control.channel.send(ipc.RuntimeEnded(ring.header.boot, why))
        self._say(f"runtime {why}")
        ring.close()
        self.ring = None

    # -- end

    def _end(self) -> None:
        """Runtime first, so that control can drain its last facts."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        clean = self.runtime.stop(RUNTIME_STOP_S)
        if self.ring is not None:
            if self.ring.cells[STATE] == 0:
                self.ring.note_dropped()
                self.ring.cells[STATE] = records.STATE_CRASHED
            if self.control.pid and self.control.channel is not None:
                self.control.channel.send(ipc.RuntimeEnded(self.ring.header.boot, "ended" if clean else "killed"))
        self.control.stop(CONTROL_STOP_S)
        self.settings.state.tidy()
        if self.listener is not None:
            self.listener.close()


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.data
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = f"cannot listen on {host}:{port} for data: {error.strerror}; give another with --data"
        raise StartError(why) from None
    return listener


def _status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit code {os.WEXITSTATUS(status)}"
