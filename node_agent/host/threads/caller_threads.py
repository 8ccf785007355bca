"""`ports.Callers` as threads of the runtime's process, one each.

Threads and not processes: a driver's handle, and what it gives, belong to the process that runs the operators, and an
interpreter for each source would take memory that small machines do not have. Nor on the scheduling thread: a camera
that blocks for 50 ms would hold up every unit of the node. What threads cost is Python's lock: a call that computes
holds it for SWITCH_S at a time, and counts against the node's time as its plan declares. A call that keeps the lock in
C code for longer than it takes to be declared hung holds up the scheduling thread, and the process is replaced.

They run below the scheduling thread where that has the FIFO class, so that they never keep it from a core, and above
everything of normal class, so that a sensor is read on time.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from node_agent.host import scheduling
from node_agent.ports import Network, Returned

SWITCH_S = 0.0001  # after which a thread that computes leaves the lock to the one that schedules


class CallerThreads:
    """All callers of one runtime. Ends of calls are told on the thread that waits on the network. real_time: that
    thread was given the FIFO class."""

    def __init__(self, network: Network, now: Callable[[], int], real_time: bool = False) -> None:
        self._network, self.now, self.real_time = network, now, real_time
        self._ended: deque[tuple[CallerThread, Returned]] = deque()
        self._bell = -1

    def open(self, name: str, returned: Callable[[Returned], None], paced: bool = False) -> "CallerThread":
        """A caller, whose thread begins with its first call."""
        if self._bell < 0:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._network.add(self._bell, self)
            sys.setswitchinterval(SWITCH_S)
        return CallerThread(self, name, returned)

    def ended(self, caller: "CallerThread", returned: Returned) -> None:
        """On a caller's thread: a call has ended."""
        self._ended.append((caller, returned))
        os.eventfd_write(self._bell, 1)

    def on_ready(self, at_ns: int, mask: int) -> None:
        """Tell what has ended."""
        os.eventfd_read(self._bell)
        while self._ended:
            caller, returned = self._ended.popleft()
            caller.tell(returned)


class CallerThread:
    """One thread. It is a daemon: a call that hangs keeps no process from its end."""

    def __init__(self, callers: CallerThreads, name: str, returned: Callable[[Returned], None]) -> None:
        self._callers, self._name = callers, name
        self._returned: Callable[[Returned], None] | None = returned
        self._thread: threading.Thread | None = None
        self._next: Callable[[], object] | None = None
        self._wake = threading.Semaphore(0)
        self.busy = False

    def call(self, function: Callable[[], object]) -> None:
        """Begin it on the thread."""
        self._next, self.busy = function, True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"source {self._name}"[:15], daemon=True)
            self._thread.start()
        self._wake.release()

    def tell(self, returned: Returned) -> None:
        """On the scheduling thread: the call has ended."""
        self.busy = False
        if self._returned is not None:
            self._returned(returned)

    def close(self) -> None:
        """The thread ends with the call that it makes."""
        self._returned = self._next = None
        self._wake.release()

    def _run(self) -> None:
        scheduling.below_runtime(self._callers.real_time)
        while True:
            self._wake.acquire()
            function, self._next = self._next, None
            if function is None:
                return
            value, error = None, None
            began_ns, cpu_ns = self._callers.now(), time.thread_time_ns()
            try:
                value = function()
            except BaseException as raised:  # the author's code may raise anything; nothing of it ends the process
                error = raised
            function = None  # what it holds may be a device
            spent_ns, at_ns = time.thread_time_ns() - cpu_ns, self._callers.now()
            self._callers.ended(self, Returned(at_ns, value, error, spent_ns, at_ns - began_ns))


__all__ = ["CallerThread", "CallerThreads"]
