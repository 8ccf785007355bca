"""A child process of the supervisor: forked without exec, spoken to over a channel, reaped, killed."""

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

from node_agent.host import ipc
from node_agent.host.clock import now_ns
from node_agent.link.backoff import Backoff


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

    def fork(self, body: Callable[[ipc.Channel], int], become: Callable[[int, ipc.Channel], None]) -> None:
        """Run `body` with its channel in a new process; what it returns is the exit code.

        become: called first, with the parent's pid and the parent's end of the channel, to give up what is the
        parent's.
        """
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
                become(parent, ours)
                code = body(theirs)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        theirs.close()
        if self.channel is not None:
            self.channel.close()
        self.pid, self.channel, self.started_ns, self.ready = pid, ours, now_ns(), False

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

    def ask_to_stop(self) -> None:
        """Say Stop."""
        if self.pid and self.channel is not None:
            self.channel.send(ipc.Stop())

    def await_end(self, until_s: float) -> bool:
        """Wait for it until that instant of time.monotonic. False where it had to be killed, or ended badly."""
        if not self.pid or self.channel is None:
            return True
        while time.monotonic() < until_s:
            status = self.reap()
            if status is not None:
                return status == 0
            time.sleep(0.002)
        self.kill()
        return False


def status_text(status: int) -> str:
    """How a process ended."""
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit code {os.WEXITSTATUS(status)}"
