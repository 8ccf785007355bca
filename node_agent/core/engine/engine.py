"""The engine: starts the task instance that its ready queue chooses, and applies what its end triggers ([P] 5.4).

Pure: events come in as calls with their instant, commands go out through the object handed in, facts are packed into
the buffer handed in. An instance is never interrupted. The driver calls `emit` as an operator ends with an output,
which then enters the queues of other units, and `step` as the instance ends.

Only the engine changes the state of a node. It has the ready queue, joins, fusions, windows and the ledger; admission
control stands at the routes of sources, shedders at routes and units. Each of these returns what follows from its
input, and the engine applies it: releases, sheds, loses, forwards punctuation, writes facts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from node_agent.core import plan as plans
from node_agent.core.engine import joins
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.engine.joins import GONE, JoinEnd
from node_agent.core.engine.ledger import Ledger
from node_agent.core.engine.ready_queue import ReadyQueue
from node_agent.core.engine.window_ends import WindowEnds
from node_agent.core.expiry import is_late
from node_agent.core.facts import HEADED, Facts
from node_agent.core.fusion import Fired, FusionEnd, Unfused
from node_agent.core.lineage import Lineage, merged
from node_agent.core.model import (
    Calls,
    CompiledPlan,
    Displaced,
    Effect,
    EntryShedder,
    Exit,
    ForwardedRemoval,
    FusionHead,
    Job,
    Join,
    Route,
    Shed,
    Shedding,
    SourceControl,
    Step,
    StreamShedder,
    Unit,
    Waiting,
)  # fmt: skip
from node_agent.core.policies.policy_parts import Policy
from node_agent.core.punctuation import (
    ABSENCE,
    PUNCTUATION,
    Absence,
    DelayedRemoval,
    Progress,
    Punctuation,
    Removal,
    removal_of,
)
from node_agent.core.shedding.memory_limit import FRONT, JOB_BYTES, size_estimate
from node_agent.core.windows.window_operator import WindowOperator
from protos.records import (
    CAUSE_JOIN_EXPIRED,
    CAUSE_QUEUE_FULL,
    CAUSE_STOPPED,
    FLAG,
    MOST_POLICED,
    POLICY_LATE,
    POLICY_MEMORY,
    POLICY_OUTDATED,
    POLICY_RATE,
    POLICY_SELECTIVITY,
    POLICY_STALE,
    RECORD_BYTES,
    beside_decision,
)  # fmt: skip

TWO = 2  # jobs that go for each that comes, so that what is above the node's limit shrinks
MOST_JOBS = 1_000_000

COMPILED = not __file__.endswith(".py")

pack = HEADED.pack_into


class Commands(Protocol):
    """Commands of the engine to its driver."""

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: object) -> None:
        """Send a tuple or punctuation to a peer."""

    def deliver(
        self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: object
    ) -> None:
        """Deliver a result."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Settings:
    """epoch: of this incarnation; windows are admitted under it. numbered: by source of windows: above all numbers that
    it had; engines of one node share it. limit_jobs: that may be queued. memory_full: whether the node's memory is."""

    epoch: int = 0
    numbered: dict[int, int] = field(default_factory=dict)
    limit_jobs: int = MOST_JOBS
    memory_full: Callable[[], bool] = _never


class Engine:
    """Schedules the units of all loaded plans under one policy.

    ended_ns: the instant of the last choice. simple: an instance is one job and is never resumed. ledger: what was
    shed, lost and degraded so far.
    """

    __slots__ = (
        "_batch_made", "_batching", "_commands", "_limit_jobs", "_made", "_memory_full", "_metered", "_plain",
        "_resumed", "_ruled", "_selects", "_slow", "_surplus", "ended_ns", "facts", "ledger", "loaded",
        "policy", "ready", "simple", "windows",
    )  # fmt: skip

    def __init__(self, policy: Policy, facts: Facts, commands: Commands, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.policy, self.facts, self._commands = policy, facts, commands
        self._limit_jobs = settings.limit_jobs
        self.loaded: list[CompiledPlan] = []
        self.ready = ReadyQueue(policy)
        self.windows = WindowEnds(settings.epoch, settings.numbered)
        self._memory_full = settings.memory_full
        self.ledger = Ledger(facts)
        self.simple = not (self.ready.batching or policy.yields)
        self.ended_ns = 0
        # Of the running instance:
        self._made = 0  # its outputs word
        self._batch_made: list[int] = []  # of each of its jobs, where the policy forms batches
        self._surplus: dict[int, int] = {}  # results of it that were shed, by slot
        self._resumed = False  # it goes on later
        self._batching = self.ready.batching
        self._metered = self.ready.costs or self.ready.results or policy.stays is not None  # each end is of interest
        self._ruled = policy.rule is not None
        self._slow = self._batching
        self._select_dispatch()

    # -- plans

    def load(self, plan: plans.Plan, calls: Calls) -> CompiledPlan:
        """Add a plan; its tuples then run beside those of the plans that are already there."""
        return self.add(compile_plan(plan, calls, self.policy))

    def add(self, loaded: CompiledPlan) -> CompiledPlan:
        """Add a plan that was compiled for this policy."""
        self.loaded.append(loaded)
        self.windows.load(loaded, self, self._in_flight)
        self.ready.load(loaded, self.loaded)
        for unit in loaded.units:
            for exit_ in unit.exits:
                exit_.alone = alone = _alone(exit_)
                if self.ready.direct and self.simple:
                    exit_.only = alone
        self._select_dispatch()
        return loaded

    def unload(self, loaded: CompiledPlan, at_ns: int) -> None:
        """Forget a plan. Tuples that are still queued or wait for a join are lost (stopped); normally it has drained.
        What waits to be fused is unmatched. Open windows that no newer plan inherits are abandoned."""
        for windowed, event in self.windows.unload(loaded):
            self.ledger.window(at_ns, windowed, self.windows.epoch, event)
        for unit in loaded.units:
            for job in self.ready.take_all(unit):
                self._lose(at_ns, unit, job.lineage, CAUSE_STOPPED)
        for join in loaded.joins:
            if isinstance(join, FusionHead):
                self._apply_fusion(at_ns, join.unit, join.waiting.stop())
            else:
                self._apply_joins(at_ns, joins.stopped(join))
        self.windows.forget(loaded)
        self.loaded.remove(loaded)
        self.ready.unload(loaded, self.loaded)
        self._select_dispatch()

    def limit_to(self, jobs: int) -> None:
        """At most so many are queued from now on."""
        self._limit_jobs = jobs

    def _select_dispatch(self) -> None:
        """How the next instance is chosen under what is loaded now."""
        ready = self.ready
        self._selects = ready.selects
        self._plain = ready.plain and self.simple and not ready.selects  # `step` does what `pop` would do

    # -- what a driver may ask

    @property
    def job(self) -> Job | None:
        """The running instance, of a batch the first job; None: none runs."""
        return self.ready.running

    @property
    def jobs(self) -> Sequence[Job]:
        """The running instance's jobs."""
        running = self.ready.running
        return self.ready.batch if self.ready.batching else () if running is None else (running,)

    @property
    def batching(self) -> bool:
        """Whether an instance may have several jobs."""
        return self.ready.batching

    @property
    def decided(self) -> bool:
        """Whether choosing the running instance took a decision; not, where its unit went on."""
        return self.ready.decided

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return self.ready.queued()

    @property
    def dispatched(self) -> int:
        """Jobs that have left a queue so far."""
        return self.ready.dispatched

    def most_urgent(self) -> Unit | None:
        """The unit that would run next; None: nothing is ready."""
        heads = self.ready.heads
        return heads.first().unit if heads else None

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do for windows and fusions, if nothing comes before; None: never."""
        due_ns = self.windows.due_ns if self.windows.operators else None
        for loaded in self.loaded:
            if loaded.joins:
                dues = [each.waiting.due_ns for each in loaded.joins if isinstance(each, FusionHead)]
                due_ns = min((each for each in (due_ns, *dues) if each is not None), default=None)
        return due_ns

    def has_room(self, more: int) -> bool:
        """Whether the queues take that many jobs."""
        return self.ready.queued() + more <= self._limit_jobs

    # -- arrivals

    def admit(self, at_ns: int, route: Route, lineage: Lineage, payload: object, size: int, sent_ns: int = 0) -> None:
        """A tuple enters the system here, at the route of its source. size: payload bytes. sent_ns: its client's stamp,
        on the client's clock."""
        self.ledger.admitted(at_ns, route, lineage, size, sent_ns)
        if route.admission is None:
            self._arrive(at_ns, route, lineage, payload)
        else:
            self._pass_admission(at_ns, route, lineage, payload)

    def receive(self, at_ns: int, route: Route, lineage: Lineage, payload: object) -> None:
        """A tuple or punctuation arrives from a peer, at the route of its stream."""
        if payload.__class__ in PUNCTUATION:
            self._forward(at_ns, route, lineage, payload)
        else:
            self._arrive(at_ns, route, lineage, payload)

    def lose(self, at_ns: int, loaded: CompiledPlan, stream: int, lineage: Lineage, cause: int) -> None:
        """An arrival that none of the stream's consumers on this node gets."""
        route = loaded.routes[stream]
        self.ledger.lost_arrival(at_ns, route, lineage, cause)
        self._forward(at_ns, route, lineage, Removal(lineage[2]))

    def heartbeat(
        self, at_ns: int, loaded: CompiledPlan, source: int, epoch: int, number: int, first: int, origin_ns: int
    ) -> None:
        """A source that leads to windows: numbers below `number` were admitted (`first`: the lowest of them under
        this plan, or `number`), and what comes is not older than origin_ns, an instant on this node's clock."""
        route = loaded.source_routes[source]
        if not route.counted:
            return
        if route.delayed_removal is not None:
            self._forward_delayed(at_ns, route)
        self._forward(at_ns, route, (source, epoch, number, 0, origin_ns, max(origin_ns, at_ns)), Progress(first))

    def expire(self, at_ns: int) -> None:
        """Give up join results whose contributors have not come in time; fire, or give up, what has waited to be fused
        for long enough; of windows, end what is past its deadline and numbers that have been missing for too long."""
        for loaded in self.loaded:
            for join in loaded.joins:
                if isinstance(join, FusionHead):
                    self._apply_fusion(at_ns, join.unit, join.waiting.expire(at_ns))
                else:
                    self._apply_joins(at_ns, joins.expired(at_ns, join))
        for windowed in self.windows.expire(at_ns):
            windowed.report(at_ns)

    def shed_queued(self, at_ns: int, unit: Unit, jobs: int) -> None:
        """So many jobs of a unit's queue go: the youngest, or where its limit says front the oldest."""
        oldest = unit.spec.on_full == FRONT
        gone = self.ready.take_oldest(unit, jobs) if oldest else self.ready.take_youngest(unit, jobs)
        for job in gone:
            self._shed(at_ns, job.unit, job.lineage, POLICY_MEMORY)

    def _arrive(self, at_ns: int, route: Route, lineage: Lineage, payload: object) -> None:
        ready = self.ready
        if ready.released - ready.dispatched >= self._limit_jobs:
            self.lose(at_ns, route.loaded, route.stream, lineage, CAUSE_QUEUE_FULL)
        elif route.simple:
            for unit in route.units:
                ready.release(at_ns, unit, lineage, payload)
        else:
            self._spread(at_ns, route, lineage, payload)

    # -- the hot path

    def release(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> None:
        """Create a task instance (p, T) at its release r ([P] 5.4)."""
        if unit.gate is None or self._fits_in_queue(at_ns, unit, lineage, payload):
            self.ready.release(at_ns, unit, lineage, payload)

    def next(self, at_ns: int) -> Job | None:
        """Start the next instance while none runs; None: nothing is ready."""
        self._resumed = False
        self.ended_ns = at_ns
        return self._next(at_ns)

    def emit(self, at_ns: int, exit_: Exit, lineage: Lineage, payload: object, slot: int = 0) -> None:
        """An operator of the running instance has ended with this output; slot: which job of a batch."""
        unit = exit_.only
        if unit is not None:  # `ready.release`, without the call
            self._made += exit_.one
            ready = self.ready
            ready.released = number = ready.released + 1
            job = Job()
            job.key_ns = key_ns = at_ns + unit.offset_ns
            job.release_ns, job.number, job.unit, job.lineage, job.payload = at_ns, number, unit, lineage, payload
            queue = unit.arrivals
            if not queue:
                if COMPILED:
                    job.rank, job.tie = key_ns, at_ns
                    ready.heads.push(job)
                else:
                    heappush(ready.heads.entries, (key_ns, at_ns, number, job))
            queue.append(job)
            return
        unit = exit_.alone
        if unit is None and exit_.outdated_ns and is_late(at_ns, lineage, exit_.outdated_ns):
            self._shed_outdated(at_ns, exit_, lineage, slot)
            return
        if self._batching:
            self._batch_made[slot] += exit_.one
        else:
            self._made += exit_.one
        if unit is not None:
            self.ready.release(at_ns, unit, lineage, payload)
        elif exit_.route.simple:
            for each in exit_.route.units:
                self.ready.release(at_ns, each, lineage, payload)
        else:
            self._spread(at_ns, exit_.route, lineage, payload)

    def step(self, start_ns: int, end_ns: int) -> Job | None:
        """End the running instance and start the next one; None: nothing is ready.

        The choice is made now: arrivals of the same instant must have been handed in before (virtual time).
        """
        ready = self.ready
        job = ready.running
        assert job is not None
        if self._slow:
            if (job := self._end_slowly(job, start_ns, end_ns)) is not None:
                return job
        else:
            unit, release_ns, made = job.unit, job.release_ns, self._made
            due_ns = job.key_ns if self._ruled else release_ns + unit.sub_deadline_ns
            source, epoch, seq, ordinal, _, _ = job.lineage
            decided_ns, facts = start_ns - self.ended_ns, self.facts
            position = facts.position
            if position == facts.limit:
                position, facts.limit = facts.refill()
            if COMPILED:
                facts.put(
                    position, unit.ran, source, epoch, seq, release_ns, start_ns, end_ns, due_ns,
                    decided_ns, ordinal << 32 | made,
                )  # fmt: skip
            else:
                pack(
                    facts.buffer, position, unit.ran, source, epoch, seq, release_ns, start_ns, end_ns, due_ns,
                    decided_ns, ordinal << 32 | made,
                )  # fmt: skip
            facts.position = position + RECORD_BYTES
            unit.runs += 1
            if unit.has_end_hooks:
                self._run_end_hooks(end_ns, job, made, end_ns - self.ended_ns, ABSENCE)
            self._made = 0
            if (
                self._metered
                and (job := ready.ended_alone(unit, made, end_ns > due_ns, start_ns, end_ns, decided_ns)) is not None
            ):
                self.ended_ns = end_ns
                return job
        self.ended_ns = end_ns
        heads = ready.heads
        if COMPILED:
            return ready.pop(end_ns) if self._plain else self._next(end_ns)
        entries = heads.entries
        if not (self._plain and entries):
            return self._next(end_ns)
        job = entries[0][3]  # `ready.pop`, without the call
        ready.running = job
        queue = job.unit.arrivals
        queue.popleft()
        ready.dispatched += 1
        if queue:
            head = queue[0]
            heapreplace(entries, (head.key_ns, head.release_ns, head.number, head))
        else:
            heappop(entries)
        return job

    def _next(self, at_ns: int) -> Job | None:
        return self._choose(at_ns) if self._selects else self.ready.pop(at_ns)

    # -- other ends of an instance

    def resume(self, at_ns: int) -> None:
        """The instance that was chosen begins at that instant only: the node did something else."""
        self.ended_ns = at_ns
        self.ready.resume(at_ns)

    def suspend(self, payload: object) -> None:
        """Under a policy that yields: the running instance goes on with `unit.rest` later, its deadline unchanged."""
        job = self.ready.running
        assert job is not None and job.unit.rest is not None
        self._resumed = self._slow = True
        self.ready.put_back(job.unit.rest, payload)

    def count_output(self, exit_: Exit) -> None:
        """The running instance has made an output on that exit which its driver holds back."""
        self._made += exit_.one

    def fail(self, start_ns: int, end_ns: int, cause: int, slot: int = 0) -> Job | None:
        """End the running instance as lost and start the next one.

        Of a batch only the job in `slot` is lost: it leaves the batch, `step` ends the others, and None is returned.
        """
        job = self.jobs[slot]
        shed = min(self._surplus.pop(slot, 0), MOST_POLICED)
        batching = self._batching
        made = self._batch_made[slot] if batching else self._made
        self._lose(end_ns, job.unit, job.lineage, cause, start_ns, made, shed)
        if batching:
            self.ready.drop(slot)
            del self._batch_made[slot]
            self._surplus = {each - (each > slot): n for each, n in self._surplus.items()}
            return None
        self._made = 0
        return self.next(end_ns)

    def police(self, at_ns: int, unit: Unit, step: Step, lineages: Sequence[Lineage], slot: int = 0) -> int:
        """An operator of the running instance has made these results of one input: how many of them pass.

        The others, the last ones, are shed. Call it for an operator that gave none, or raised, as well.
        """
        assert step.police is not None
        passed = step.police.passes(len(lineages))
        for lineage in lineages[passed:]:
            self._shed_result(at_ns, unit, lineage, POLICY_SELECTIVITY, step.operator_id, slot)
        return passed

    def judge(self, at_ns: int, unit: Unit, step: Step, lineage: Lineage, slot: int = 0) -> Step | None:
        """An operator of the running instance that is asked about lateness would start now on that tuple: what runs,
        itself or in its place; None: the tuple is shed, as a result of the operator before it."""
        late = step.late
        if late is None or not late.concerns(at_ns, lineage):
            return step
        if late.variant is not None:
            self.ledger.ran_instead(at_ns, unit, step.operator_id, lineage)
            return late.variant
        self._shed_result(at_ns, unit, lineage, POLICY_LATE, late.before, slot)
        return None

    def shed_stale(self, at_ns: int, unit: Unit, step: Step, lineage: Lineage, slot: int = 0) -> None:
        """An operator of the running instance would start on that tuple without a side input that it needs."""
        self._shed_result(at_ns, unit, lineage, POLICY_STALE, step.operator_id, slot)

    def _shed_outdated(self, at_ns: int, exit_: Exit, lineage: Lineage, slot: int) -> None:
        """A result of the running instance that its outputs can have too late only."""
        job = self.ready.running
        assert job is not None
        self._shed_result(at_ns, job.unit, lineage, POLICY_OUTDATED, exit_.operator_id, slot)

    def _shed_result(self, at_ns: int, unit: Unit, lineage: Lineage, policy: int, operator_id: int, slot: int) -> None:
        """What that operator of the running instance gave goes nowhere; the instance's record says how many did."""
        self.ledger.shed(at_ns, unit, lineage, policy, operator_id)
        self._surplus[slot] = self._surplus.get(slot, 0) + 1
        self._slow = True

    def _end_slowly(self, job: Job, start_ns: int, end_ns: int) -> Job | None:
        """The end of a batch, of an instance that is measured or goes on later, or of one of which results were shed.

        Returns what goes on without a decision.
        """
        unit, ready, following = job.unit, self.ready, None
        flags = unit.flags | FLAG if self._resumed else unit.flags
        took_ns, decided_ns = end_ns - self.ended_ns, start_ns - self.ended_ns
        if self._batching:
            jobs, made, missed, slot = ready.batch, self._batch_made, 0, 0
            share_ns = took_ns // max(1, len(jobs))
            for each in jobs:
                missed += self._end_one(each, slot, made[slot], flags, start_ns, end_ns, share_ns)
                slot += 1
            ready.ended(unit, made, missed, end_ns - start_ns, decided_ns)
            unit.runs += slot
            following = ready.goes_on(end_ns)
        else:
            late = self._end_one(job, 0, self._made, flags, start_ns, end_ns, took_ns)
            if self._metered:
                following = ready.ended_alone(unit, self._made, late, start_ns, end_ns, decided_ns)
            unit.runs += 1
        self._made, self._resumed, self._slow = 0, False, self._batching
        if following is not None:
            self.ended_ns = end_ns
        return following

    def _end_one(self, job: Job, slot: int, made: int, flags: int, start_ns: int, end_ns: int, took_ns: int) -> bool:
        """The end of one job. made: its outputs word. took_ns: its share of the time since the last choice. Returns
        whether it is late."""
        unit, surpluses, surplus = job.unit, self._surplus, 0
        due_ns = job.key_ns if self._ruled else job.release_ns + unit.sub_deadline_ns
        decision = start_ns - self.ended_ns
        if surpluses:
            surplus = min(surpluses.pop(slot, 0), MOST_POLICED)
            decision += beside_decision(surplus) if surplus else 0
        self.ledger.ran(flags, unit.id, job.lineage, job.release_ns, start_ns, end_ns, due_ns, decision, made)
        if unit.has_end_hooks:
            self._run_end_hooks(end_ns, job, made, took_ns, removal_of(job.lineage) if surplus else ABSENCE)
        return end_ns > due_ns

    def _choose(self, at_ns: int) -> Job | None:
        """The next instance under a policy that drops or forms batches."""
        ready = self.ready
        if ready.expires:
            for late in ready.expired(at_ns):
                self._drop(at_ns, late, POLICY_LATE)
        if self._batching:
            return self._choose_batch(at_ns)
        job = ready.candidate(at_ns)
        while job is not None:
            policy = ready.judge(job, at_ns)
            if not policy:
                ready.begin(job.unit, job)
                return job
            self._drop(at_ns, job, policy)
            ready.begin(job.unit, None)
            job = ready.candidate(at_ns)
        ready.idle()
        return None

    def _choose_batch(self, at_ns: int) -> Job | None:
        ready = self.ready
        while ready.choose_batch(at_ns):
            if ready.shed:
                for job, policy in ready.shed:
                    self._drop(at_ns, job, policy)
                ready.shed = []  # nothing holds their payloads, which may be all that the node has room for
            first = ready.begin_batch()
            if first is not None:
                self._batch_made = [0] * len(ready.batch)
                return first
        ready.idle()
        return None

    def _drop(self, at_ns: int, job: Job, policy: int) -> None:
        self._shed(at_ns, job.unit, job.lineage, policy)
        self.ready.meter.shed()

    def _run_end_hooks(self, end_ns: int, job: Job, counts: int, took_ns: int, punctuation: Punctuation) -> None:
        """Run the end hooks of a unit, after an instance or for one tuple of a batch. took_ns: its share of the batch.
        punctuation: for the exits on which it gave nothing."""
        unit = job.unit
        if unit.utilisation is not None:
            unit.utilisation.add(took_ns, end_ns, counts, not self._resumed)
        if unit.punctuated_exits and not self._resumed:
            self._forward_behind(end_ns, unit, job.lineage, counts, punctuation)
        if unit.collects is not None:
            unit.collects.report(end_ns)

    # -- what a stream triggers besides units

    def _spread(self, at_ns: int, route: Route, lineage: Lineage, payload: object) -> None:
        for side in route.sides:  # before any release of the same instant
            side.put(payload, lineage[4])
            self.ledger.absorbed(at_ns, route, side, lineage)
        for unit in route.units if not route.stream_shedders else self._past_shedders(at_ns, route, lineage):
            self.release(at_ns, unit, lineage, payload)
        for join, port in route.joins:
            if isinstance(join, FusionHead):
                self._apply_fusion(at_ns, join.unit, join.waiting.arrive(at_ns, port, lineage, payload))
            else:
                self._apply_joins(at_ns, joins.arrive(at_ns, join, port, lineage, payload))
        for peer in route.sends:
            self._commands.send(at_ns, route.loaded, peer, route.stream, lineage, payload)
        for output in route.outputs:
            self.ledger.delivered(at_ns, route, output, lineage)
            self._commands.deliver(at_ns, route.loaded, output, lineage, payload)

    # -- admission control

    def _pass_admission(self, at_ns: int, route: Route, lineage: Lineage, payload: object) -> None:
        """An admitted tuple of a source with an entry."""
        entry = route.admission
        assert entry is not None
        policy = entry.police(at_ns) if entry.only_polices else self._decide(at_ns, entry, route, lineage, payload)
        if policy:
            self._shed_arrival(at_ns, route, lineage, policy)
            return
        if route.delayed_removal is not None:
            self._forward_delayed(at_ns, route)
        self._arrive(at_ns, route, lineage, payload)

    def _decide(self, at_ns: int, entry: SourceControl, route: Route, lineage: Lineage, payload: object) -> int:
        """By which policy the tuple is shed; 0: it goes on. Others may have to go for it."""
        decision = entry.decide(at_ns, payload, self._memory_full)
        policy = decision.policy
        if decision.displaced is not None:
            self._displace(at_ns, route, decision.displaced)
        if decision.makes_room and not self._make_room(at_ns, route):
            policy = POLICY_MEMORY
        if decision.counted:
            entry.settle(self.ready.released + 1, route, lineage, policy)
        return policy

    def _displace(self, at_ns: int, route: Route, displaced: Displaced) -> None:
        """It was begun nowhere: it ends as if it had been shed when it was admitted."""
        passed, jobs = displaced
        for job in jobs:
            self.ready.withdraw(job)
        self._shed_arrival(at_ns, passed.route, passed.lineage, POLICY_RATE)
        if passed.route is not route:  # of the plan before: no survivor comes there any more, and no heartbeat
            self._forward_delayed(at_ns, passed.route)

    def _make_room(self, at_ns: int, route: Route) -> bool:
        """The oldest tuples that are queued for the units of a stream go; False: none is queued."""
        made = False
        for unit in route.units:
            for job in self.ready.take_oldest(unit, TWO):
                self._shed(at_ns, unit, job.lineage, POLICY_MEMORY)
                made = True
        return made

    def _fits_in_queue(self, at_ns: int, unit: Unit, lineage: Lineage, payload: object) -> bool:
        """Whether a job may enter the queue of a unit with a limit; with `front` the oldest go first."""
        gate = unit.gate
        assert gate is not None
        size = JOB_BYTES + size_estimate(payload)
        while not gate.fits(unit.queue, size):
            oldest = self.ready.take_oldest(unit, 1) if gate.front and size <= gate.most_bytes else []
            if not oldest:
                self._shed(at_ns, unit, lineage, POLICY_MEMORY)
                return False
            self._shed(at_ns, unit, oldest[0].lineage, POLICY_MEMORY)
        gate.add(self.ready.released + 1, size)
        return True

    def _shed_arrival(self, at_ns: int, route: Route, lineage: Lineage, policy: int) -> None:
        """A source sent more than it declared, or more than there is room for: its tuple is admitted and goes nowhere.

        No branch gets it, so no join waits for it: only windows get a removal, of a whole run.
        """
        self.ledger.shed_arrival(at_ns, route, lineage, policy)
        if not route.counted:
            return
        if route.delayed_removal is not None and not route.delayed_removal.add(lineage):
            self._forward_delayed(at_ns, route)
        if route.delayed_removal is None:
            route.delayed_removal = DelayedRemoval(lineage)

    def _forward_delayed(self, at_ns: int, route: Route) -> None:
        """Forward the removed range of a source's arrivals, before its next tuple."""
        delayed_removal, route.delayed_removal = route.delayed_removal, None
        if delayed_removal is not None:
            self._forward(at_ns, route, delayed_removal.lineage, Removal(delayed_removal.first, delayed_removal.exact))

    # -- entry shedders

    def _past_shedders(self, at_ns: int, route: Route, lineage: Lineage) -> tuple[Unit, ...]:
        """The units that a tuple enters; at the others it is shed."""
        units = route.units
        for entry in route.stream_shedders:
            if not self._passes(at_ns, entry, lineage):
                units = entry.others(route, units)
        return units

    def _passes(self, at_ns: int, entry: StreamShedder, lineage: Lineage) -> bool:
        self._tick(at_ns, entry.shedder)
        passes, effects = entry.decide(at_ns, lineage)
        self._apply(at_ns, effects)
        return passes

    def _tick(self, at_ns: int, shedder: Shedding) -> None:
        if at_ns >= shedder.due_ns:
            self._apply(at_ns, shedder.tick(at_ns))

    def _forward_at_entry(self, at_ns: int, entry: EntryShedder, source: int) -> None:
        """A heartbeat of a source comes by."""
        self._tick(at_ns, entry.shedder)
        self._apply(at_ns, entry.forward(source))

    def _apply(self, at_ns: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Shed):
                self.ledger.shed(at_ns, effect.unit, effect.lineage, effect.policy)
            elif isinstance(effect, ForwardedRemoval):
                self._forward_removal(at_ns, effect.unit, effect.lineage, effect.punctuation)
            else:
                self.ready.take(effect.unit, effect.lineages)

    # -- joins by lineage

    def _apply_joins(self, at_ns: int, ends: Iterable[JoinEnd]) -> None:
        for unit, entry, complete in ends:
            if complete:
                self._complete_join(at_ns, unit, entry)
            else:
                self._give_up(at_ns, unit, entry)

    def _complete_join(self, at_ns: int, unit: Unit, entry: Waiting) -> None:
        present = [lineage for lineage in entry.lineages if lineage is not None]
        if not present:  # nothing is left to account for
            self._end_without_result(at_ns, unit, entry)
            return
        parent = present[0]
        for lineage in present if entry.absent else present[1:]:
            self.ledger.merged(at_ns, unit, lineage, parent, entry.absent > 0)
        if entry.absent:
            self._end_without_result(at_ns, unit, entry)
        elif unit.join_shedder is None or self._passes(at_ns, unit.join_shedder, merged(present)):
            self.release(at_ns, unit, merged(present), tuple(entry.values))

    def _give_up(self, at_ns: int, unit: Unit, entry: Waiting) -> None:
        if entry.absent & Waiting.FILTERED:
            self._end_without_result(at_ns, unit, entry)
        for lineage in entry.lineages:
            if lineage is not None:
                self._lose(at_ns, unit, lineage, CAUSE_JOIN_EXPIRED)

    def _end_without_result(self, at_ns: int, unit: Unit, entry: Waiting) -> None:
        """A join gives no result. One branch that was filtered is enough for there to be none, though others were shed;
        if not, a result is missing."""
        if unit.punctuated_exits and entry.punctuation is not None:
            filtered = entry.absent & Waiting.FILTERED
            self._forward_behind(
                at_ns, unit, entry.punctuation, 0, ABSENCE if filtered else removal_of(entry.punctuation)
            )

    # -- fusions

    def _apply_fusion(self, at_ns: int, unit: Unit, ends: Iterable[FusionEnd]) -> None:
        """A set that fires goes on under the lineage of its lead; of all others there is nothing behind the unit."""
        for end in ends:
            if isinstance(end, Unfused):
                self.ledger.unfused(at_ns, unit, end.lineage, end.policy)
                self._forward_behind(at_ns, unit, end.lineage, 0, ABSENCE)
                continue
            lead = end.lead if isinstance(end, Fired) else end.held
            for held in end.present if isinstance(end, Fired) else ():
                if held is not lead:
                    self.ledger.merged(at_ns, unit, held.lineage, lead.lineage, absent=False)
                    self._forward_behind(at_ns, unit, held.lineage, 0, ABSENCE)
            if unit.join_shedder is None or self._passes(at_ns, unit.join_shedder, lead.lineage):
                self.release(at_ns, unit, lead.lineage, end.values)

    def _in_flight(self, units: Iterable[Unit], source: int, epoch: int) -> Iterator[int]:
        """Numbers of a source that wait for one of these units, in a queue or to be fused, or run."""
        known = set(units)
        yield from self.ready.in_flight(known, source, epoch)
        for loaded in self.loaded:
            for join in loaded.joins:
                if isinstance(join, FusionHead) and join.unit in known:
                    yield from join.waiting.numbers(source, epoch)

    # -- punctuation, sheds and losses

    def _forward(self, at_ns: int, route: Route, lineage: Lineage, punctuation: Punctuation) -> None:
        """Forward punctuation along a stream to the joins and windows that wait for it."""
        if not route.marked:
            return
        if not route.counted and not isinstance(punctuation, Absence):  # to joins only
            for each in joins.numbers(lineage, punctuation):
                self._forward(at_ns, route, each, ABSENCE)
            return
        if isinstance(punctuation, Progress):
            for entry in route.entry_shedders:
                self._forward_at_entry(at_ns, entry, lineage[0])
        for unit in route.units:
            if unit.collects is not None:
                unit.collects.on_punctuation(at_ns, lineage, punctuation)
                unit.collects.report(at_ns)
            elif unit.inputs == 1 or joins.all_absent(unit, lineage):
                self._forward_behind(at_ns, unit, lineage, 0, punctuation)
        for join, port in route.joins:
            if isinstance(join, FusionHead):  # a tuple comes to it by one way
                self._forward_behind(at_ns, join.unit, lineage, 0, punctuation)
            else:
                self._forward_to_join(at_ns, join, port, lineage, punctuation)
        for peer in route.sends:
            self._commands.send(at_ns, route.loaded, peer, route.stream, lineage, punctuation)

    def _forward_to_join(self, at_ns: int, join: Join, port: int, lineage: Lineage, punctuation: Punctuation) -> None:
        if isinstance(punctuation, Progress):
            self._forward_behind(at_ns, join.unit, lineage, 0, punctuation)
        elif isinstance(punctuation, Removal):
            for each in joins.numbers(lineage, punctuation):
                self._apply_joins(at_ns, joins.arrive(at_ns, join, port, each, GONE))
        else:
            self._apply_joins(at_ns, joins.arrive(at_ns, join, port, lineage, ABSENCE))

    def _forward_behind(self, at_ns: int, unit: Unit, lineage: Lineage, counts: int, punctuation: Punctuation) -> None:
        """Forward punctuation behind a unit, on the exits on which it gave nothing."""
        for exit_ in unit.punctuated_exits:
            if not counts >> (8 * exit_.index) & 0xFF:
                self._forward(at_ns, exit_.route, lineage, punctuation)

    def _forward_removal(self, at_ns: int, unit: Unit, lineage: Lineage, punctuation: Removal, counts: int = 0) -> None:
        """Forward the removal of a tuple, or of a range, that was shed or lost in this unit or at its entry."""
        if unit.collects is not None:
            unit.collects.on_punctuation(at_ns, lineage, punctuation)
            unit.collects.report(at_ns)
        elif unit.punctuated_exits:
            self._forward_behind(at_ns, unit, lineage, counts, punctuation)

    def _shed(self, at_ns: int, unit: Unit, lineage: Lineage, policy: int) -> None:
        """A job that is in no queue any more, or was not let in, does not run."""
        self.ledger.shed(at_ns, unit, lineage, policy)
        self._forward_removal(at_ns, unit, lineage, removal_of(lineage))

    def _lose(
        self, at_ns: int, unit: Unit, lineage: Lineage, cause: int, start_ns: int = 0, counts: int = 0, shed: int = 0
    ) -> None:
        self.ledger.lost(at_ns, unit, lineage, cause, start_ns, counts, shed)
        self._forward_removal(at_ns, unit, lineage, removal_of(lineage), counts)

    # -- windows

    def end_windows(self, at_ns: int, windowed: WindowOperator) -> None:
        """Something has happened to the windows of an operator of a plan that is loaded here."""
        routes = windowed.loaded.source_routes
        for event in self.windows.take(at_ns, windowed):
            self.ledger.window(at_ns, windowed, self.windows.epoch, event)
            for lineage in event.shed:
                self.ledger.shed_window(at_ns, routes[lineage[0]], lineage)
            if event.result is not None:
                lineage, complete = event.result
                self.admit(at_ns, routes[lineage[0]], lineage, complete, 0)


def _alone(exit_: Exit) -> Unit | None:
    """The unit that alone gets what leaves there, where nothing is asked before; None: there is none, or several."""
    route = exit_.route
    return route.units[0] if route.simple and len(route.units) == 1 and not exit_.outdated_ns else None


__all__ = ["Commands", "Engine", "Settings"]
