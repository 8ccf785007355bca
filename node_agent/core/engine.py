"""The engine: which task instance runs next on this node, and what its end triggers ([P] 5.4).

Pure: events come in as calls with their instant, commands go out through the object handed in, facts are packed into
the buffer handed in. An instance is never interrupted; an operator's output is inserted into the other units' queues
when that operator ends, which the driver says by `emit` before it says by `step` that the instance has ended.

One heap holds the head of every unit's queue. Its order is total: deadline or rank, release, arrival number.
A decision costs O(log units), a tuple O(1) besides, however many are queued.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any, Protocol

from node_agent.core import plan as plans
from node_agent.core.facts import Facts
from node_agent.core.load import Calls, compile_plan
from node_agent.core.measure import NodeMeter
from node_agent.core.parts import ABSENT, Exit, Job, Join, Lineage, Loaded, Route, Step, Unit, Waiting, merged
from node_agent.core.policies.parts import Policy
from protos.records import (
    ABSORBED,
    ADMITTED,
    CAUSE_JOIN_EXPIRED,
    CAUSE_QUEUE_FULL,
    CAUSE_STOPPED,
    FLAG,
    LOST,
    MERGED,
    NO_REF,
    OUTPUT,
    POLICY_ARRIVALS,
    POLICY_LATE,
    POLICY_SELECTIVITY,
    RAN,
    RECORD,
    RECORD_BYTES,
    SHED,
    SURPLUS_MOST,
    SURPLUS_SHIFT,
)  # fmt: skip

pack = RECORD.pack_into


class Commands(Protocol):
    """What the engine asks of its driver."""

    def send(self, at_ns: int, loaded: Loaded, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Ship a tuple, or the absence mark ABSENT, to a peer."""

    def deliver(self, at_ns: int, loaded: Loaded, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A result is there."""


class Engine:
    """Schedules the units of all loaded plans under one policy."""

    __slots__ = (
        "_push", "batch", "batching", "commands", "counts", "decided", "direct", "dispatched", "ended_ns", "facts",
        "fifo", "form", "heads", "held", "job", "limit_jobs", "loaded", "meter", "order", "plain", "policy", "released",
        "resumed", "simple", "slow", "stay", "surplus", "tuner", "unripe",
    )  # fmt: skip

    def __init__(self, policy: Policy, facts: Facts, commands: Commands, limit_jobs: int = 1_000_000) -> None:
        self.policy, self.facts, self.commands, self.limit_jobs = policy, facts, commands, limit_jobs
        self.heads: list[Job] = []
        self.unripe: list[Job] = []  # heads whose batches are not complete, by the instant at which they will be
        self.job: Job | None = None
        self.meter = NodeMeter()  # kept up to date where the policy measures
        self.tuner = policy.tuner(self.meter, policy.parameters) if policy.tuner is not None else None
        self.order = policy.order(self.meter) if policy.order is not None else None
        self.stay = policy.stays(self.meter) if policy.stays is not None else None
        self.held: Unit | None = None  # the running unit under a policy that stays: its next head is not in the heap
        self.decided = False  # the chosen instance took a decision; not, where its unit went on
        self.form = self.tuner.batch if self.tuner is not None else policy.batch
        self.batching = self.form is not None
        self.batch: list[Job] = []  # the running instance's jobs, where the policy batches
        self.counts: list[int] = [0]  # outputs word of each job of the instance
        self.surplus: dict[int, int] = {}  # results of the running instance that were shed, by slot
        self.loaded: list[Loaded] = []
        self.released = self.dispatched = 0  # jobs
        self.ended_ns = 0
        self.resumed = False
        self.fifo = policy.key is None
        self.direct = self.fifo and not policy.measured  # a job goes into its queue as it is
        self._push = self._push_measured if policy.measured else self._push_fifo if self.fifo else self._push_ordered
        self.simple = not (self.batching or policy.yields)  # one job, one instance, never resumed
        self.slow = self.batching or policy.measured
        self.plain = self.direct and self.simple and policy.dropper is None

    # -- plans

    def load(self, plan: plans.Plan, calls: Calls) -> Loaded:
        """Add a plan; its tuples then run beside those of the plans that are already there."""
        loaded = compile_plan(plan, calls, self.policy)
        self.loaded.append(loaded)
        if self.policy.measured:
            for unit in loaded.units:
                unit.meter = self.meter.add(unit)
        if self.tuner is not None:
            self.tuner.loaded()
        return loaded

    def unload(self, loaded: Loaded, at_ns: int) -> None:
        """Forget a plan. What is still queued or waiting is lost (stopped); normally it has drained."""
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

    # -- arrivals

    def admit(
        self, at_ns: int, loaded: Loaded, source: int, lineage: Lineage, payload: Any, size: int, sent_ns: int = 0
    ) -> None:
        """A tuple enters the system here. size: payload bytes. sent_ns: its client's stamp, on the client's clock."""
        _, epoch, seq, _, origin_lo_ns, origin_hi_ns = lineage
        self.facts.write(
            ADMITTED, loaded.flags, source, source, epoch, seq, at_ns, origin_lo_ns, origin_hi_ns, sent_ns, 0, size
        )
        route = loaded.source_routes[source]
        if route.police is None or route.police.passes(at_ns):
            self._arrive(at_ns, route, lineage, payload)
        else:
            self._shed_arrival(at_ns, route, lineage)

    def receive(self, at_ns: int, loaded: Loaded, stream: int, lineage: Lineage, payload: Any) -> None:
        """A tuple, or ABSENT, arrives from a peer."""
        route = loaded.routes[stream]
        if payload is ABSENT:
            self._absent(at_ns, route, lineage)
        else:
            self._arrive(at_ns, route, lineage, payload)

    def lose(self, at_ns: int, loaded: Loaded, stream: int, lineage: Lineage, cause: int) -> None:
        """An arrival that none of the stream's consumers on this node gets."""
        self.facts.write(
            LOST, loaded.flags, NO_REF, lineage[0], lineage[1], lineage[2], at_ns, cause, lineage[3], stream
        )
        self._absent(at_ns, loaded.routes[stream], lineage)

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
        self.released = n = self.released + 1
        self._push(unit, (at_ns + unit.offset_ns, at_ns, n, unit, lineage, payload))

    def _push_fifo(self, unit: Unit, job: Job) -> None:
        queue = unit.queue
        if not queue:
            heappush(self.heads, job)
        queue.append(job)

    def _push_ordered(self, unit: Unit, job: Job) -> None:
        key = self.policy.key
        assert key is not None and isinstance(unit.queue, list)
        job = (key(unit.spec, job[4]), *job[1:])
        heappush(unit.queue, job)
        if unit.queue[0] is job:
            heappush(self.heads, job)  # the former head stays in the heap and is skipped when it is not the head

    def _push_measured(self, unit: Unit, job: Job) -> None:
        assert unit.meter is not None
        unit.meter.arrived(job[1])
        if unit.rule is not None:
            job = (unit.rule(job[1]), *job[1:])
        queue = unit.queue
        queue.append(job)
        if len(queue) == 1 and unit is not self.held:
            self._head(unit)

    def _head(self, unit: Unit) -> None:
        """The head of a unit's queue, into the heap: by its deadline, or under the rank that it has now."""
        job = unit.queue[0]
        if self.order is not None:
            job = (self.order.rank(job), *job[1:])
        elif self.tuner is not None and self.heads and (ripe_ns := self.tuner.ripe_ns(job)) > self.ended_ns:
            heappush(self.unripe, (ripe_ns, *job[1:]))
            return
        heappush(self.heads, job)

    def _ripen(self) -> None:
        """Batches that are complete by now compete; where there is none, the oldest, so that the node is not idle."""
        unripe, heads = self.unripe, self.heads
        while unripe and (unripe[0][0] <= self.ended_ns or not heads):
            heappush(heads, heappop(unripe)[3].queue[0])

    def next(self, at_ns: int) -> Job | None:
        """Start the next instance while none runs; None: nothing is ready."""
        self.ended_ns = at_ns
        return self._dispatch()

    def emit(self, at_ns: int, exit_: Exit, lineage: Lineage, payload: Any, slot: int = 0) -> None:
        """An operator of the running instance has ended with this output; slot: which job of a batch."""
        self.counts[slot] += exit_.one
        route = exit_.route
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
            if unit.marks and not self.resumed:
                self._mark(end_ns, unit, job[4], counts[0])
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

    def _dispatch(self) -> Job | None:
        self.resumed = False
        if self.held is not None:
            held, self.held = self.held, None
            if held.queue:
                self._head(held)
        selecting = self.form is not None or self.policy.dropper is not None
        while (job := self._take()) is not None:
            unit: Unit = job[3]
            chosen = self._select(job) if selecting else job
            if chosen is not None and self.stay is not None:
                self.held = unit
                self.stay.begins(chosen, self.heads[0] if self.heads else None, self.ended_ns)
            elif unit.queue:
                self._head(unit)
            if chosen is not None:
                job = chosen
                break
        self.decided = True
        self.job = job
        return job

    def _take(self) -> Job | None:
        """The job with the least key, out of its queue; the queue's next head is not in the heap yet."""
        heads = self.heads
        if self.unripe:
            self._ripen()
        while heads:
            entry = heappop(heads)
            job: Job = entry
            queue = entry[3].queue
            if self.fifo:
                job = queue.popleft()
                if self.order is not None:
                    self.order.chosen(entry[0])
            elif queue and queue[0] is job:
                heappop(queue)
            else:
                continue  # no longer its queue's head
            self.dispatched += 1
            return job
        return None

    # -- less frequent

    def _shed(self, job: Job) -> None:
        unit, lineage = job[3], job[4]
        self.facts.write(
            SHED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], self.ended_ns, POLICY_LATE, lineage[3]
        )
        if unit.marks:
            self._mark(self.ended_ns, unit, lineage, 0)

    def _select(self, job: Job) -> Job | None:
        """What runs of a unit that was chosen: its batch without what is dropped. The first job that runs, or None.

        The head is judged before a batch is formed behind it: where it is shed, another unit may come first.
        """
        dropper, sifter = self.policy.dropper, self.policy.sifter
        if dropper is not None and dropper(job, self.ended_ns, 0):
            self._drop(job)
            return None
        if self.form is None:
            return job
        queue: deque[Job] = job[3].queue
        more = self.form(job, queue)
        batch = [job, *(queue.popleft() for _ in range(more))]
        self.dispatched += more
        if dropper is not None:
            kept = [job]
            for each in batch[1:]:
                if dropper(each, self.ended_ns, len(kept)):
                    self._drop(each)
                else:
                    kept.append(each)
            batch = kept
        elif sifter is not None:
            first = sifter(batch, self.ended_ns)
            for each in batch[:first]:
                self._drop(each)
            del batch[:first]
        self.batch = batch
        self.counts = [0] * len(batch)
        return batch[0] if batch else None

    def _drop(self, job: Job) -> None:
        self._shed(job)
        self.meter.shed()

    def _step_slow(self, job: Job, start_ns: int, end_ns: int) -> Job | None:
        """The end of a batch, of an instance that is measured, or of one of which results were shed.

        Returns what goes on without a decision.
        """
        unit, jobs, missed, ruled = job[3], self.batch if self.batching else [job], 0, self.policy.rule is not None
        for slot, (each, counts) in enumerate(zip(jobs, self.counts, strict=True)):
            deadline_ns, release_ns, _, _, lineage, _ = each
            due_ns = deadline_ns if ruled else release_ns + unit.sub_deadline_ns
            missed += end_ns > due_ns
            self.facts.write(
                RAN, unit.flags | FLAG if self.resumed else unit.flags, unit.id, lineage[0], lineage[1], lineage[2],
                release_ns, start_ns, end_ns, due_ns, start_ns - self.ended_ns + self._take_surplus(slot),
                lineage[3] << 32 | counts,
            )  # fmt: skip
            if unit.marks and not self.resumed:
                self._mark(end_ns, unit, lineage, counts)
            if unit.meter is not None:
                unit.meter.made(counts)
        if unit.meter is not None:
            decision_ns = start_ns - self.ended_ns if self.decided else None
            self.meter.ran(unit.meter, len(jobs), missed, end_ns - start_ns, decision_ns)
        if self.tuner is not None:
            self.tuner.ended(unit, len(jobs), end_ns - start_ns, start_ns - self.ended_ns)
        self.batch, self.counts, self.ended_ns = [], [0], end_ns
        self.slow = self.batching or self.policy.measured
        return self._go_on()

    def _go_on(self) -> Job | None:
        """The next job of the unit that has just run, if its policy stays with it."""
        if self.held is None or self.stay is None or not self.held.queue:
            return None
        queue: Any = self.held.queue
        if not self.stay.goes_on(queue[0], self.heads[0] if self.heads else None, self.ended_ns):
            return None
        job: Job = queue.popleft()
        self.job = job
        self.dispatched += 1
        self.decided = False
        return job

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

    def _spread(self, at_ns: int, route: Route, lineage: Lineage, payload: Any) -> None:
        flags, source, epoch, seq, ordinal = route.loaded.flags, *lineage[:4]
        for side in route.sides:  # before any release of the same instant
            side.value = payload
            self.facts.write(ABSORBED, flags, side.operator_id, source, epoch, seq, at_ns, route.stream, ordinal)
        for unit in route.units:
            self.release(at_ns, unit, lineage, payload)
        for join, port in route.joins:
            self._join(at_ns, join, port, lineage, payload)
        for peer in route.sends:
            self.commands.send(at_ns, route.loaded, peer, route.stream, lineage, payload)
        for output in route.outputs:
            self.facts.write(
                OUTPUT, flags, output.id, source, epoch, seq, at_ns, lineage[4], lineage[5], output.deadline_ns, ordinal
            )
            self.commands.deliver(at_ns, route.loaded, output, lineage, payload)

    # -- joins by lineage

    def _join(self, at_ns: int, join: Join, port: int, lineage: Lineage, payload: Any) -> None:
        key = lineage[:4]
        waiting = join.waiting.get(key)
        if waiting is None:
            if len(join.waiting) >= Join.LIMIT:
                self._expired(at_ns, join, join.waiting.pop(next(iter(join.waiting))))
            waiting = join.waiting[key] = Waiting(join.ports, at_ns + join.wait_ns)
        while waiting.taken >> port & 1:  # one lineage twice, by way of a union: it waits for partners of its own
            if waiting.after is None:
                waiting.after = Waiting(join.ports, at_ns + join.wait_ns)
            waiting = waiting.after
        waiting.taken |= 1 << port
        if payload is ABSENT:
            waiting.absent = True
        else:
            waiting.lineages[port], waiting.values[port] = lineage, payload
        if waiting.taken == (1 << join.ports) - 1:  # the first in its row: ports fill in the order of arrival
            del join.waiting[key]
            if waiting.after is not None:
                join.waiting[key] = waiting.after
            self._joined(at_ns, join.unit, waiting)

    def _joined(self, at_ns: int, unit: Unit, waiting: Waiting) -> None:
        present = [lineage for lineage in waiting.lineages if lineage is not None]
        if not present:
            return  # every branch was filtered; nothing is left to account for
        parent = present[0]
        for lineage in present if waiting.absent else present[1:]:
            self.facts.write(
                MERGED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2],
                at_ns, parent[0], parent[1], lineage[3], int(waiting.absent), parent[2],
            )  # fmt: skip
        if waiting.absent:
            self._mark(at_ns, unit, parent, 0)
        else:
            self.release(at_ns, unit, merged(present), tuple(waiting.values))

    def expire(self, at_ns: int) -> None:
        """Give up join results whose contributors have not come in time."""
        for loaded in self.loaded:
            for join in loaded.joins:
                while join.waiting:
                    key = next(iter(join.waiting))
                    if join.waiting[key].expires_ns > at_ns:
                        break
                    self._expired(at_ns, join, join.waiting.pop(key))

    def _expired(self, at_ns: int, join: Join, waiting: Waiting) -> None:
        for lineage in waiting.lineages:
            if lineage is not None:
                self._lost(at_ns, join.unit, lineage, CAUSE_JOIN_EXPIRED)
        if waiting.after is not None:
            self._expired(at_ns, join, waiting.after)

    # -- absence marks and losses

    def _absent(self, at_ns: int, route: Route, lineage: Lineage) -> None:
        """Carry an absence mark along a stream to the joins that wait for it."""
        if not route.marked:
            return
        for unit in route.units:
            if unit.inputs == 1 or self._all_absent(unit, lineage):
                self._mark(at_ns, unit, lineage, 0)
        for join, port in route.joins:
            self._join(at_ns, join, port, lineage, ABSENT)
        for peer in route.sends:
            self.commands.send(at_ns, route.loaded, peer, route.stream, lineage, ABSENT)

    def _all_absent(self, unit: Unit, lineage: Lineage) -> bool:
        """Count a mark at a union: it gives nothing only when none of its inputs has anything to give."""
        key, absences = lineage[:4], unit.absences
        count = absences.pop(key, 0) + 1
        if count == unit.inputs:
            return True
        if len(absences) >= Unit.LIMIT:
            del absences[next(iter(absences))]
        absences[key] = count
        return False

    def _mark(self, at_ns: int, unit: Unit, lineage: Lineage, counts: int) -> None:
        for exit_ in unit.marks:
            if not counts >> (8 * exit_.index) & 0xFF:
                self._absent(at_ns, exit_.route, lineage)

    def _lost(
        self, at_ns: int, unit: Unit, lineage: Lineage, cause: int, start_ns: int = 0, counts: int = 0, shed: int = 0
    ) -> None:
        self.facts.write(
            LOST, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, cause, lineage[3], shed, start_ns,
            counts,
        )  # fmt: skip
        if unit.marks:
            self._mark(at_ns, unit, lineage, counts)

    # -- policing

    def _shed_arrival(self, at_ns: int, route: Route, lineage: Lineage) -> None:
        """A source sent more than it declared: its tuple is admitted and goes nowhere.

        No branch gets it, so no join waits for it: marks are not needed, and would be as many as the excess.
        """
        self.facts.write(
            SHED, route.loaded.flags, NO_REF, lineage[0], lineage[1], lineage[2], at_ns, POLICY_ARRIVALS, lineage[3],
            route.stream,
        )  # fmt: skip

    def police(self, at_ns: int, unit: Unit, step: Step, lineages: Sequence[Lineage], slot: int = 0) -> int:
        """An operator of the running instance has made these results of one input: how many of them pass.

        The others, the last ones, are shed. If it gave none, or raised, it has to be told as well.
        """
        assert step.police is not None
        passed = step.police.passes(len(lineages))
        for lineage in lineages[passed:]:
            self.facts.write(
                SHED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, POLICY_SELECTIVITY, lineage[3],
                0, step.operator_id,
            )  # fmt: skip
            self.surplus[slot] = self.surplus.get(slot, 0) + 1
            self.slow = True  # its record is not the usual one
        return passed

    def _take_surplus(self, slot: int = 0) -> int:
        return min(self.surplus.pop(slot, 0), SURPLUS_MOST) << SURPLUS_SHIFT


__all__ = ["Commands", "Engine"]
