"""The ready queue: chooses the job that runs next from the units' queues, under one policy.

One heap holds the head of every unit's queue. Its order is total: deadline or rank, release, arrival number. A decision
costs O(log units), a tuple O(1) besides, however many are queued. Heap entries are tuples, which compare in C.

What a policy's parts ask for (ranks, batches, dropping, staying, measuring) is decided here at construction: `release`
and `pop` are the ways that jobs go under it. Under a policy that drops, `candidate`, `judge` and `begin` take the place
of `pop`; under one that forms batches, `choose_batch` and `begin_batch`.
"""

from collections.abc import Collection, Container, Iterable, Iterator
from heapq import heappush
from typing import NamedTuple

from node_agent.core import queues
from node_agent.core.expiry import Expiry, expiry, is_late
from node_agent.core.job_queues import JobHeap, KeyQueue
from node_agent.core.lineage import Lineage
from node_agent.core.meters import NodeMeter
from node_agent.core.model import CompiledPlan, Job, Unit, new_job
from node_agent.core.policies.policy_parts import Asked, Policy
from protos.records import POLICY_LATE

COMPILED = not __file__.endswith(".py")


class Dropped(NamedTuple):
    """A job that is shed, and by which policy of a SHED record."""

    job: Job
    policy: int


NONE: list[Job] = []  # no jobs; nothing is ever put into it


class ReadyQueue:
    """The queues of the units of all loaded plans, and the instance that was taken off them last.

    expires: some heads are shed where they are late, so `expired` has to be asked.
    running, batch: the instance that runs, and its jobs where the policy forms batches. shed: of the last batch that
    was chosen. decided: choosing it took a decision; not, where its unit went on. released, dispatched: jobs so far.
    meter: is kept up to date as far as the policy asks: costs, gaps, results. direct: a deadline is the release plus
    the unit's offset, and nothing is measured. plain: `pop` takes the least deadline.
    """

    __slots__ = (
        "_at_ns",
        "_chosen",
        "_dropper",
        "_expiry",
        "_form",
        "_key",
        "_not_eligible",
        "_order",
        "_runs",
        "_sifter",
        "_stay",
        "batch",
        "batching",
        "costs",
        "decided",
        "direct",
        "dispatched",
        "expires",
        "gaps",
        "heads",
        "held",
        "meter",
        "ordered",
        "plain",
        "policy",
        "released",
        "results",
        "running",
        "selects",
        "shed",
        "tuner",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.heads = JobHeap()
        self._not_eligible = JobHeap()  # heads, by the instant at which their batches are complete
        self.meter = NodeMeter()
        self.tuner = policy.tuner(self.meter, policy.parameters) if policy.tuner is not None else None
        self._order = policy.order(self.meter) if policy.order is not None else None
        self._stay = policy.stays(self.meter, policy.parameters) if policy.stays is not None else None
        self.held: Unit | None = None  # the running unit under a policy that stays: its next head is not in the heap
        self._key = policy.key
        self._dropper, self._sifter = policy.dropper, policy.sifter
        self._form = policy.batch
        self._expiry: Expiry | None = None  # of the units whose first operator sheds what is late
        self._at_ns = 0  # of the last choice
        self.batching = policy.batch is not None or policy.tuner is not None
        self.running: Job | None = None
        self.batch = NONE
        self.shed: list[Dropped] = []
        self._chosen: Unit | None = None  # whose batch is about to run, and its jobs
        self._runs = NONE
        self.decided = True
        self.released = self.dispatched = 0
        self.ordered = policy.key is not None
        self.plain = not (self.ordered or self._order or self.tuner or self._stay)
        self.direct = self.plain and policy.rule is None and policy.batch is None and not policy.metered
        asks = policy.asks if policy.metered else Asked(0)
        self.costs, self.gaps, self.results = Asked.COSTS in asks, Asked.GAPS in asks, Asked.RESULTS in asks
        self._look_at_lateness(())

    def queued(self) -> int:
        """Jobs that wait."""
        return self.released - self.dispatched

    # -- plans

    def load(self, loaded: CompiledPlan, plans: Iterable[CompiledPlan]) -> None:
        """The units of a plan; plans: all that are loaded then."""
        if self.policy.metered:
            for unit in loaded.units:
                unit.meter = self.meter.add(unit)
        if self.tuner is not None:
            self.tuner.loaded()
        self._look_at_lateness(plans)

    def unload(self, loaded: CompiledPlan, plans: Iterable[CompiledPlan]) -> None:
        """Its queues are empty (`take_all`); plans: all that are left."""
        for heap in (self.heads, self._not_eligible):
            heap.keep(lambda job: job.unit.loaded is not loaded)
        if self.held is not None and self.held.loaded is loaded:
            self.held = None
        for unit in loaded.units:
            if unit.meter is not None:
                self.meter.remove(unit.meter)
        if self.tuner is not None:
            self.tuner.loaded()
        self._look_at_lateness(plans)

    def _look_at_lateness(self, plans: Iterable[CompiledPlan]) -> None:
        self._expiry = expiry(plans)
        self.expires = self._expiry is not None
        self.selects = self.batching or self._dropper is not None or self.expires

    # -- jobs come in

    def release(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> None:
        """A job comes in."""
        if not self.direct:
            self._release_otherwise(at_ns, unit, lineage, payload)
            return
        self.released = number = self.released + 1
        job = Job()
        job.key_ns = key_ns = at_ns + unit.offset_ns
        job.release_ns, job.number, job.unit, job.lineage, job.payload = at_ns, number, unit, lineage, payload
        queue = unit.arrivals
        if not queue:
            if COMPILED:
                job.rank, job.tie = key_ns, at_ns
                self.heads.push(job)
            else:
                heappush(self.heads.entries, (key_ns, at_ns, number, job))
        queue.append(job)

    def _release_otherwise(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> None:
        if self.ordered:
            self._release_by_key(at_ns, unit, lineage, payload)
        else:
            self._release_in_order(at_ns, unit, lineage, payload)

    def _release_by_key(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> None:
        key = self._key
        assert key is not None
        self.released = number = self.released + 1
        job = new_job(key.key_ns(unit, lineage), at_ns, number, unit, lineage, payload)
        queue: KeyQueue = unit.queue  # type: ignore[assignment]  # as all of a policy with a key
        queue.append(job)
        if queue.head() is job:
            self.heads.push(job)  # the former head stays in there and is skipped when it is not the head

    def _release_in_order(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> None:
        queue = unit.arrivals
        if self.gaps:
            meter = unit.meter
            assert meter is not None  # the policy measures
            meter.arrived(at_ns)
        self.released = number = self.released + 1
        rule, is_head = unit.rule, not queue
        if rule is None:
            key_ns = at_ns + unit.offset_ns
        else:
            running = self.running
            key_ns = rule.next_ns(at_ns, is_head and (running is None or running.unit is not unit))
        queue.append(new_job(key_ns, at_ns, number, unit, lineage, payload))
        if is_head and unit is not self.held:
            self._head(unit)

    def put_back(self, unit: Unit, payload: object) -> None:
        """The running instance goes on in that unit later. It keeps its arrival number, so at a tie it goes on before a
        newer one. Instances reach an operator in the order of their deadlines, so the queue stays ordered."""
        job = self.running
        assert job is not None
        self.released += 1
        rest = new_job(job.key_ns, job.release_ns, job.number, unit, job.lineage, payload)
        if not unit.queue:
            self.heads.push(rest)
        unit.queue.append(rest)

    def _head(self, unit: Unit) -> None:
        """The head of a unit's queue, into the heap: by its deadline, or under the rank that it has now."""
        order, tuner, heads, arrivals = self._order, self.tuner, self.heads, unit.arrivals
        job = arrivals.head() if COMPILED and not self.ordered else unit.queue[0]
        job.rank, job.tie = job.key_ns, job.release_ns
        if order is not None:
            order.place(job)
        elif tuner is not None and heads and (eligible_ns := tuner.eligible_ns(job)) > self._at_ns:
            job.rank, heads = eligible_ns, self._not_eligible
        heads.push(job)

    def _make_eligible(self) -> None:
        """Batches that are complete by now compete; where there is none, the oldest, so that the node is not idle."""
        not_eligible, heads = self._not_eligible, self.heads
        while not_eligible and (not_eligible.first().rank <= self._at_ns or not heads):
            unit = not_eligible.pop().unit
            head = unit.arrivals.head() if COMPILED else unit.queue[0]
            head.rank, head.tie = head.key_ns, head.release_ns
            heads.push(head)

    # -- the choice

    def pop(self, at_ns: int) -> Job | None:
        """The job that runs next; None: nothing is ready. Only where `selects` is False."""
        if not self.plain:
            return self._pop_by_key() if self.ordered else self._pop_by_rank(at_ns)
        heads = self.heads
        if not heads:
            self.running = None
            return None
        self.running = job = heads.first()
        unit = job.unit
        queue = unit.arrivals
        queue.popleft()
        self.dispatched += 1
        if queue:
            head = queue.head() if COMPILED else queue[0]
            head.rank, head.tie = head.key_ns, head.release_ns
            heads.replace(head)
        else:
            heads.pop()
        return job

    def _pop_by_key(self) -> Job | None:
        """The least key of all; entries of jobs that are not their queue's head any more are passed over."""
        heads = self.heads
        while heads:
            job = heads.first() if COMPILED else heads.entries[0][3]  # `first` without the call
            queue: KeyQueue = job.unit.queue  # type: ignore[assignment]  # as all of a policy with a key
            if not queue or queue.head() is not job:
                heads.pop()
                continue
            queue.popleft()
            self.dispatched += 1
            if queue:
                heads.replace(queue.head())
            else:
                heads.pop()
            self.running = job
            return job
        self.running = None
        return None

    def _pop_by_rank(self, at_ns: int) -> Job | None:
        """Ranks, and units that are held."""
        self._let_go(at_ns)
        job = self._take()
        if job is not None:
            self._follow(job.unit, job)
        self.running, self.decided = job, True
        return job

    def expired(self, at_ns: int) -> Iterable[Job]:
        """What is late at the head of any unit's queue, whether or not it is that unit's turn: each has left its queue
        when it is given, the next one has not. To be asked before `choose`."""
        self._let_go(at_ns)
        expiry = self._expiry
        return () if expiry is None or at_ns <= expiry.due_ns else self._late_heads(at_ns, expiry)

    def _late_heads(self, at_ns: int, expiry: Expiry) -> Iterator[Job]:
        changed: dict[Unit, None] = {}
        due_ns = at_ns + expiry.least_ns
        for unit in expiry.units:
            queue = unit.queue
            while queue and is_late(at_ns, queue[0].lineage, unit.late_ns):
                changed[unit] = None
                self.dispatched += 1
                yield queue.popleft()
            if queue:
                due_ns = min(due_ns, queue[0].release_ns + unit.late_ns)
        expiry.due_ns = due_ns
        if changed:
            self._reseat(changed)

    def candidate(self, at_ns: int) -> Job | None:
        """The head of the most urgent unit, out of its queue; None: nothing is ready. Next is `judge`, then `begin`."""
        self._let_go(at_ns)
        return self._take()

    def judge(self, job: Job, at_ns: int) -> int:
        """By which policy of a SHED record the candidate is shed; 0: it runs."""
        unit, dropper = job.unit, self._dropper
        if unit.late_ns and is_late(at_ns, job.lineage, unit.late_ns):
            return POLICY_LATE
        return 0 if dropper is None else dropper.judge(job, at_ns, 0)

    def begin(self, unit: Unit, job: Job | None) -> None:
        """The candidate of a unit runs, and the unit's next head waits for its turn. None: it was shed, and another
        unit may come first; next is `candidate`. What was shed has taken effect by now."""
        self._follow(unit, job)
        if job is not None:
            self.running, self.decided = job, True

    def choose_batch(self, at_ns: int) -> bool:
        """The most urgent unit, and what runs of its queue; False: nothing is ready. `shed` has what is shed of it, out
        of the queue: take it away. Next is `begin_batch`, when that has taken effect.

        The head is judged before a batch is formed behind it: where it is shed, no job runs, since another unit may
        come first.
        """
        job = self.candidate(at_ns)
        if job is None:
            return False
        policy = self.judge(job, at_ns)
        if policy:
            self.shed.append(Dropped(job, policy))
        self._chosen, self._runs = job.unit, NONE if policy else self._batch(job)
        return True

    def begin_batch(self) -> Job | None:
        """The chosen instance runs. None: nothing of it does; then `choose_batch` again."""
        runs, unit = self._runs, self._chosen
        assert unit is not None
        job = runs[0] if runs else None
        self.batch, self._runs, self._chosen = runs, NONE, None
        self.begin(unit, job)
        return job

    def idle(self) -> None:
        """Nothing is ready: no instance runs."""
        self.running, self.decided = None, True

    def goes_on(self, at_ns: int) -> Job | None:
        """The next job of the unit that has just run, if its policy stays with it; this takes no decision."""
        if self.batching:
            self.batch = NONE
        held, stay, expiry = self.held, self._stay, self._expiry
        if held is None or stay is None or not held.arrivals:
            return None
        arrivals = held.arrivals
        head = arrivals.head() if COMPILED else arrivals[0]
        late = held.late_ns and is_late(at_ns, head.lineage, held.late_ns)
        if expiry is not None and (at_ns > expiry.due_ns or late):
            return None
        if not stay.goes_on(head, self._other(), at_ns):
            return None
        arrivals.popleft()
        self._at_ns = at_ns
        self.running = head
        self.dispatched += 1
        self.decided = False
        return head

    def resume(self, at_ns: int) -> None:
        """The instance that was chosen begins at that instant only."""
        self._at_ns = at_ns

    def drop(self, slot: int) -> None:
        """A job of the running batch has failed; the others go on."""
        del self.batch[slot]

    def _let_go(self, at_ns: int) -> None:
        self._at_ns = at_ns
        if self.held is not None:
            held, self.held = self.held, None
            if held.queue:
                self._head(held)

    def _follow(self, unit: Unit, job: Job | None) -> None:
        """A job of that unit runs, or none does: another one may be its head."""
        if job is not None and self._stay is not None:
            self.held = unit
            self._stay.begins(job, self._other(), self._at_ns)
        elif unit.queue:
            self._head(unit)

    def _other(self) -> Job | None:
        return self.heads.first() if self.heads else None

    def _take(self) -> Job | None:
        """The job with the least key, out of its queue; the queue's next head is not in the heap yet."""
        heads = self.heads
        if self._not_eligible:
            self._make_eligible()
        while heads:
            job = heads.take()
            unit = job.unit
            if not self._leaves(unit, job):
                continue  # no longer its queue's head
            if self._order is not None:
                self._order.chosen(job.rank)
            self.dispatched += 1
            return job
        return None

    def _leaves(self, unit: Unit, job: Job) -> bool:
        """Take the head off its queue. False: that job is not, or no longer, the head."""
        if COMPILED and not self.ordered:
            arrivals = unit.arrivals
            return arrivals.leaves(job)
        queue = unit.queue
        if not queue or queue[0] is not job:
            return False
        queue.popleft()
        return True

    def _batch(self, head: Job) -> list[Job]:
        """What runs of a unit whose head was chosen: its batch without what is dropped."""
        unit: Unit = head.unit
        queue, at_ns, late_ns, dropper = unit.arrivals, self._at_ns, unit.late_ns, self._dropper
        form, tuner, batch = self._form, self.tuner, [head]
        if tuner is not None:
            more = tuner.behind(head, queue)
        else:
            assert form is not None  # the policy forms batches
            more = form.behind(head, queue)
        for _ in range(more):
            batch.append(queue.popleft())
        self.dispatched += more
        if late_ns:
            oldest_ns = at_ns - late_ns
            self.shed += [Dropped(each, POLICY_LATE) for each in batch if each.lineage[5] < oldest_ns]
            batch = [each for each in batch if each.lineage[5] >= oldest_ns]
        if dropper is not None and more:
            candidates, batch = batch, [head]
            for each in candidates[1:]:
                if policy := dropper.judge(each, at_ns, len(batch)):
                    self.shed.append(Dropped(each, policy))
                else:
                    batch.append(each)
        elif dropper is None and self._sifter is not None:
            first = self._sifter(batch, at_ns)
            self.shed += [Dropped(each, POLICY_LATE) for each in batch[:first]]
            del batch[:first]
        return batch

    # -- jobs leave without having run

    def take_oldest(self, unit: Unit, most: int) -> list[Job]:
        """Take the oldest jobs, at most so many, off a unit's queue. Not the running instance's."""
        return self._out(unit, queues.take_oldest(unit.queue, most))

    def take_youngest(self, unit: Unit, most: int) -> list[Job]:
        """Likewise the youngest."""
        return self._withdrawn(unit, self._out(unit, queues.take_youngest(unit.queue, most)))

    def take(self, unit: Unit, lineages: Container[Lineage]) -> list[Job]:
        """Likewise all jobs of these tuples, the oldest first."""
        return self._withdrawn(unit, self._out(unit, queues.take(unit.queue, lineages)))

    def take_all(self, unit: Unit) -> list[Job]:
        """Likewise everything, of a unit that is about to be unloaded."""
        jobs = queues.take_all(unit.queue)
        self.dispatched += len(jobs)
        return jobs

    def withdraw(self, job: Job) -> None:
        """Take that job out of its queue."""
        queue = job.unit.queue
        self._withdrawn(job.unit, [job])
        was_head = queue[0] is job
        queues.withdraw(queue, job)
        if was_head:
            self._left(job.unit, 1)
        else:
            self.dispatched += 1

    def _out(self, unit: Unit, jobs: list[Job]) -> list[Job]:
        if jobs:
            self._left(unit, len(jobs))
        return jobs

    def _withdrawn(self, unit: Unit, jobs: list[Job]) -> list[Job]:
        """They have left from within the queue, which its limit has to know."""
        if unit.gate is not None:
            for job in jobs:
                unit.gate.withdrawn(job)
        return jobs

    def _left(self, unit: Unit, jobs: int) -> None:
        """So many jobs have left a queue without being chosen."""
        self.dispatched += jobs
        self._reseat((unit,))

    def _reseat(self, units: Collection[Unit]) -> None:
        """Other jobs than before may be the heads of these units' queues."""
        for heap in (self.heads, self._not_eligible):
            heap.keep(lambda job: job.unit not in units)
        for unit in units:
            if unit.queue and unit is not self.held:
                self._head(unit)

    # -- what is asked

    def in_flight(self, units: Iterable[Unit], source: int, epoch: int) -> Iterator[int]:
        """Numbers of a source that wait for one of these units, or run: the first of each queue that is in the order of
        arrival, all of others."""
        running = self.batch if self.batching else [] if self.running is None else [self.running]
        yield from (job.lineage[2] for job in running if _is_of(job, source, epoch))
        for unit in units:
            for job in unit.queue:
                if _is_of(job, source, epoch):
                    yield job.lineage[2]
                    if queues.in_order(unit.queue):
                        break

    def ended(self, unit: Unit, made: list[int], missed: int, ran_ns: int, decided_ns: int) -> None:
        """A batch has ended, `missed` of its tuples after their deadline. made: the outputs word of each tuple.
        decided_ns: what choosing it took."""
        jobs, meter = len(made), unit.meter
        if meter is not None:  # the policy measures
            if self.costs:
                self.meter.ran(meter, jobs, missed, ran_ns)
                self.meter.decided(decided_ns)
            if self.results:
                for counts in made:
                    meter.made(counts)
        if self.tuner is not None:
            self.tuner.ended(unit, jobs, ran_ns, decided_ns)

    def ended_alone(
        self, unit: Unit, made: int, missed: bool, start_ns: int, end_ns: int, decided_ns: int
    ) -> Job | None:  # fmt: skip
        """`ended`, of an instance of one tuple, where the policy asks for costs or results, or may stay: returns what
        the unit goes on with."""
        meter, node = unit.meter, self.meter
        assert meter is not None
        if self.costs:
            node.ran(meter, 1, missed, end_ns - start_ns)
            if self.decided:
                node.decided(decided_ns)
        if self.results:
            meter.made(made)
        return None if self._stay is None else self.goes_on(end_ns)


def _is_of(job: Job, source: int, epoch: int) -> bool:
    return job.lineage[0] == source and job.lineage[1] == epoch


__all__ = ["ReadyQueue"]
