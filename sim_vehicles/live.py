"""Sends bursts into live agents at their instants.

One thread per node, so that bursts of different nodes leave at the same time; within a node they leave in the order
of their list. Every instant counts from one common start: a burst that leaves late makes no later one late.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Protocol

from google.protobuf.message import Message

from node_agent.codecs import CodecError, Codecs, UnknownCodecError
from node_agent.connection import AgentError, NoAnswerError, NotAcceptedError
from node_agent.runtime.scheduling import RUNTIME_PRIORITY, fifo
from protos.vehicle_pb2 import Cpm, Hazard, Sensor
from sim_vehicles.errors import FeedError
from sim_vehicles.feed import Feed
from sim_vehicles.sense import Burst

CENTRE_LEAD_NS = 5_000_000  # the centre's burst leaves this much before the instant: it is there before others come
START_IN_NS = 200_000_000  # time for the threads to be ready
# Sensors and radios do not share a node's processor. Beside emulated nodes on one machine the senders have to, so they
# go first; they need microseconds per tuple.
SENDER_PRIORITY = RUNTIME_PRIORITY + 10
SPIN_NS = 300_000  # the last stretch before an instant is slept in small pieces: an Event wakes late


class Sender(Protocol):
    """The part of `node_agent.sdk.Source` that is used here."""

    def send_many(self, values: Sequence[Message], *, age_ms: float) -> Sequence[object]:
        """One result per value: one with a `why` was refused."""
        ...


Connect = Callable[[str, str], AbstractContextManager[Sender]]

MESSAGES = {"vehicle.Sensor": Sensor, "vehicle.Cpm": Cpm, "vehicle.Hazard": Hazard}
BROKEN = (AgentError, CodecError, UnknownCodecError, OSError)


def source(address: str, name: str) -> AbstractContextManager[Sender]:
    """A live source at an agent's data address. Raises one of `BROKEN`."""
    from node_agent.client import Source  # threads and sockets only where something is sent

    return Source(address, name, codecs=Codecs(MESSAGES))


@dataclass
class Tally:
    """What became of one source's tuples; `sent` may exceed admitted + refused where an agent went away before it
    answered. `late_ns`: how long after its instant each burst began to leave."""

    bursts: int = 0
    sent: int = 0
    admitted: int = 0
    refused: int = 0
    why: Counter[str] = field(default_factory=Counter)
    late_ns: list[int] = field(default_factory=list)


@dataclass
class Live:
    """One live replay. `stop` ends it early (from a signal handler, say); `on_burst` is told of every burst sent."""

    feeds: Sequence[Feed]
    addresses: dict[str, str]
    connect: Connect
    rate: float = 1.0
    on_burst: Callable[[Burst], None] = lambda burst: None
    stop: Event = field(default_factory=Event)
    tallies: dict[str, Tally] = field(default_factory=dict)
    failure: FeedError | None = None

    def run(self, bursts: Sequence[Burst]) -> None:
        """Connects to every node first, then sends. FeedError: nothing was sent (while connecting), or a source broke
        in the middle, which ended all of them; what was sent until then stands in `tallies`."""
        self.tallies = {feed.name: Tally() for feed in self.feeds}
        self._lock = Lock()
        with ExitStack() as stack:
            senders = {feed.name: self._open(stack, feed) for feed in self.feeds}
            if bursts and not self.stop.is_set():
                self._send_all(bursts, senders)
        if self.failure is not None:
            raise self.failure

    def _open(self, stack: ExitStack, feed: Feed) -> Sender:
        address = self.addresses[feed.node]
        try:
            return stack.enter_context(self.connect(address, feed.name))
        except NotAcceptedError as bad:
            raise FeedError(f"source {feed.name}: {bad}; deploy the plan first: coordinator deploy") from bad
        except BROKEN as bad:
            raise FeedError(f"source {feed.name}: node {feed.node} at {address} cannot be reached: {bad}") from bad

    def _send_all(self, bursts: Sequence[Burst], senders: dict[str, Sender]) -> None:
        by_name = {feed.name: feed for feed in self.feeds}
        start_ns = time.monotonic_ns() + START_IN_NS
        threads = []
        for node in sorted({feed.node for feed in self.feeds}):
            dues = [
                (self._due_ns(burst, bursts[0], by_name), burst)
                for burst in bursts
                if by_name[burst.source].node == node
            ]
            dues.sort(key=lambda item: item[0])
            threads.append(Thread(target=self._send_node, args=(dues, start_ns, senders, node), name=f"replay-{node}"))
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # in pieces: signal handlers run in this thread only
                thread.join(0.2)

    def _due_ns(self, burst: Burst, first: Burst, by_name: dict[str, Feed]) -> int:
        lead_ns = CENTRE_LEAD_NS if by_name[burst.source].order == 0 else 0
        return int((burst.at_ns - first.at_ns) / self.rate) - lead_ns

    def _send_node(self, dues: list[tuple[int, Burst]], start_ns: int, senders: dict[str, Sender], node: str) -> None:
        fifo(SENDER_PRIORITY)  # where it is not allowed, bursts leave late, and the summary says how late
        for due_ns, burst in dues:
            if not self._wait(start_ns + due_ns):
                return
            tally = self.tallies[burst.source]
            tally.late_ns.append(time.monotonic_ns() - start_ns - due_ns)
            try:
                if burst.values:
                    results = senders[burst.source].send_many(burst.values, age_ms=burst.age_ns / 1e6)
                    self._count(tally, burst, results)
            except BROKEN as bad:
                known = bad.results if isinstance(bad, NoAnswerError) else []
                self._count(tally, burst, [result for result in known if result is not None])
                self.failure = FeedError(f"source {burst.source} at node {node}: {bad}")
                self.stop.set()
                return
            tally.bursts += 1
            with self._lock:
                self.on_burst(burst)

    def _wait(self, until_ns: int) -> bool:
        """Until the instant; False if stopped before it."""
        while not self.stop.is_set():
            left_ns = until_ns - time.monotonic_ns()
            if left_ns <= 0:
                return True
            if left_ns > SPIN_NS:
                self.stop.wait((left_ns - SPIN_NS) / 1e9)
            else:
                time.sleep(left_ns / 2e9)
        return False

    @staticmethod
    def _count(tally: Tally, burst: Burst, results: Sequence[object]) -> None:
        tally.sent += len(burst.values)
        for result in results:
            why = getattr(result, "why", None)
            if why is None:
                tally.admitted += 1
            else:
                tally.refused += 1
                tally.why[str(why)] += 1
