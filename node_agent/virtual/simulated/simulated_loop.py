"""asyncio for a process in virtual time: a loop of its own, without thread or socket, on the node's clock."""

import asyncio
from asyncio import events
from collections.abc import Callable
from typing import Any, TypeVar

from node_agent.ports import GONE, READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_network import SimulatedNetwork

NEVER_S = 3600.0

Result = TypeVar("Result")
Found = list[tuple[int, int]]  # descriptors, and what each is ready for


class _Readiness:
    """A handler that notes that its descriptor is ready."""

    def __init__(self, descriptor: int, found: Found) -> None:
        self._descriptor, self._found = descriptor, found

    def on_ready(self, at_ns: int, mask: int) -> None:
        self._found.append((self._descriptor, mask))


class _Waiting:
    """What asyncio takes for a selector: to wait is to let the other processes run, which have loops of their own."""

    def __init__(self, loop: "SimulatedLoop", network: SimulatedNetwork) -> None:
        self._loop, self._network = loop, network
        self.found: Found = []

    def select(self, timeout: float | None = None) -> Found:
        self.found.clear()
        events._set_running_loop(None)
        try:
            self._network.wait(NEVER_S if timeout is None else timeout)
        finally:
            events._set_running_loop(self._loop)
        return list(self.found)


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of one process. failed: told of what nobody caught."""

    def __init__(
        self, network: SimulatedNetwork, now: Callable[[], int], failed: Callable[[dict[str, Any]], None]
    ) -> None:
        self._runs = False
        super().__init__()
        self._network, self._now = network, now
        self._selector = self._waiting = _Waiting(self, network)
        self._readers: dict[int, events.Handle] = {}
        self._writers: dict[int, events.Handle] = {}
        self.set_exception_handler(lambda loop, context: failed(context))

    def time(self) -> float:
        """The node's clock [s]."""
        return self._now() / 1e9

    def run_forever(self) -> None:
        """Until `stop`. The hooks of asynchronous generators are one thread's, which all processes share: none."""
        self._runs = True
        events._set_running_loop(self)
        try:
            while True:
                self._run_once()  # type: ignore[attr-defined]
                if self._stopping:  # type: ignore[has-type]
                    break
        finally:
            self._stopping = self._runs = False
            events._set_running_loop(None)

    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._runs

    # -- readers and writers

    def add_reader(self, descriptor: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call it whenever there is something to read."""
        self._put(self._readers, descriptor, events.Handle(callback, list(args), self, None))

    def add_writer(self, descriptor: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call it whenever there is room to write."""
        self._put(self._writers, descriptor, events.Handle(callback, list(args), self, None))

    def remove_reader(self, descriptor: int) -> bool:  # type: ignore[override]
        """Whether there was one."""
        return self._take(self._readers, descriptor)

    def remove_writer(self, descriptor: int) -> bool:  # type: ignore[override]
        """Whether there was one."""
        return self._take(self._writers, descriptor)

    def _put(self, to: dict[int, events.Handle], descriptor: int, handle: events.Handle) -> None:
        known = descriptor in self._readers or descriptor in self._writers
        if (before := to.get(descriptor)) is not None:
            before.cancel()
        to[descriptor] = handle
        if known:
            self._network.change(descriptor, self._mask(descriptor))
        else:
            self._network.add(descriptor, _Readiness(descriptor, self._waiting.found), self._mask(descriptor))

    def _take(self, from_: dict[int, events.Handle], descriptor: int) -> bool:
        handle = from_.pop(descriptor, None)
        if handle is None:
            return False
        handle.cancel()
        if mask := self._mask(descriptor):
            self._network.change(descriptor, mask)
        else:
            self._network.remove(descriptor)
        return True

    def _mask(self, descriptor: int) -> int:
        return READABLE * (descriptor in self._readers) | WRITABLE * (descriptor in self._writers)

    def _process_events(self, event_list: Found) -> None:
        for descriptor, mask in event_list:
            for handles, wanted in ((self._readers, READABLE | GONE), (self._writers, WRITABLE | GONE)):
                handle = handles.get(descriptor)
                if handle is not None and mask & wanted:
                    self._ready.append(handle)  # type: ignore[attr-defined]

    # -- what would need a thread

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> events.Handle:
        """There is one thread."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Result], *args: Any) -> "asyncio.Future[Result]":  # type: ignore[override]
        """At once."""
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def __del__(self, *_: object) -> None:
        """It has nothing to close, and its process may have been killed."""

    def _write_to_self(self) -> None:
        """Nobody else wakes it."""
