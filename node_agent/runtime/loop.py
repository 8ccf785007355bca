"""The loop: run the instance that the engine chose, drain the sockets between instances, write what that caused.

Order at an instance's end, when a drain is due:

    drain sockets -> arrivals into the engine -> the engine ends the instance and chooses the next one
    -> facts are published -> acknowledgements, tuples to peers and results leave

Nothing leaves the node before the facts that explain it are in the ring, which outlives this process: whenever it is
killed, the records that others can see are those of whole instances.

A tuple that finds the node idle runs before it is acknowledged, which saves it the time of a system call; an instance
that is planned to be long is not waited for. A tuple that was taken over must not be taken again by the next
incarnation, also where it hangs its operator or its acknowledgement is lost with this process. So the acknowledgement
is promised in shared memory, and holds from the instant at which the record is published (Acceptor.promise).

Sockets are polled by time, not per instance: a poll costs about as much as scheduling an instance.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from node_agent.core.model import Job
from node_agent.host.trace_ring import BEAT, STATE, RingFacts
from node_agent.operators.registry import Registry
from node_agent.runtime.background import BackgroundWork
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.cost_meter import CostMeter, Meter
from node_agent.runtime.deployments.deployed_plan import Deployed, EngineSlot
from node_agent.runtime.deployments.heartbeats import Heartbeats
from node_agent.runtime.deployments.lifecycle import Changed, Plans
from node_agent.runtime.links.acceptor import DRAIN_TUPLES, Acceptor
from node_agent.runtime.links.credit import Backpressure
from node_agent.runtime.links.outbox import Outbox
from node_agent.runtime.links.roles import Context
from node_agent.runtime.links.socket_connection import Security
from node_agent.runtime.pulled_sources import PulledSources
from node_agent.runtime.real_time_share import real_time_share
from protos.records import CLOCK, FLAG, NO_REF, STATE_ENDED

DRAIN_EVERY_NS = 100_000
MEASURE_EVERY_NS = 1_000_000
TICK_NS, MOST_TICK_NS = 1_000_000, 20_000_000  # timers are looked at this often at most, and at least
DUE_NS = 3_000_000_000  # after a look at the timers, until the next one at the latest, but for an instance that hangs
LOAD_DUE_NS = 60_000_000_000  # the same, after a slice of work on plans: operators may read models from disk
OVERSLEEP_NS = 1_000_000  # epoll counts whole milliseconds
LONG_NS = 100_000  # an instance that is planned to take so long does not delay acknowledgements


class Pace(NamedTuple):
    """How seldom the loop looks up from instances. drain_every_ns: at sockets, while instances run. tick_ns,
    most_tick_ns: at timers, at most and at least. oversleep_ns: by which a long wait may be too long."""

    drain_every_ns: int = DRAIN_EVERY_NS
    tick_ns: int = TICK_NS
    most_tick_ns: int = MOST_TICK_NS
    oversleep_ns: int = OVERSLEEP_NS


LIVE = Pace()


def secured(shared: Shared, identity: Path | None) -> Security | None:
    """TLS with the identity in that folder, where there is one. Raises TlsError."""
    if identity is None:
        return None
    from node_agent.runtime.links.tls_connection import TlsSecurity  # loads OpenSSL

    return TlsSecurity(shared, identity)


class Runtime:
    """Everything on the scheduling thread. `step` runs what is ready, or waits."""

    def __init__(
        self, shared: Shared, facts: RingFacts, registry: Registry, changed: Changed, security: Security | None = None,
        meter: Meter | None = None, pace: Pace = LIVE,
    ) -> None:  # fmt: skip
        """security: where connections are secured. meter: of what operators cost, where that is not measured. pace: the
        loop's, where looking at sockets and timers costs nothing."""
        self.shared, self.facts, self.security = shared, facts, security
        self._drain_every_ns, self._least_tick_ns, self._most_tick_ns, self._oversleep_ns = pace
        self.meter = meter or CostMeter(shared.clock, registry.checking)
        self.outbox = Outbox(shared, security)
        self.plans = Plans(shared, registry, self.outbox, self.meter, changed)
        self.backpressure = Backpressure(shared, self.plans)
        self.plans.memory_full = self.backpressure.is_full
        self._engine_slots = self.plans.engine_slots
        # Loading plans, while others run.
        self.sliced = BackgroundWork(lambda: self.plans.carries_tuples, shared.now_ns)
        self.context = Context(shared, self.plans, self.backpressure)
        self.heartbeats = Heartbeats(shared, self.plans, self.context.seqs, self.context.promised)
        self.pulled = PulledSources(shared, self.plans, self.context)
        self.plans.on_plans_changed = self._on_plans_changed
        self.acceptor: Acceptor | None = None
        self.requests: list[Callable[[], None]] = []  # what other processes ask: done between instances, not within
        self.stopping = False
        self._flush_due = False
        self._tick_ns = self._ticked_ns = 0  # when timers are to be looked at, and were
        self._measure_ns = 0  # when an instance is to be measured again
        self._skip = self._turn = 0  # how many go before it: all in turn, also where few come after a pause
        self._share = real_time_share(shared.machine, shared.instant())
        self._units = 1
        self._fuses = False  # what has arrived may have brought timers forward

    def attach(self, acceptor: Acceptor) -> None:
        """Serve the data socket."""
        self.acceptor = self.outbox.acceptor = acceptor

    def _on_plans_changed(self) -> None:
        """Plans have changed: heartbeats and sources of the node's own begin, and end."""
        self.heartbeats.look_up()
        self.pulled.look_up()
        self._tick_ns = 0
        self._units = max(1, sum(len(loaded.units) for loaded in self.plans.by_loaded))
        self._fuses = any(loaded.fuses for loaded in self.plans.by_loaded)

    def add_plan(self, deployed: Deployed, routes: tuple[tuple[int, str, str], ...], routed: int = 0) -> str:
        """After a plan was loaded. routed: the epoch of the deployment that the routes are of. Returns why it cannot
        run, or nothing."""
        for engine_slot in self._engine_slots:
            engine_slot.executor.drain = self._drain
            engine_slot.executor.due_ns = 0
        self._tick_ns = 0
        return self.outbox.add(deployed, routes, routed, self.backpressure)

    def run(self) -> None:
        """Until `stopping`."""
        while not self.stopping:
            self.step()

    def end(self) -> None:
        """Last facts: what links and queues still hold, the plans' end, LOAD. Then the ring is closed."""
        at_ns = self.shared.instant()
        self.shared.refusals.write()
        self.facts.publish()
        if self.acceptor is not None:
            self.acceptor.flush(at_ns)
            self.acceptor.close_all()
        for link in self.outbox.links.values():
            link.close(at_ns)
        for deployed in list(self.plans.by_hash.values()):
            self.plans.unload(deployed, self.shared.instant(), STATE_ENDED)
        for link in self.outbox.links.values():
            link.close(self.shared.instant())
        self.backpressure.write(self.shared.instant())
        self.facts.publish()
        self.facts.ring.note_dropped()
        self.facts.ring.cells[STATE] = STATE_ENDED

    def step(self, wait: bool = True) -> bool:
        """Wait if nothing is ready, then run instances until the queues are empty or requests have come.

        False: nothing was, nothing has become ready, and no slice of other work was taken.
        """
        while self.requests:
            self.requests.pop(0)()
        sliced = self.sliced
        if overdue := bool(sliced.line) and self.shared.instant() >= sliced.due_ns:
            self._take_slice()
        chosen = self._next()
        if chosen is None:
            if take := bool(sliced.line) and not overdue:
                self._take_slice()
            self._wait(wait and not sliced.line)
            chosen = None if self.requests else self._next()
            if chosen is None:
                left = self.acceptor is not None and bool(self.acceptor.waiting)
                return take or overdue or left or self._unflushed
        engine_slot, job = chosen
        self._busy(engine_slot, job)
        return True

    @property
    def _unflushed(self) -> bool:
        """Whether large tuples are on their way out: each link and each sink writes a chunk of one at a time."""
        return bool(self.outbox.dirty) or (self.acceptor is not None and self.acceptor.unflushed)

    def _take_slice(self) -> None:
        self.facts.cells[BEAT] = self.shared.instant() + LOAD_DUE_NS
        self.sliced.take()

    # -- choosing

    def _next(self) -> tuple[EngineSlot, Job] | None:
        for engine_slot in self._engine_slots:
            job = engine_slot.parked
            if job is not None:
                engine_slot.parked = None
                engine_slot.engine.resume(self.shared.instant())
                return engine_slot, job
            if engine_slot.engine.most_urgent() is not None:
                job = engine_slot.engine.next(self.shared.instant())
                if job is not None:
                    return engine_slot, job
        return None

    def _park(self, engine_slot: EngineSlot, job: Job | None) -> None:
        """Put the chosen job aside; the other engine slots come first next time."""
        engine_slot.parked = job
        if len(self._engine_slots) > 1:
            self._engine_slots.remove(engine_slot)
            self._engine_slots.append(engine_slot)

    # -- running

    def _busy(self, engine_slot: EngineSlot, job: Job | None) -> None:
        """Until nothing is ready, or something else is to be done."""
        engine, executor, facts, meter = engine_slot.engine, engine_slot.executor, self.facts, self.meter
        began_ns, overhead_ns = engine.ended_ns, self.backpressure.overhead_ns
        executor.due_ns = began_ns + self._drain_every_ns
        emulating = self.plans.emulating
        measured = emulating or began_ns >= self._measure_ns
        while job is not None:
            if measured and (emulating or not self._skip):
                unit, release_ns = job.unit, job.release_ns
                facts.starts(engine.ended_ns, unit.hang_ns, unit.id, unit.flags, job.lineage)
                executor.spend = meter.spend
                meter.start()
                job = executor.run(job)
                unit.record_response_time(engine.ended_ns - release_ns, engine.ended_ns)
                executor.spend = None
                measured, self._measure_ns = emulating, engine.ended_ns + MEASURE_EVERY_NS
                if engine.ended_ns - meter.began_ns < MEASURE_EVERY_NS:
                    self._skip = self._turn = (self._turn + 1) % self._units
            elif engine.simple and not (self._flush_due or measured):
                job = executor.run(job, facts)
            else:
                self._skip -= measured
                unit = job.unit
                facts.starts(engine.ended_ns, unit.hang_ns, unit.id, unit.flags, job.lineage)
                job = executor.run(job)
            if not self._flush_due:
                facts.publish()
            else:
                self._publish_arrivals()
                self._flush()
                at_ns = self.shared.instant()
                if self._share is not None:
                    self._share.busy(at_ns)
                executor.due_ns = at_ns + self._drain_every_ns
                measured = emulating or at_ns >= self._measure_ns
                late = bool(self.sliced.line) and at_ns >= self.sliced.due_ns
                if self.requests or self.stopping or late or len(self._engine_slots) > 1:
                    self._park(engine_slot, job)
                    break
        self.facts.idles()
        self.backpressure.busy_ns += max(0, engine.ended_ns - began_ns - self.backpressure.overhead_ns + overhead_ns)

    def _drain(self, at_ns: int) -> None:
        """Within an instance's end: take in what has arrived."""
        self._flush_due = True
        if self.acceptor is not None:
            self.acceptor.begin_drain()
        self._take_in(self.shared.network.wait(0))
        self.backpressure.overhead_ns += self.shared.instant() - at_ns

    def _flush(self) -> None:
        """Facts are published: let everything leave."""
        self._flush_due = False
        self._look_for_suspension()
        at_ns = self.shared.instant()
        refusals = self.shared.refusals
        refusals.settle(at_ns)
        self.facts.publish()
        self.outbox.flush(at_ns)
        if self.acceptor is not None:
            self.acceptor.flush(at_ns)
        if at_ns >= (self._due_ns() if self._fuses else self._tick_ns):
            self.tick(at_ns)
        if refusals.held:
            self._tick_ns = min(self._tick_ns, refusals.due_ns)
        self.backpressure.overhead_ns += self.shared.instant() - at_ns

    # -- waiting

    def _wait(self, wait: bool) -> None:
        """Nothing is ready: write what is left, sleep until something arrives or is due."""
        self.facts.publish()
        self._flush()
        if self._is_ready():  # of a window that has closed
            return
        wait = wait and not (self.requests or self._unflushed)
        seconds = self._idle_ns() / 1e9 if wait else 0.0
        if self.acceptor is not None:
            self.acceptor.begin_drain()
            if self.acceptor.waiting or self.acceptor.room < DRAIN_TUPLES:
                seconds = 0.0
        share = self._share
        if share is not None and seconds:
            share.waits(self.shared.instant())
        at_ns = self.shared.network.wait(seconds)
        if share is not None and seconds:
            share.idle(at_ns)
        self._take_in(at_ns)
        promised = self._publish_arrivals()
        if self._starts_long() or not promised:
            self._flush()
        else:
            self._flush_due = True

    def _is_ready(self) -> bool:
        for engine_slot in self._engine_slots:  # noqa: SIM110 - a generator costs more
            if engine_slot.engine.most_urgent() is not None:
                return True
        return False

    def _take_in(self, at_ns: int) -> None:
        """What the sockets have brought by then, and what the node makes itself, enters."""
        if at_ns >= self.pulled.due_ns:  # a call in each drain would cost more
            self.pulled.release(at_ns)
        self.context.arrivals.apply(at_ns)

    def _idle_ns(self) -> int:
        """For how long nothing has to be looked at. A tick is not to be overslept: the last stretch is waited for by
        itself."""
        now_ns = self.shared.instant()
        left_ns, tick_ns = self._due_ns() - now_ns, self.pulled.due_ns - now_ns
        if tick_ns < left_ns + self._oversleep_ns:
            left_ns = min(left_ns, tick_ns if tick_ns <= self._oversleep_ns else tick_ns - self._oversleep_ns)
        return max(0, left_ns)

    def _publish_arrivals(self) -> bool:
        """Publish what was drained, with the promise that it is not taken again. False: acknowledge at once."""
        promised = self.acceptor is None or self.acceptor.promise_acknowledgements()
        self.facts.publish()
        return promised

    def _starts_long(self) -> bool:
        """Whether the next instance is planned to take so long that acknowledgements should not wait for its end."""
        for engine_slot in self._engine_slots:
            unit = engine_slot.engine.most_urgent()
            if unit is not None:
                emulate_ns = unit.loaded.plan.emulate_cost_ns
                planned_ns = 0
                for step in unit.chain:
                    planned_ns += max(step.cost_ns, emulate_ns)
                return planned_ns >= LONG_NS
        return True

    def _due_ns(self) -> int:
        """When the timers are to be looked at: what has arrived since they were may have brought that forward."""
        due_ns = self._tick_ns
        for engine_slot in self._engine_slots:
            window_ns = engine_slot.engine.due_ns
            if window_ns is not None and window_ns < due_ns:
                due_ns = window_ns
        self._tick_ns = due_ns = max(due_ns, self._ticked_ns + self._least_tick_ns)
        return due_ns

    def _look_for_suspension(self) -> None:
        """The clock stood still: nothing is known of other clocks any more, nor how long what was under way took. Look
        before anything leaves, so that nobody reads an instant of before with what was known of the clocks then."""
        found = self.shared.clock.suspended()
        if found is None:
            return
        self.facts.write(CLOCK, FLAG, NO_REF, 0, 0, 0, found.until_ns, found.since_ns, found.slept_ns)
        self.shared.note("suspensions", f"the machine was suspended for {found.slept_ns / 1e9:g} s")
        self.outbox.suspended(found.until_ns)
        if self.acceptor is not None:
            self.acceptor.suspended(found.until_ns)

    def tick(self, at_ns: int) -> None:
        """Look at the timers: what is due by then happens, and the next look is planned."""
        self._tick_ns, self._ticked_ns = at_ns + self._most_tick_ns, at_ns
        self.facts.cells[BEAT] = at_ns + DUE_NS
        due_ns = self.outbox.tick(at_ns)
        if self.acceptor is not None:
            self.acceptor.tick(at_ns)
        if self.security is not None:
            self.security.tick(at_ns)
            due_ns = min(due_ns, self.security.due_ns)
        self.heartbeats.send(at_ns)
        for engine_slot in self._engine_slots:
            engine_slot.engine.expire(at_ns)
        self.sliced.timed(lambda: self.plans.unload_drained(at_ns))
        self.backpressure.measure(at_ns)
        if at_ns >= self.backpressure.next_ns:
            self.backpressure.write(at_ns)
            self.plans.count_policed(at_ns)
        self.facts.publish()
        self.outbox.flush(at_ns)
        self._tick_ns = min(due_ns, self.backpressure.next_ns, self.heartbeats.due_ns, self._tick_ns)
        self._due_ns()
