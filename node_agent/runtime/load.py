"""How much this node holds and how busy it is: the limit on queued payloads, credit for senders, LOAD records."""

from node_agent.link.receiver import grant
from node_agent.runtime.plans import Plans
from node_agent.runtime.shared import Shared
from protos.records import LOAD, NO_REF

EVERY_NS = 1_000_000_000


class Load:
    """Queued bytes are an estimate, jobs times the mean size of what arrived lately: jobs share and outlive payloads,
    so counting each would cost the hot path more than the figure is worth. A result that several units take is one
    object and counts once for each of their jobs: too much rather than too little, and what it counts for goes with
    each job that runs. Links and sinks are counted exactly, each what it holds itself."""

    def __init__(self, shared: Shared, plans: Plans) -> None:
        self.shared, self.plans = shared, plans
        self.busy_ns = self.overhead_ns = 0  # in instances; in draining and writing sockets
        self.held_bytes = 0  # in links and sinks
        self._mean_bytes_16 = 16 * 64  # sixteenths of a byte
        self.next_ns = 0

    def arrived(self, size: int) -> None:
        """A payload of that size came in."""
        self._mean_bytes_16 += size - (self._mean_bytes_16 >> 4)

    @property
    def ready(self) -> int:
        """Queued task instances of all plans."""
        ready = 0
        for lane in self.plans.lanes:
            ready += lane.engine.released - lane.engine.dispatched
        return ready

    @property
    def queue_bytes(self) -> int:
        """Payload bytes that wait for an operator or for a link."""
        ready = self.ready
        return (ready * self._mean_bytes_16 >> 4) + self.held_bytes if ready else self.held_bytes

    @property
    def full(self) -> bool:
        """Sources are refused, peers get no credit."""
        return self.queue_bytes >= self.plans.limit_bytes

    def credit(self, senders: int) -> int:
        """Bytes that one of so many senders may have unacknowledged."""
        return grant(self.plans.limit_bytes - self.queue_bytes, senders)

    def write(self, at_ns: int) -> None:
        """LOAD: once a second, and last of all."""
        facts = self.shared.facts
        facts.write(
            LOAD, 0, NO_REF, 0, 0, 0, at_ns, self.queue_bytes, self.ready, self.busy_ns, self.overhead_ns,
            facts.written_records,
        )  # fmt: skip
        self.next_ns = at_ns + EVERY_NS
