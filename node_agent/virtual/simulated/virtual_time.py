"""Virtual time, and processes that live in it: each runs on a stack of its own and waits without waiting."""

from collections.abc import Callable
from heapq import heappop, heappush

from greenlet import GreenletExit, getcurrent, greenlet

Call = Callable[[], None]


class VirtualTime:
    """True time of a simulation [ns], which no clock shows exactly, and what is to happen in it.

    What is due at one instant happens in the order in which it was asked for, so that a run can be repeated.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.hub = getcurrent()  # the stack of the simulation itself
        self._heap: list[tuple[int, int, Call]] = []
        self._count = 0

    def at(self, at_ns: int, call: Call) -> None:
        """Call at that instant, at once where it is over."""
        self._count += 1
        heappush(self._heap, (max(at_ns, self.now_ns), self._count, call))

    def after(self, ns: int, call: Call) -> None:
        """Call so much later."""
        self.at(self.now_ns + ns, call)

    def run_until(self, at_ns: int) -> None:
        """Everything up to that instant. What a process raises comes out here."""
        heap = self._heap
        while heap and heap[0][0] <= at_ns:
            self.now_ns, _, call = heappop(heap)
            call()
        self.now_ns = at_ns


class Killed(GreenletExit, SystemExit):
    """The process is killed in the middle of something. asyncio lets that through, as what ends a program."""


class Process:
    """Runs `body`, which may wait: `sleep_until` is called by the body, everything else from outside of it."""

    def __init__(self, time: VirtualTime, body: Call) -> None:
        self._time, self._stack = time, greenlet(body, time.hub)
        self._wait = 0  # number of the wait that is under way
        self._wakeable = False
        self._paused = self._due = False
        time.after(0, lambda: self._resume(0))

    @property
    def alive(self) -> bool:
        """Whether the body has not ended."""
        return not self._stack.dead

    def sleep_until(self, at_ns: int, wakeable: bool = False) -> None:
        """Until that true instant, or until `wake` is called."""
        self._wait += 1
        number, self._wakeable = self._wait, wakeable
        self._time.at(at_ns, lambda: self._resume(number))
        assert getcurrent() is self._stack, "a process sleeps, not the simulation or another process"
        self._time.hub.switch()

    def wake(self) -> None:
        """Something has come: a wait that may end early ends."""
        if self._wakeable:
            self._wakeable = False
            number = self._wait
            self._time.after(0, lambda: self._resume(number))

    def pause(self) -> None:
        """As SIGSTOP does."""
        self._paused = True

    def go_on(self) -> None:
        """As SIGCONT does."""
        self._paused = False
        if self._due:
            self._due = False
            number = self._wait
            self._time.after(0, lambda: self._resume(number))

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._paused

    @property
    def current(self) -> bool:
        """Whether this is the process that runs now."""
        return getcurrent() is self._stack

    def kill(self, by: type[BaseException] = GreenletExit) -> None:
        """As SIGKILL does: nothing of the body runs any more, but for what it does on its way out. by: what is raised
        where it waits."""
        if self.alive:
            self._wait += 1  # nothing that was asked for wakes it
            self._stack.parent = getcurrent()  # it may be another process that does this, which goes on then
            try:
                self._stack.throw(by)
            except SystemExit:
                return

    def _resume(self, number: int) -> None:
        if number != self._wait or not self.alive:
            return
        if self._paused:
            self._due = True
            return
        self._wait += 1
        self._wakeable = False
        self._stack.switch()
