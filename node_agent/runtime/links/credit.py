"""Backpressure: the limit on queued bytes, credit for senders, and LOAD records."""

from itertools import islice

from node_agent.core.model import Unit
from node_agent.core.shedding.memory_limit import JOB_BYTES, size_estimate
from node_agent.link.receiver import share_credit
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.lifecycle import Plans
from node_agent.runtime.large_payloads import LARGE_BYTES, is_large
from protos.records import COUNTED, FLAG, LOAD, NO_REF, SUM_MASK

EVERY_NS = 1_000_000_000
WEIGH_NS = 10_000_000  # what is queued is looked at so often at most
MEASURE_NS = 100_000_000  # and resident memory
BEYOND = 3  # an eighth beyond the limit is what one drain may bring
FORGET_NS = 60_000_000_000  # with next to nothing queued, half of what was found beyond the estimate is forgotten
WEIGHED_EVERY = 16  # arrivals
WEIGHED_UNITS = 32  # whose queues are looked at in one measurement
SHARE = 16  # parts: a queue of one of them is next to nothing
NOISE_BYTES = 2 << 20  # by which a process grows and shrinks without its queues
SINK_SHARE = 8  # the part of the limit that all sinks together may hold
FIELDS_BYTES = 48  # of a tuple on the wire beside its payload, about
BESIDE_LARGE = 1 << 16  # bytes of credit, for what goes on while a large tuple is under way
LEAST_CREDIT = 1 << 16  # bytes, of a source whose tuples are shed here when the queues are full


class Backpressure:
    """Queued bytes are an estimate: jobs, and results that wait in joins, times the mean of what they occupy, which is
    taken from a part of what arrives and of what is queued. Counting each would cost the hot path more than the figure
    is worth. A result that several units take is one object and counts once for each of their jobs: too much rather
    than too little, and what it counts for goes with each job that runs. Large payloads are counted exactly, each once
    (runtime/large_payloads.py). Links, sinks and bytes that no socket has taken are counted exactly, each what it holds
    itself.

    At any estimate: where the process has grown by more than the limit since next to nothing was queued,
    the queues are taken to hold that, and from then on as much more than the estimate as was found.
    """

    def __init__(self, shared: Shared, plans: Plans) -> None:
        self.shared, self.plans = shared, plans
        self._engine_slots, self._by_loaded = plans.engine_slots, plans.by_loaded
        self.busy_ns = self.overhead_ns = 0  # in instances; in draining and writing sockets
        self.held_bytes = 0  # in links and sinks
        self.sink_bytes = 0  # in sinks
        self.pending = 0  # tuples that are taken in and not yet in a queue
        self.next_ns = 0
        self._encoded_16 = 16 * 64  # sixteenths of a byte: the mean size of what arrives, as it arrives
        self._weight_16 = 16 * 64  # and as it is in memory
        self._queued_weight = 0  # the mean of what is queued, by the latest measurement
        self._left, self._weighed = 1, False  # arrivals until one is weighed; whether any was
        self._more_16 = 16  # sixteenths: times the estimate
        self._weighed_ns = self._measured_ns = self._forgotten_ns = 0
        self._plans: tuple[str, ...] = ()  # that were loaded then
        self._base_bytes = self._peak_bytes = 0  # resident: with next to nothing queued; at most since then
        self._turn = 0

    def arrived(self, size: int, payload: object = None) -> None:
        """A payload of that encoded size came in."""
        if size >= LARGE_BYTES and is_large(payload):
            self.shared.large.add(payload)
            return
        self._encoded_16 += size - (self._encoded_16 >> 4)
        self._left -= 1
        if not self._left:
            self._left, each = WEIGHED_EVERY, size_estimate(payload)
            if self._weighed:
                self._weight_16 += each - (self._weight_16 >> 4)
            else:  # the first one tells more than a guess
                self._encoded_16, self._weight_16, self._weighed = 16 * size, 16 * each, True

    @property
    def ready(self) -> int:
        """Queued task instances of all plans."""
        return self._ready()

    def _ready(self) -> int:
        ready = 0
        for engine_slot in self._engine_slots:
            ready += engine_slot.engine.ready.queued()
        return ready

    def _job_bytes(self) -> int:
        """What one queued job occupies, in the mean."""
        return self._known_bytes() * self._more_16 >> 4

    def _known_bytes(self) -> int:
        return JOB_BYTES + max(self._weight_16 >> 4, self._queued_weight)

    @property
    def queue_bytes(self) -> int:
        """Bytes that wait for an operator, for a partner, or for a link, a sink or a socket."""
        return self._bytes(self._job_bytes())

    def _bytes(self, job_bytes: int) -> int:
        jobs = self._ready() + self.pending
        for loaded in self._by_loaded:
            if loaded.joins:
                jobs += loaded.waiting
        other = self.held_bytes + self.shared.unwritten_bytes + self.shared.large.bytes
        return jobs * job_bytes + other if jobs else other

    @property
    def full(self) -> bool:
        """Sources are refused, or what they send is shed; peers get no credit."""
        return self.queue_bytes >= self.plans.limit_bytes

    def is_full(self) -> bool:
        """`full`, for engines."""
        return self.full

    @property
    def sinks_full(self) -> bool:
        """Slow readers have a part of the memory, and no more."""
        return self.sink_bytes * SINK_SHARE > self.plans.limit_bytes

    def room(self) -> int:
        """How many more tuples may be taken in: one at least, where nothing waits."""
        job_bytes, limit_bytes = self._job_bytes(), self.plans.limit_bytes
        queued = self._bytes(job_bytes)
        return max(0, limit_bytes - queued) // job_bytes if queued else max(1, limit_bytes // job_bytes)

    def credit(self, senders: int, sheds: bool = False) -> int:
        """Encoded bytes that one of so many senders may have unacknowledged. sheds: what is too much of its tuples is
        shed here, so that it is never kept from sending."""
        encoded = FIELDS_BYTES + (self._encoded_16 >> 4)
        most_jobs = max(1, self.plans.limit_bytes // self._job_bytes())
        granted = share_credit(self.room() * encoded, most_jobs * encoded, senders)
        large = self.large_bytes
        if large and (large > self.plans.limit_bytes or self.takes(large)):  # what can never fit is refused as it comes
            granted = max(granted, large + BESIDE_LARGE)
        return max(granted, LEAST_CREDIT) if sheds else granted

    @property
    def large_bytes(self) -> int:
        """What the largest tuple takes that any plan declares; 0: none is larger than a frame."""
        return self.plans.large_bytes

    def takes(self, size: int) -> bool:
        """Whether there is room for a payload of that size."""
        return self.queue_bytes + size <= self.plans.limit_bytes

    def hold(self, change: int) -> None:
        """So many more bytes are held, or fewer, of payloads that have not come whole."""
        self.held_bytes += change

    def measure(self, at_ns: int) -> None:
        """Weigh what is queued, and seldom compare the estimate with what the process has grown by. What operators have
        made of what was let in may be beyond the limit: then it is shed where most is queued."""
        if at_ns - self._weighed_ns < WEIGH_NS:
            return
        self._weighed_ns = at_ns
        weighed = self._weigh_queues()
        if at_ns - self._measured_ns >= MEASURE_NS:
            self._measured_ns = at_ns
            self._compare(at_ns)
        limit = self.plans.limit_bytes
        if self._bytes(self._known_bytes()) > limit + (limit >> BEYOND):  # the process may hold other things
            self._relieve(at_ns, weighed)

    def _relieve(self, at_ns: int, weighed: list[tuple[int, int, Unit]]) -> None:
        for _, each, unit in sorted(weighed, key=lambda entry: entry[0], reverse=True):
            excess = self._bytes(self._known_bytes()) - self.plans.limit_bytes
            if excess <= 0:
                break
            if unit.chain[0].operator_id != unit.spec.operators[0]:
                continue  # it goes on with instances that have begun
            jobs = min(len(unit.queue), -(-excess // (JOB_BYTES + each)))
            engine = self.plans.by_loaded[unit.loaded].engine_slot.engine
            engine.shed_queued(at_ns, unit, jobs)
            self.shared.counters["memory_relieved"] += jobs
            self._weigh_queues()

    def _compare(self, at_ns: int) -> None:
        resident, queued, limit = self.shared.machine.resident_bytes(), self.queue_bytes, self.plans.limit_bytes
        loaded = tuple(self.plans.by_hash)
        if loaded != self._plans:  # operators and models are no queue
            self._plans, self._more_16 = loaded, 16
            self._base_bytes = self._peak_bytes = max(0, resident - queued)
        elif queued * SHARE <= limit:
            self._base_bytes = self._peak_bytes = resident
            if at_ns - self._forgotten_ns >= FORGET_NS:
                self._forgotten_ns, self._more_16 = at_ns, 16 + (self._more_16 - 16 >> 1)
        elif resident > self._peak_bytes:
            self._peak_bytes, growth = resident, resident - self._base_bytes
            if growth >= limit + NOISE_BYTES and limit > queued:
                self._more_16, self._forgotten_ns = -(-self._more_16 * growth // queued), at_ns
                self.shared.note(
                    "memory_beyond_queues",
                    f"the process has grown by {growth >> 20} MiB, its queues hold {queued >> 20} MiB by what is known "
                    f"of their payloads, and may hold {limit >> 20}: they are full",
                )

    def _weigh_queues(self) -> list[tuple[int, int, Unit]]:
        """The mean of what is queued: the oldest and the youngest of a queue, of some units in turn. For each of these
        what it holds, in the mean, and who it is."""
        units: list[Unit] = []
        for deployed in self.plans.by_hash.values():
            units += [unit for unit in deployed.loaded.units if unit.queue]
        if not units:
            self._queued_weight = 0
            return []
        self._turn = (self._turn + WEIGHED_UNITS) % len(units) if len(units) > WEIGHED_UNITS else 0
        found, jobs, weighed = 0, 0, []
        for unit in islice(units, self._turn, self._turn + WEIGHED_UNITS):
            queued, ends = len(unit.queue), (unit.queue[0].payload, unit.queue[-1].payload)
            each = sum(map(size_estimate, ends)) >> 1
            found += (sum(size_estimate(payload) for payload in ends if not is_large(payload)) >> 1) * queued
            jobs += queued
            weighed.append((each * queued, each, unit))
        self._queued_weight = found // jobs
        return weighed

    def write(self, at_ns: int) -> None:
        """LOAD: once a second, and last of all."""
        facts = self.shared.facts
        facts.note_gap()
        facts.write(
            LOAD, FLAG, NO_REF, facts.refused % COUNTED, facts.admitted % COUNTED, facts.latencies_ns & SUM_MASK,
            at_ns, self.queue_bytes, self._ready(), self.busy_ns, self.overhead_ns, facts.written_records,
        )  # fmt: skip
        self.next_ns = at_ns + EVERY_NS
