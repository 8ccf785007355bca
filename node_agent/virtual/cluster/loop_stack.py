"""The stack of a node's loop in virtual time: the loop waits, or lets an operator's time go by, and others go on."""

from collections.abc import Callable

from greenlet import GreenletExit, getcurrent, greenlet

from node_agent.virtual.event_queue import DISPATCHED, ENDED, TAKEN, Events


class LoopStack:
    """Runs `body`. `work`, `settle` and `wait_until` are called by the body, everything else from outside of it.

    Where nothing else happens meanwhile time goes on at once, without leaving the stack.
    """

    __slots__ = ("_events", "_number", "_stack", "_waits")

    def __init__(self, events: Events, body: Callable[[], None]) -> None:
        self._events, self._stack = events, greenlet(body)
        self._number = 0  # of the wait that is under way
        self._waits = False  # it may end early
        events.at(events.now_ns, DISPATCHED, self._resume, 0)

    def work(self, ns: int) -> None:
        """An operator, or a decision, takes so long: it ends before anything arrives at that instant."""
        at_ns = self._events.now_ns + ns
        if not self._events.skip_to(at_ns, ENDED):
            self._leave(at_ns, ENDED)

    def work_until(self, at_ns: int) -> bool:
        """An operator takes until that instant. False: something has come before, and is to be looked at."""
        if not self._events.skip_to(at_ns, ENDED):
            self._waits = True
            self._leave(at_ns, ENDED)
        return self._events.now_ns >= at_ns

    def settle(self, kind: int) -> None:
        """Everything of this instant that comes before that turn has happened."""
        at_ns = self._events.now_ns
        if not self._events.skip_to(at_ns, kind):
            self._leave(at_ns, kind)

    def wait_until(self, at_ns: int) -> None:
        """Until that instant, or until `wake`."""
        if not self._events.skip_to(at_ns, DISPATCHED):
            self._waits = True
            self._leave(at_ns, DISPATCHED)

    def wake(self) -> None:
        """Something has come."""
        if self._waits:
            self._waits = False
            self._events.at(self._events.now_ns, TAKEN, self._resume, self._number)

    def end(self) -> None:
        """Nothing of the body runs any more."""
        if not self._stack.dead:
            self._number += 1
            self._stack.throw(GreenletExit)

    def _leave(self, at_ns: int, kind: int) -> None:
        self._number += 1
        self._events.at(at_ns, kind, self._resume, self._number)
        hub = getcurrent().parent
        assert hub is not None, "a loop waits, not the simulation"
        hub.switch()

    def _resume(self, at_ns: int, number: int) -> None:
        if number == self._number and not self._stack.dead:
            self._number += 1
            self._waits = False
            self._stack.switch()
