"""A model of ROS 2's single-threaded executor on the same graph: its wait set and queues of one message, no overhead.

What it has, as rclcpp does it: the executor waits until something is ready and takes down all that is; of these it runs
timers first, then subscriptions in the order of their making, one message each; what comes meanwhile waits for the next
look. A message replaces the one before that nobody has taken. A timer whose callback is late skips the periods that
have passed. What it leaves out: the cost of waiting, taking and publishing, the middleware's threads, and that rclcpp
orders the nodes by their addresses. On two nodes there is an executor on each, placed as our plan places operators.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from infra.reference_system.kpis import HotResult, Observed
from infra.reference_system.reference_graph import CALLBACKS, FRONT, MS, PERIODS_MS, PLANNER, REAR, SINK, TIMER
from infra.reference_system.reference_graph import Callback as Node


class Sample(NamedTuple):
    """When a sensor's timer was due, and when it ran."""

    due_ns: int
    stamp_ns: int


Message = Mapping[str, Sample]  # by sensor, what it is made of


@dataclass
class Timer:
    """Of a sensor or the planner."""

    name: str
    period_ns: int
    next_ns: int


@dataclass
class Subscription:
    """Of a node to a topic, with its queue of one."""

    node: Node
    topic: str
    message: Message | None = None


@dataclass
class Executor:
    """One thread. ready: what the last look at the wait set found, and has not run yet."""

    name: str
    timers: list[Timer] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    ready: list[Timer | Subscription] = field(default_factory=list)
    busy: bool = False


class ExecutorModel:
    """placement: of nodes that compute, and of the sensors. Instants begin at 0; timers end at until_ns."""

    def __init__(
        self, placement: Mapping[str, str], offsets_ns: Mapping[str, int], cost_ns: int, link_ns: int, until_ns: int
    ) -> None:
        self._cost_ns, self._link_ns, self._until_ns = cost_ns, link_ns, until_ns
        self._executors = {place: Executor(place) for place in placement.values()}
        for name, period_ms in PERIODS_MS.items():
            where = placement[PLANNER if name == TIMER else name]
            self._executors[where].timers.append(Timer(name, period_ms * MS, offsets_ns.get(name, 0)))
        for node in CALLBACKS:
            here = self._executors[placement[node.name]]
            topics = node.latest if node.kind == "cyclic" else node.inputs
            here.subscriptions += [Subscription(node, topic) for topic in topics]
        self._caches: dict[str, dict[str, Message]] = {node.name: {} for node in CALLBACKS}
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._number = 0
        self._front: list[int] = []
        self._hot: list[HotResult] = []
        self._planner: list[int] = []
        self._dropped: Counter[str] = Counter()

    def run(self) -> Observed:
        """Until nothing is left to do."""
        for executor in self._executors.values():
            for timer in executor.timers:
                self._at(timer.next_ns, self._waking(executor))
        now_ns = 0
        while self._events:
            now_ns, _, happens = heapq.heappop(self._events)
            happens(now_ns)
        until_ns = max(now_ns, self._until_ns)
        return Observed(self._front, self._hot, self._planner, dict(+self._dropped), until_ns)

    def _at(self, at_ns: int, happens: Callable[[int], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_ns, self._number, happens))

    def _waking(self, executor: Executor) -> Callable[[int], None]:
        return lambda now_ns: self._spin(executor, now_ns)

    def _spin(self, executor: Executor, now_ns: int) -> None:
        """Callbacks, until one takes time or nothing is ready."""
        while not executor.busy:
            if not executor.ready:
                executor.ready = [timer for timer in executor.timers if timer.next_ns <= now_ns]
                executor.ready += [each for each in executor.subscriptions if each.message is not None]
            if not executor.ready:
                return
            one = executor.ready.pop(0)
            if isinstance(one, Timer):
                self._tick(executor, one, now_ns)
            else:
                self._take(executor, one, now_ns)

    def _tick(self, executor: Executor, timer: Timer, now_ns: int) -> None:
        due_ns, last_ns = timer.next_ns, min(now_ns, self._until_ns - 1)
        late = (last_ns - due_ns) // timer.period_ns
        self._dropped[timer.name] += late
        if timer.name == FRONT:
            self._front += [due_ns + skipped * timer.period_ns for skipped in range(late + 1)]
        timer.next_ns = due_ns + (late + 1) * timer.period_ns
        if timer.next_ns >= self._until_ns:
            executor.timers.remove(timer)
        else:
            self._at(timer.next_ns, self._waking(executor))
        if timer.name == TIMER:
            self._planner.append(now_ns)
            self._compute(executor, PLANNER, {}, now_ns)
        else:
            self._publish(executor, timer.name, {timer.name: Sample(due_ns + late * timer.period_ns, now_ns)}, now_ns)

    def _take(self, executor: Executor, subscription: Subscription, now_ns: int) -> None:
        message, node = subscription.message, subscription.node
        assert message is not None
        subscription.message = None
        if node.kind == "cyclic":
            return
        if node.kind == "fusion":
            cache = self._caches[node.name]
            self._dropped[node.name] += subscription.topic in cache
            cache[subscription.topic] = message
            if len(cache) < len(node.inputs):
                return
            message = {name: sample for each in cache.values() for name, sample in each.items()}
            cache.clear()
        self._compute(executor, node.name, message, now_ns)

    def _compute(self, executor: Executor, name: str, message: Message, now_ns: int) -> None:
        executor.busy = True

        def ended(end_ns: int) -> None:
            executor.busy = False
            if name == SINK:
                front, rear = message[FRONT], message[REAR]
                older_ns, stamp_ns = min(front.due_ns, rear.due_ns), max(front.stamp_ns, rear.stamp_ns)
                self._hot.append(HotResult(front.due_ns, older_ns, stamp_ns, now_ns, end_ns))
            self._publish(executor, name, message, end_ns)
            self._spin(executor, end_ns)

        self._at(now_ns + self._cost_ns, ended)

    def _publish(self, executor: Executor, topic: str, message: Message, now_ns: int) -> None:
        for other in self._executors.values():
            for subscription in other.subscriptions:
                if subscription.topic == topic:
                    if other is executor:
                        self._receive(other, subscription, message, now_ns)
                    else:
                        self._at(now_ns + self._link_ns, self._receiving(other, subscription, message))

    def _receiving(self, executor: Executor, subscription: Subscription, message: Message) -> Callable[[int], None]:
        return lambda now_ns: self._receive(executor, subscription, message, now_ns, spin=True)

    def _receive(
        self, executor: Executor, subscription: Subscription, message: Message, now_ns: int, spin: bool = False
    ) -> None:
        self._dropped[subscription.node.name] += subscription.message is not None
        subscription.message = message
        if spin:
            self._spin(executor, now_ns)
