"""Shared by all parts of the runtime: the node's identity, the places of facts and counts, and the poller."""

import select
from collections import Counter
from typing import Protocol

from node_agent.core.shedding.refusals import Refusals
from node_agent.host.clock import now_ns
from node_agent.host.log import WARNING, Log
from node_agent.host.trace_ring import RingFacts

MOST_EVENTS = 64  # sockets served in one drain


class Handler(Protocol):
    """Handles a descriptor that is ready."""

    def on_ready(self, at_ns: int, mask: int) -> None:
        """mask: select.EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR."""


class Poller:
    """An epoll with a handler per descriptor."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.handlers: dict[int, Handler] = {}

    def add(self, descriptor: int, handler: Handler, mask: int = select.EPOLLIN) -> None:
        """Begin to wait for it."""
        self.handlers[descriptor] = handler
        self._epoll.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for something else."""
        self._epoll.modify(descriptor, mask)

    def remove(self, descriptor: int) -> None:
        """Call before the descriptor is closed."""
        if self.handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def wait(self, seconds: float) -> int:
        """Serve what is ready, after waiting for at most that long. Returns an instant by which all of it had been
        read, so that nothing which came in meanwhile is younger."""
        for descriptor, mask in self._epoll.poll(seconds, MOST_EVENTS):
            handler = self.handlers.get(descriptor)
            if handler is not None:  # it may have gone while an earlier one of this drain was served
                handler.on_ready(now_ns(), mask)
        return now_ns()


class Shared:
    """One per runtime process."""

    def __init__(
        self, name: str, clock: str, drift_ppm: int, boot: int, lineage_epoch: int, facts: RingFacts,
        log: Log | None = None,
    ) -> None:  # fmt: skip
        self.name, self.clock, self.drift_ppm = name, clock, drift_ppm
        self.boot, self.lineage_epoch = boot, lineage_epoch
        self.facts, self.refusals = facts, Refusals(facts, lineage_epoch)
        self.log = log or Log(name, "runtime")
        self.poller = Poller()
        self.counters: Counter[str] = Counter()
        self.unwritten_bytes = 0  # that sockets have not taken, of all connections

    def note(self, counter: str, text: str, level: str = WARNING, event: str = "", **fields: object) -> None:
        """Count it, and say so: the first few of its kind, then one a minute. event: the counter, unless told."""
        self.counters[counter] += 1
        self.log.say(event or counter, text, level, counter, **fields)
        if self.log.dropped:
            self.counters["log_lines_dropped"] = self.log.dropped
