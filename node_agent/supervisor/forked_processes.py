"""The processes of a live agent: forked without exec, reaped, killed."""

import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable

from node_agent.host import ipc, scheduling
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.clock import new_boot, now_ns
from node_agent.host.network import SocketListener, near_socket
from node_agent.supervisor.process_host import ConnectorsStart, ControlStart, Ended, RuntimeStart, Start, StartError

BACKLOG = 128
PARTS = {RuntimeStart: "runtime", ControlStart: "control", ConnectorsStart: "connectors"}  # as `ps` shows them


class ForkedChild:
    """`ChildProcess` with that process id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def reap(self) -> Ended | None:
        """By the kernel's word."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return Ended(-number, f"killed by {signal.Signals(number).name}")
        return Ended(os.WEXITSTATUS(status), f"exit code {os.WEXITSTATUS(status)}")

    def kill(self) -> None:
        """By SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class DataSocket:
    """`DataListener` of this machine. near: its Unix socket, where it has one."""

    def __init__(self, listening: socket.socket, near: socket.socket | None) -> None:
        self.listening, self.near = listening, near

    @property
    def address(self) -> tuple[str, int]:
        """As the kernel has it."""
        host, port = self.listening.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """This process's copy of it."""
        self.listening.close()
        if self.near is not None:
            self.near.close()


class ForkedProcesses:
    """`ProcessHost` of this machine. give_up: closes what is the supervisor's loop's, in a child."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self.now_ns, self.wall_ns, self.new_boot = now_ns, time.time_ns, new_boot

    def listen(self, host: str, port: int, near: bool = False) -> DataSocket:
        """A TCP socket. near: and a Unix socket, unless its name is taken. Raises StartError."""
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            low = ", since ports below 1024 are root's" if isinstance(error, PermissionError) and port < 1024 else ""
            why = f"cannot listen on {host}:{port} for data: {error.strerror}{low}"
            raise StartError("not_usable", why, "give another with --data", subject="--data") from None
        return DataSocket(listening, near_socket(*listening.getsockname()[:2]) if near else None)

    def pair(self) -> tuple[ChannelEnd, ChannelEnd]:
        """Unix sockets."""
        return ipc.Channel.pair()

    def sleep(self, ns: int) -> None:
        """Of this process."""
        time.sleep(ns / 1e9)

    def start(self, what: Start, channel: ChannelEnd, give_up: Callable[[], None]) -> ForkedChild:
        """Fork. What the body returns is the exit code."""
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # a collection would write to pages that are shared with the child
        pid = os.fork()
        if pid:
            return ForkedChild(pid)
        code = 1
        try:
            gc.disable()
            self._become(parent, give_up)
            code = _run(what, channel)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _become(self, parent: int, give_up: Callable[[], None]) -> None:
        scheduling.die_with(parent)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._give_up()
        give_up()
        output = os.open(os.devnull, os.O_WRONLY)
        os.dup2(output, 1)  # stdout is for the line that says ready
        os.close(output)


def _run(what: Start, channel: ChannelEnd) -> int:
    scheduling.name_process(f"{PARTS[type(what)]} {what.settings.name}")
    if isinstance(what, RuntimeStart):
        from node_agent.runtime import process

        assert isinstance(what.listener, DataSocket)
        listener = SocketListener(what.listener.listening, what.listener.near)
        return process.main(what.settings, channel, what.control, listener, what.ring, what.starts, what.taken_over)
    scheduling.ordinary()
    if isinstance(what, ConnectorsStart):
        from node_agent.connectors import connector_threads

        return connector_threads.main(what.settings, channel, what.plans)
    from node_agent.control import entry

    return entry.main(what.settings, channel)
