"""Units' queues, and which unit runs next: the policy's parts at work.

One heap holds the head of every unit's queue. Its order is total: deadline or rank, release, arrival number. Only what
`edf` and its like need for a decision is written out in `engine.py`, without calls.
"""

from collections import deque
from collections.abc import Container, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from node_agent.core.branches import Branches, Commands, removed
from node_agent.core.closings import release as release_windows
from node_agent.core.facts import Facts
from node_agent.core.lateness import Expiry
from node_agent.core.measure import NodeMeter
from node_agent.core.parts import ABSENT, Exit, Job, Lineage, Mark, Unit
from node_agent.core.policies.parts import Policy
from node_agent.core.windowed import Windowed
from protos.records import FLAG, POLICY_LATE, POLICY_OUTDATED, RAN, SHED


class Choice(Branches):
    """The part of the engine that orders, batches, drops and measures."""

    __slots__ = (
        "batch", "batching", "counts", "decided", "dispatched", "ended_ns", "expiry", "fifo", "form", "heads", "held",
        "job",
        "meter", "order", "policy", "resumed", "stay", "tuner", "unripe",
    )  # fmt: skip

    def __init__(self, policy: Policy, facts: Facts, commands: Commands) -> None:
        super().__init__(facts, commands)
        self.policy = policy
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
        self.dispatched = 0  # jobs
        self.ended_ns = 0
        self.resumed = False
        self.fifo = policy.key is None
        self.expiry: Expiry | None = None  # of the units whose first operator sheds what is late
        self.slow = self.batching or policy.measured

    # -- queues

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
            idle = not unit.queue and (self.job is None or self.job[3] is not unit)
            job = (unit.rule(job[1], idle), *job[1:])
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

    def _cut(self, unit: Unit, most: int) -> list[Job]:
        """Take the oldest jobs, at most so many, off a unit's queue; they will not run. Not the running instance's."""
        queue = unit.queue
        if isinstance(queue, deque):
            cut = [queue.popleft() for _ in range(min(most, len(queue)))]
        else:
            cut = sorted(queue, key=lambda job: job[1:3])[:most]
            if len(cut) < len(queue):
                last = cut[-1][1:3] if cut else (0, 0)
                queue[:] = [job for job in queue if job[1:3] > last]
                heapify(queue)
            else:
                queue.clear()
        if cut:
            self._out(unit, len(cut))
        return cut

    def _remove(self, unit: Unit, lineages: Container[Lineage]) -> list[Job]:
        """Take all jobs of these tuples out of a unit's queue, as `_cut` does."""
        queue = unit.queue
        gone = sorted((job for job in queue if job[4] in lineages), key=lambda job: job[1:3])
        if gone:
            kept = [job for job in queue if job[4] not in lineages]
            queue.clear()
            queue.extend(kept)
            if isinstance(queue, list):
                heapify(queue)
            if unit.gate is not None:
                for job in gone:
                    unit.gate.withdrawn(job)
            self._out(unit, len(gone))
        return gone

    def _out(self, unit: Unit, jobs: int) -> None:
        """So many jobs have left a queue without being chosen: another one may be its head."""
        queue = unit.queue
        self.dispatched += jobs
        for heap in (self.heads, self.unripe):
            if any(job[3] is unit for job in heap):
                heap[:] = [job for job in heap if job[3] is not unit]
                heapify(heap)
        if queue and unit is not self.held:
            self._head(unit)

    def _under_way(self, windowed: Windowed, source: int, epoch: int) -> Iterator[int]:
        """Numbers of a source that wait for a unit on their way to windows, or run: the first of each queue that is in
        the order of arrival, all of others. Some lead elsewhere."""
        running = self.batch if self.batching else [] if self.job is None else [self.job]
        queues = [running] + [
            unit.queue
            for unit in windowed.loaded.units
            if unit.collects is windowed or any(each.route.counted for each in unit.marks)
        ]
        for queue in queues:
            for job in queue:
                if job[4][0] == source and job[4][1] == epoch:
                    yield job[4][2]
                    if isinstance(queue, deque):
                        break

    # -- the choice

    def _dispatch(self) -> Job | None:
        self.resumed = False
        if self.held is not None:
            held, self.held = self.held, None
            if held.queue:
                self._head(held)
        expiry = self.expiry
        if expiry is not None and self.ended_ns > expiry.due_ns:
            self._expire_heads(expiry)
        selecting = self.form is not None or self.policy.dropper is not None or expiry is not None
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

    def _shed(self, at_ns: int, job: Job, policy: int) -> None:
        """A job that is in no queue any more, or was not let in, does not run."""
        unit, lineage = job[3], job[4]
        self.facts.write(SHED, unit.flags, unit.id, lineage[0], lineage[1], lineage[2], at_ns, policy, lineage[3])
        self._count_shed(policy)
        unit.shed += 1
        self._gone(at_ns, unit, lineage)

    def _select(self, job: Job) -> Job | None:
        """What runs of a unit that was chosen: its batch without what is dropped. The first job that runs, or None.

        The head is judged before a batch is formed behind it: where it is shed, another unit may come first.
        """
        dropper, sifter = self.policy.dropper, self.policy.sifter
        late_ns: int = job[3].late_ns
        if late_ns and self.ended_ns - job[4][5] > late_ns:
            self._drop(job)
            return None
        if dropper is not None and dropper(job, self.ended_ns, 0):
            self._drop(job)
            return None
        if self.form is None:
            return job
        queue: deque[Job] = job[3].queue
        more = self.form(job, queue)
        batch = [job, *(queue.popleft() for _ in range(more))]
        self.dispatched += more
        if late_ns:
            for each in batch[1:]:
                if self.ended_ns - each[4][5] > late_ns:
                    self._drop(each)
                    batch.remove(each)
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

    def _expire_heads(self, expiry: Expiry) -> None:
        """Shed what is late at the head of any unit's queue, whether or not it is that unit's turn."""
        at_ns, changed = self.ended_ns, set[Unit]()
        due_ns = at_ns + expiry.least_ns
        for unit in expiry.units:
            queue, late_ns = unit.queue, unit.late_ns
            while queue and at_ns - queue[0][4][5] > late_ns:
                job = queue.popleft() if isinstance(queue, deque) else heappop(queue)
                self.dispatched += 1
                changed.add(unit)
                self._drop(job)
            if queue:
                due_ns = min(due_ns, queue[0][1] + late_ns)
        expiry.due_ns = due_ns
        if changed:
            for heap in (self.heads, self.unripe):
                heap[:] = [job for job in heap if job[3] not in changed]
                heapify(heap)
            for unit in expiry.units:
                if unit in changed and unit.queue:
                    self._head(unit)

    def _outdated(self, at_ns: int, exit_: Exit, lineage: Lineage, slot: int) -> None:
        """A result of the running instance that its outputs can have too late only."""
        assert self.job is not None
        self._shed_result(at_ns, self.job[3], lineage, POLICY_OUTDATED, exit_.operator_id, slot)

    def _drop(self, job: Job) -> None:
        self._shed(self.ended_ns, job, POLICY_LATE)
        self.meter.shed()

    def _step_slow(self, job: Job, start_ns: int, end_ns: int) -> Job | None:
        """The end of a batch, of an instance that is measured, or of one of which results were shed.

        Returns what goes on without a decision.
        """
        unit, jobs, missed, ruled = job[3], self.batch if self.batching else [job], 0, self.policy.rule is not None
        share_ns = (end_ns - self.ended_ns) // max(1, len(jobs))
        for slot, (each, counts) in enumerate(zip(jobs, self.counts, strict=True)):
            deadline_ns, release_ns, _, _, lineage, _ = each
            due_ns = deadline_ns if ruled else release_ns + unit.sub_deadline_ns
            missed += end_ns > due_ns
            surplus = self._take_surplus(slot)
            self.facts.write(
                RAN, unit.flags | FLAG if self.resumed else unit.flags, unit.id, lineage[0], lineage[1], lineage[2],
                release_ns, start_ns, end_ns, due_ns, start_ns - self.ended_ns + surplus, lineage[3] << 32 | counts,
            )  # fmt: skip
            if unit.noted:
                self._noted(end_ns, unit, each, counts, share_ns, removed(lineage) if surplus else ABSENT)
            if unit.meter is not None:
                unit.meter.made(counts)
        if unit.meter is not None:
            decision_ns = start_ns - self.ended_ns if self.decided else None
            self.meter.ran(unit.meter, len(jobs), missed, end_ns - start_ns, decision_ns)
        if self.tuner is not None:
            self.tuner.ended(unit, len(jobs), end_ns - start_ns, start_ns - self.ended_ns)
        unit.runs += len(jobs)
        self.batch, self.counts, self.ended_ns = [], [0], end_ns
        self.slow = self.batching or self.policy.measured
        return self._go_on()

    def _noted(
        self, end_ns: int, unit: Unit, job: Job, counts: int, took_ns: int | None = None, mark: Mark = ABSENT
    ) -> None:
        """An instance of a unit that is `noted` has ended, or one tuple of a batch. took_ns: its share of the batch.
        mark: of the exits that it gave nothing on."""
        busy = unit.busy
        if busy is not None:
            busy.add(end_ns - self.ended_ns if took_ns is None else took_ns, end_ns, counts, not self.resumed)
        if unit.marks and not self.resumed:
            self._mark(end_ns, unit, job[4], counts, mark)
        if unit.collects is not None:
            release_windows(end_ns, unit.collects)

    def _go_on(self) -> Job | None:
        """The next job of the unit that has just run, if its policy stays with it."""
        if self.held is None or self.stay is None or not self.held.queue:
            return None
        queue: Any = self.held.queue
        expiry, late_ns = self.expiry, self.held.late_ns
        if expiry is not None and (
            self.ended_ns > expiry.due_ns or (late_ns and self.ended_ns - queue[0][4][5] > late_ns)
        ):
            return None
        if not self.stay.goes_on(queue[0], self.heads[0] if self.heads else None, self.ended_ns):
            return None
        job: Job = queue.popleft()
        self.job = job
        self.dispatched += 1
        self.decided = False
        return job
