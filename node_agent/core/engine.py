"""The engine: which task instance runs next on this node, and what its end triggers ([P] 5.4).

Pure: events come in as calls with their instant, commands go out through the object handed in, facts are packed into
the buffer handed in. An instance is never interrupted; an operator's output is inserted into the other units' queues
when that operator ends, which the driver says by `emit` before it says by `step` that the instance has ended.

One heap holds the head of every unit's queue. Its order is total: deadline or rank, release, arrival number.
A decision costs O(log units), a tuple O(1) besides, however many are queued.
"""

from collections import deque
from heapq import heappop, heappush, heapreplace
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.branches import Commands
from node_agent.core.entrance import Entrance
from node_agent.core.facts import Facts
from node_agent.core.lateness import expiry
from node_agent.core.load import Calls, compile_plan
from node_agent.core.parts import MARKS, Exit, Job, Lineage, Loaded, Removed, Route, Unit
from node_agent.core.policies.parts import Policy
from protos.records import (
    ABSORBED,
    ADMITTED,
    CAUSE_QUEUE_FULL,
    CAUSE_STOPPED,
    FLAG,
    LOST,
    NO_REF,
    OUTPUT,
    RAN,
    RECORD,
    RECORD_BYTES,
    SURPLUS_MOST,
)  # fmt: skip

pack = RECORD.pack_into


class Engine(Entrance):
    """Schedules the units of all loaded plans under one policy."""

    __slots__ = ("_push", "direct", "limit_jobs", "plain", "released", "simple")

    def __init__(self, policy: Policy, facts: Facts, commands: Commands, limit_jobs: int = 1_000_000) -> None:
        super().__init__(policy, facts, commands)
        self.limit_jobs = limit_jobs
        self.released = 0  # jobs
        self.direct = self.fifo and not policy.measured  # a job goes into its queue as it is
        self._push = self._push_measured if policy.measured else self._push_fifo if self.fifo else self._push_ordered
        self.simple = not (self.batching or policy.yields)  # one job, one instance, never resumed
        self._look_at_lateness()

    # -- plans

    def load(self, plan: plans.Plan, calls: Calls) -> Loaded:
        """Add a plan; its tuples then run beside those of the plans that are already there."""
        return self.add(compile_plan(plan, calls, self.policy))

    def add(self, loaded: Loaded) -> Loaded:
        """Add a plan that was compiled for this policy."""
        self.loaded.append(loaded)
        self._add_windows(loaded)
        if self.policy.measured:
            for unit in loaded.units:
                unit.meter = self.meter.add(unit)
        if self.tuner is not None:
            self.tuner.loaded()
        self._look_at_lateness()
        return loaded

    def _look_at_lateness(self) -> None:
        self.expiry = expiry(self.loaded)
        self.plain = self.direct and self.simple and self.policy.dropper is None and self.expiry is None

    def unload(self, loaded: Loaded, at_ns: int) -> None:
        """Forget a plan. What is still queued or waiting is lost (stopped); normally it has drained.
        Windows that are open and that no newer plan goes on with are abandoned."""
        self._stop_windows(at_ns, loaded)
        for unit in loaded.units:
            for job in sorted(unit.queue):
                self._lost(at_ns, unit, job[4], CAUSE_STOPPED)
            self.dispatched += len(unit.queue)
            unit.queue.clear()
        for join in loaded.joins:
            for waiting in join.waiting.values():
                self._expired(at_ns, join, waiting)
            join.waiting.clear()
        self.heads = [job for job in self.heads if job[3].loaded is not loaded]
        self.heads.sort()
        self.unripe = [job for job in self.unripe if job[3].loaded is not loaded]
        self.unripe.sort()
        if self.held is not None and self.held.loaded is loaded:
            self.held = None
        self.loaded.remove(loaded)
        for unit in loaded.units:
            if unit.meter is not None:
                self.meter.remove(unit.meter)
        if self.tuner is not None:
            self.tuner.loaded()
        self._look_at_lateness()

    # -- arrivals

    def admit(
        self, at_ns: int, loaded: Loaded, source: int, lineage: Lineage, payload: Any, size: int, sent_ns: int = 0
    ) -> None:
        """A tuple enters the system here. size: payload bytes. sent_ns: its client's stamp, on the client's clock."""
        _, epoch, seq, _, origin_lo_ns, origin_hi_ns = lineage
        facts = self.facts
        facts.admitted += 1
        facts.write(
            ADMITTED, loaded.flags, source, source, epoch, seq, at_ns, origin_lo_ns, origin_hi_ns, sent_ns, 0, size
        )
        route = loaded.source_routes[source]
        route.admitted += 1
        if route.entry is None:
            self._arrive(at_ns, route, lineage, payload)
        else:
            self._enter(at_ns, route, lineage, payload)

    def receive(self, at_ns: int, loaded: Loaded, stream: int, lineage: Lineage, payload: Any) -> None:
        """A tuple, or a mark (of MARKS), arrives from a peer."""
        route = loaded.routes[stream]
        if payload.__class__ in MARKS:
            self._absent(at_ns, route, lineage, payload)
        else:
            self._arrive(at_ns, route, lineage, payload)

    def lose(self, at_ns: int, loaded: Loaded, stream: int, lineage: Lineage, cause: int) -> None:
        """An arrival that none of the stream's consumers on this node gets."""
        self.facts.write(
            LOST, loaded.flags, NO_REF, lineage[0], lineage[1], lineage[2], at_ns, cause, lineage[3], stream
        )
        self._count_lost(cause)
        route = loaded.routes[stream]
        route.lost += 1
        self._absent(at_ns, route, lineage, Removed(lineage[2]))

    def _arrive(self, at_ns: int, route: Route, lineage: Lineage, payload: Any) -> None:
        if self.released - self.dispatched >= self.limit_jobs:
            self.lose(at_ns, route.loaded, route.stream, lineage, CAUSE_QUEUE_FULL)
        elif route.simple:
            for unit in route.units:
                self.released = n = self.released + 1
                self._push(unit, (at_ns + unit.offset_ns, at_ns, n, unit, lineage, payload))
        else:
            self._spread(at_ns, route, lineage, payload)

    # -- the hot path

    def release(self, at_ns: int, unit: Unit, lineage: Lineage, payload: Any) -> None:
        """Create a task instance (p, T) at its release r ([P] 5.4)."""
        if unit.gate is not None and not self._let_in(at_ns, unit, lineage, payload):
            return
        self.released = n = self.released + 1
        self._push(unit, (at_ns + unit.offset_ns, at_ns, n, unit, lineage, payload))

    def next(self, at_ns: int) -> Job | None:
        """Start the next instance while none runs; None: nothing is ready."""
        self.ended_ns = at_ns
        return self._dispatch()

    def emit(self, at_ns: int, exit_: Exit, lineage: Lineage, payload: Any, slot: int = 0) -> None:
        """An operator of the running instance has ended with this output; slot: which job of a batch."""
        route = exit_.route
        if exit_.outdated_ns and at_ns - lineage[5] > exit_.outdated_ns:
            self._outdated(at_ns, exit_, lineage, slot)
            return
        self.counts[slot] += exit_.one
        if route.simple:
            for unit in route.units:
                self.released = n = self.released + 1
                job = (at_ns + unit.offset_ns, at_ns, n, unit, lineage, payload)
                if self.direct:  # `_push_fifo` without the call
                    if not unit.queue:
                        heappush(self.heads, job)
                    unit.queue.append(job)
                else:
                    self._push(unit, job)
        else:
            self._spread(at_ns, route, lineage, payload)

    def step(self, start_ns: int, end_ns: int) -> Job | None:
        """End the running instance and start the next one; None: nothing is ready.

        The choice is made now: arrivals of the same instant must have been handed in before (virtual time).
        """
        job = self.job
        assert job is not None
        if self.slow:
            if (job := self._step_slow(job, start_ns, end_ns)) is not None:
                return job
        else:
            _, release_ns, _, unit, (source, epoch, seq, ordinal, _, _), _ = job
            facts = self.facts
            if facts.position == facts.limit:
                facts.position, facts.limit = facts.refill()
            counts = self.counts
            pack(
                facts.buffer, facts.position, RAN, unit.flags | FLAG if self.resumed else unit.flags, unit.id,
                source, epoch, seq, release_ns, start_ns, end_ns, release_ns + unit.sub_deadline_ns,
                start_ns - self.ended_ns, ordinal << 32 | counts[0],
            )  # fmt: skip
            facts.position += RECORD_BYTES
            unit.runs += 1
            if unit.noted:
                self._noted(end_ns, unit, job, counts[0])
            counts[0] = 0
        self.ended_ns = end_ns
        heads = self.heads
        if not (self.plain and heads):
            return self._dispatch()
        self.job = job = heads[0]  # `_dispatch` without the call
        queue: deque[Job] = job[3].queue
        queue.popleft()
        self.dispatched += 1
        if queue:
            heapreplace(heads, queue[0])
        else:
            heappop(heads)
        return job

    # -- less frequent

    def resume(self, payload: Any) -> None:
        """Under a policy that yields: the running instance goes on with `unit.rest` later, its deadline unchanged."""
        job = self.job
        assert job is not None and job[3].rest is not None
        self.resumed = True
        rest = job[3].rest
        self.released += 1
        resumed = (job[0], job[1], job[2], rest, job[4], payload)
        # It keeps its arrival number, so at a tie it goes on before a newer one. Instances reach an operator in the
        # order of their deadlines, so the queue stays ordered.
        self._push_fifo(rest, resumed)

    def fail(self, start_ns: int, end_ns: int, cause: int, slot: int = 0) -> Job | None:
        """End the running instance as lost and start the next one.

        Of a batch only the job in `slot` is lost: it leaves the batch, `step` ends the others, and None is returned.
        """
        job = self.batch[slot] if self.batching else self.job
        assert job is not None
        shed = self.surplus.pop(slot, 0)
        self._lost(end_ns, job[3], job[4], cause, start_ns, self.counts[slot], min(shed, SURPLUS_MOST))
        if self.batching:
            del self.batch[slot], self.counts[slot]
            self.surplus = {each - (each > slot): n for each, n in self.surplus.items()}
            return None
        self.counts[0] = 0
        self.ended_ns = end_ns
        return self._dispatch()

    def _past_guards(self, at_ns: int, route: Route, lineage: Lineage) -> tuple[Unit, ...]:
        """The units whose doors are open to a tuple; at the others it is shed."""
        units = route.units
        for guard in route.guards:
            if not guard.lets_in(self, at_ns, lineage):
                units = guard.others(route, units)
        return units

    def _spread(self, at_ns: int, route: Route, lineage: Lineage, payload: Any) -> None:
        flags, source, epoch, seq, ordinal = route.loaded.flags, *lineage[:4]
        for side in route.sides:  # before any release of the same instant
            side.put(payload)
            self.facts.write(ABSORBED, flags, side.operator_id, source, epoch, seq, at_ns, route.stream, ordinal)
        for unit in route.units if not route.guards else self._past_guards(at_ns, route, lineage):
            self.release(at_ns, unit, lineage, payload)
        for join, port in route.joins:
            self._join(at_ns, join, port, lineage, payload)
        for peer in route.sends:
            self.commands.send(at_ns, route.loaded, peer, route.stream, lineage, payload)
        for output in route.outputs:
            self.facts.write(
                OUTPUT, flags, output.id, source, epoch, seq, at_ns, lineage[4], lineage[5], output.deadline_ns, ordinal
            )
            self.facts.latencies_ns += 2 * at_ns - lineage[4] - lineage[5]
            self.commands.deliver(at_ns, route.loaded, output, lineage, payload)


__all__ = ["Commands", "Engine"]
