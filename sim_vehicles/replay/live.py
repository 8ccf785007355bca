"""Sends bursts into live agents at their instants.

One thread per node, so that bursts of different nodes leave at the same time; within a node they leave in the order
of their list. Every instant counts from one common start: a burst that leaves late makes no later one late. What lies
ahead can be replaced while it runs (`replace`): the senders go on with the old bursts until the new ones are there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Protocol, Self

from google.protobuf.message import Message

from node_agent.client.connection import AgentError, NoAnswerError, NotAcceptedError, NotTrustedError
from node_agent.host.scheduling import RUNTIME_PRIORITY, fifo
from node_agent.operators.codecs import CodecError, Codecs, UnknownCodecError
from node_agent.tls.names import TlsError
from protos.vehicle_pb2 import Cpm, Hazard, Sensor
from sim_vehicles.errors import FeedError
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.send_schedule import SendSchedule
from sim_vehicles.world.sense import Burst

START_IN_NS = 200_000_000  # time for the threads to be ready
# Sensors, radios and brakes do not share a node's processor. Beside emulated nodes on one machine their threads have
# to, so they go first; they need microseconds per tuple.
SENDER_PRIORITY = RUNTIME_PRIORITY + 10
SPIN_NS = 300_000  # the last stretch before an instant is slept in small pieces: an Event wakes late


class Sender(Protocol):
    """The part of `node_agent.sdk.Source` that is used here."""

    def send_aged(self, aged: Sequence[tuple[Message, float]]) -> Sequence[object]:
        """(value, age in ms) each. One result per value: one with a `why` was refused, one with a `seq` admitted."""
        ...


Connect = Callable[[str, str], AbstractContextManager[Sender]]

MESSAGES = {"vehicle.Sensor": Sensor, "vehicle.Cpm": Cpm, "vehicle.Hazard": Hazard}
BROKEN = (AgentError, CodecError, UnknownCodecError, OSError)


def source(address: str, name: str, tls: Path | None = None) -> AbstractContextManager[Sender]:
    """A live source at an agent's data address. tls: the identity to connect with. Raises one of `BROKEN`."""
    from node_agent.client.client import Source  # threads and sockets only where something is sent

    return Source(address, name, codecs=Codecs(MESSAGES), tls=tls)


@dataclass
class SourceCounts:
    """What became of one source's tuples; `sent` may exceed admitted + refused where an agent went away before it
    answered. `late_ns`: how long after its instant each burst began to leave; those that leave together count once.
    `last`: (epoch, seq) admitted last."""

    bursts: int = 0
    sent: int = 0
    admitted: int = 0
    refused: int = 0
    why: Counter[str] = field(default_factory=Counter)
    late_ns: list[int] = field(default_factory=list)
    last: tuple[int, int] = (0, 0)

    def count(self, values: int, results: Sequence[object]) -> None:
        """One burst of so many values, and what is known about them."""
        self.sent += values
        for result in results:
            why = getattr(result, "why", None)
            if why is None:
                self.admitted += 1
                self.last = (getattr(result, "epoch", 0), getattr(result, "seq", 0))
            else:
                self.refused += 1
                self.why[str(why)] += 1


@dataclass
class Live:
    """Live sources, and what was sent to them: `with Live(...) as live: live.run(bursts)`, once per lap.

    rate: times real time; infinity: each burst as soon as the one before is answered. `stop` ends it early (from a
    signal handler, say); `on_burst` is told of every burst sent, `on_answers` of bursts that left together and of the
    answers, one per value. `tallies` count over all laps.
    """

    feeds: Sequence[Feed]
    addresses: dict[str, str]
    connect: Connect
    rate: float = 1.0
    on_burst: Callable[[Burst], None] = lambda burst: None
    stop: Event = field(default_factory=Event)
    on_answers: Callable[[Sequence[Burst], Sequence[object]], None] = lambda bursts, answers: None
    tallies: dict[str, SourceCounts] = field(default_factory=dict)
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.tallies = {feed.name: SourceCounts() for feed in self.feeds}
        self._by_name = {feed.name: feed for feed in self.feeds}
        self._lock = Lock()
        self._schedules: dict[str, SendSchedule] = {}
        self._first_ns = self._start_ns = 0
        self._stack = ExitStack()
        self._senders: dict[str, Sender] = {}

    def __enter__(self) -> Self:
        """Connects to every node; FeedError where one cannot be reached or does not know its source."""
        try:
            self._senders = {feed.name: self._open(feed) for feed in self.feeds}
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, bursts: Sequence[Burst]) -> None:
        """Sends them all, each at its instant, unless it is stopped. FeedError: a source broke in the middle, which
        ended all of them; what was sent until then stands in `tallies`."""
        nodes = sorted({feed.node for feed in self.feeds})
        self._first_ns, self._start_ns = (
            min((one.at_ns for one in bursts), default=0),
            time.monotonic_ns() + START_IN_NS,
        )
        self._schedules = {node: SendSchedule(self._of(node, bursts)) for node in nodes}
        threads = [Thread(target=self._send_node, args=(node,), name=f"replay-{node}") for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # in pieces: signal handlers run in this thread only
                thread.join(0.2)
                if self.stop.is_set():
                    self._wake()
        if self.failure is not None:
            raise self.failure

    @property
    def left(self) -> int:
        """How many bursts of the last run did not leave."""
        return sum(len(schedule) for schedule in self._schedules.values())

    def replace(self, bursts: Sequence[Burst], after_ns: int) -> int:
        """From now on `bursts` instead of all later than after_ns that have not left; see `SendSchedule.replace`."""
        return sum(schedule.replace(self._of(node, bursts), after_ns) for node, schedule in self._schedules.items())

    def recording_ns(self, monotonic_ns: int) -> int:
        """The instant of the recording that is played at an instant of this machine's monotonic clock; at an infinite
        rate, that of the burst that left last."""
        if isinf(self.rate):
            reached = [schedule.reached_ns for schedule in self._schedules.values()]
            return max((at_ns for at_ns in reached if at_ns is not None), default=self._first_ns)
        return self._first_ns + int((monotonic_ns - self._start_ns) * self.rate)

    def _of(self, node: str, bursts: Sequence[Burst]) -> list[Burst]:
        return [burst for burst in bursts if self._by_name[burst.source].node == node]

    def _open(self, feed: Feed) -> Sender:
        address = self.addresses[feed.node]
        try:
            return self._stack.enter_context(self.connect(address, feed.name))
        except (NotTrustedError, TlsError) as bad:
            raise FeedError("not_trusted", f"source {feed.name}: {bad}", subject=feed.name) from bad
        except NotAcceptedError as bad:
            raise FeedError(
                "not_accepted",
                f"source {feed.name}: {bad}",
                "deploy the plan first: coordinator deploy",
                subject=feed.name,
            ) from bad
        except BROKEN as bad:
            raise FeedError(
                "unreachable",
                f"source {feed.name}: node {feed.node} at {address} cannot be reached: {bad}",
                subject=feed.name,
            ) from bad

    def _wake(self) -> None:
        for schedule in self._schedules.values():
            schedule.wake()

    def _due_ns(self, burst: Burst) -> int:
        """When it leaves, on the monotonic clock."""
        return self._start_ns + int((burst.at_ns - self._first_ns) / self.rate)

    def _send_node(self, node: str) -> None:
        fifo(SENDER_PRIORITY)  # where it is not allowed, bursts leave late, and the summary says how late
        schedule = self._schedules[node]
        try:
            while not self.stop.is_set() and (burst := schedule.first()) is not None:
                if self._wait(schedule, self._due_ns(burst)):
                    self._send(schedule.take(burst), node)
        except Exception as error:  # any error ends the replay; `run` raises it
            self.failure = self.failure or error
            self.stop.set()

    def _send(self, bursts: Sequence[Burst], node: str) -> None:
        """Bursts of one source and instant, in one go: answers are waited for once, so the last is not late by them."""
        if not bursts:
            return
        name = bursts[0].source
        tally, late_ns = self.tallies[name], time.monotonic_ns() - self._due_ns(bursts[0])
        if not isinf(self.rate):
            tally.late_ns.append(late_ns)
        aged = [(value, self._age_ms(burst, late_ns)) for burst in bursts for value in burst.values]
        try:
            if aged:
                answers = self._senders[name].send_aged(aged)
                tally.count(len(aged), answers)
                self.on_answers(bursts, answers)
        except BROKEN as bad:
            known = bad.results if isinstance(bad, NoAnswerError) else []
            tally.count(len(aged), [result for result in known if result is not None])
            raise FeedError("went_away", f"source {name} at node {node}: {bad}", subject=name) from bad
        tally.bursts += len(bursts)
        with self._lock:
            for burst in bursts:
                self.on_burst(burst)

    def _age_ms(self, burst: Burst, late_ns: int) -> float:
        """How old the tuples are when they leave: what a radio says ages while its burst is late. What sensors and the
        centre say originates with its hand-over."""
        on_time = self._by_name[burst.source].type != "vehicle.Cpm" or isinf(self.rate)
        return (burst.age_ns + (0 if on_time else late_ns)) / 1e6

    def _wait(self, schedule: SendSchedule, until_ns: int) -> bool:
        """Until the instant; False if stopped, or if the schedule changed, before it."""
        while not self.stop.is_set() and not schedule.changed.is_set():
            left_ns = until_ns - time.monotonic_ns()
            if left_ns <= 0:
                return True
            if left_ns > SPIN_NS:
                schedule.changed.wait((left_ns - SPIN_NS) / 1e9)
            else:
                time.sleep(left_ns / 2e9)
        return False
