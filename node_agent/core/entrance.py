"""The engine's door: tuples of sources that are limited, policed or shed when the node is full; limits of queues."""

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappush
from typing import Any

from node_agent.core.branches import Commands
from node_agent.core.choice import Choice
from node_agent.core.facts import Facts
from node_agent.core.fullness import DROP_TAIL, FRONT, JOB_BYTES, REFUSE, weight
from node_agent.core.limiting import Passed
from node_agent.core.load_shedder import PASS, SHED
from node_agent.core.parts import Lineage, Route, Unit
from node_agent.core.policies.parts import Policy
from protos.records import POLICY_ARRIVALS, POLICY_MEMORY, POLICY_RATE

TWO = 2  # jobs that go for each that comes, so that what is above the node's limit shrinks


def _never() -> bool:
    return False


class Entrance(Choice):
    """The part of the engine that lets tuples in, or sheds them. full: whether the node's memory is; the driver's."""

    __slots__ = ("full",)

    def __init__(self, policy: Policy, facts: Facts, commands: Commands) -> None:
        super().__init__(policy, facts, commands)
        self.full: Callable[[], bool] = _never

    released: int

    def _arrive(self, at_ns: int, route: Route, lineage: Lineage, payload: Any) -> None:
        raise NotImplementedError

    def _enter(self, at_ns: int, route: Route, lineage: Lineage, payload: Any) -> None:
        """An admitted tuple of a source with an entry."""
        entry = route.entry
        assert entry is not None
        full = entry.on_full != REFUSE and self.full()
        if full and entry.on_full == DROP_TAIL:
            self._shed_arrival(at_ns, route, lineage, POLICY_MEMORY)
            return
        limit, police, decision = entry.limit, entry.police, PASS
        if limit is not None:
            decision = limit.decide(at_ns, payload)
            if decision == SHED:
                self._shed_arrival(at_ns, route, lineage, POLICY_RATE)
                return
            if decision != PASS:
                self._displace(at_ns, route, *limit.displaced(decision))
        why = POLICY_ARRIVALS if decision == PASS and police is not None and not police.passes(at_ns) else 0
        if not why and full and not self._make_room(at_ns, route):
            why = POLICY_MEMORY
        if limit is not None:
            if why:
                limit.gone()
            else:
                limit.entered(self.released + 1, route, lineage)
        if why:
            self._shed_arrival(at_ns, route, lineage, why)
        else:
            if route.withheld is not None:
                self._hand_on(at_ns, route)
            self._arrive(at_ns, route, lineage, payload)

    def _displace(self, at_ns: int, route: Route, passed: Passed, places: list[tuple[Unit, int]]) -> None:
        """It was begun nowhere: it ends as if it had been shed when it was admitted."""
        for unit, position in places:
            self._withdraw(unit, position)
        self._shed_arrival(at_ns, passed.route, passed.lineage, POLICY_RATE)
        if passed.route is not route:  # of the plan before: no survivor comes there any more, and no heartbeat
            self._hand_on(at_ns, passed.route)

    def _withdraw(self, unit: Unit, position: int) -> None:
        """Take one job out of a queue."""
        queue = unit.queue
        job = queue[position]
        if unit.gate is not None:
            unit.gate.withdrawn(job)
        if not position:
            self._cut_head(unit)
            return
        self.dispatched += 1
        if isinstance(queue, deque):
            del queue[position]
            return
        queue[position] = queue[-1]
        queue.pop()
        heapify(queue)

    def _cut_head(self, unit: Unit) -> None:
        queue = unit.queue
        if isinstance(queue, deque):
            self._cut(unit, 1)
            return
        queue[0] = queue[-1]
        queue.pop()
        self.dispatched += 1
        if queue:
            heapify(queue)
            heappush(self.heads, queue[0])  # what was the head is passed over when it comes up

    def _make_room(self, at_ns: int, route: Route) -> bool:
        """The oldest tuples that are queued for the units of a stream go; False: none is queued."""
        made = False
        for unit in route.units:
            for job in self._cut(unit, TWO):
                self._shed(at_ns, job, POLICY_MEMORY)
                made = True
        return made

    def shed_queued(self, at_ns: int, unit: Unit, jobs: int) -> None:
        """So many jobs of a unit's queue go: the youngest, or where its limit says front the oldest."""
        if unit.spec.on_full == FRONT:
            gone = self._cut(unit, jobs)
        else:
            queued = sorted(unit.queue, key=lambda job: job[2])
            gone = queued[len(queued) - jobs :]
            kept = queued[: len(queued) - jobs]
            unit.queue.clear()
            unit.queue.extend(kept)  # in the order of arrival; a heap is made one again
            if isinstance(unit.queue, list):
                heapify(unit.queue)
            if unit.gate is not None:
                for job in gone:
                    unit.gate.withdrawn(job)
            self._out(unit, len(gone))
        for job in gone:
            self._shed(at_ns, job, POLICY_MEMORY)

    # -- limits of units' queues

    def _let_in(self, at_ns: int, unit: Unit, lineage: Lineage, payload: Any) -> bool:
        """Whether a job may enter the queue of a unit with a gate; with `front` the oldest go first."""
        gate = unit.gate
        assert gate is not None
        size = JOB_BYTES + weight(payload)
        while not gate.fits(unit.queue, size):
            oldest = self._cut(unit, 1) if gate.front and size <= gate.most_bytes else []
            if not oldest:
                self._shed(at_ns, (0, at_ns, 0, unit, lineage, payload), POLICY_MEMORY)
                return False
            self._shed(at_ns, oldest[0], POLICY_MEMORY)
        gate.add(self.released + 1, size)
        return True


__all__ = ["Entrance"]
