"""Roles of an accepted connection: a peer node here, or a source (source_role.py), or a sink (sink_role.py)."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import Route
from node_agent.host.trace_ring import Row, peer_key
from node_agent.link.arrived import Arrived, Withheld
from node_agent.link.clock_offset import Offset, PeerClock
from node_agent.link.limits import MOST_PAYLOAD_BYTES, LinkError
from node_agent.link.receiver import Receiver
from node_agent.operators.codecs import Codec, CodecError
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import COMMITTED, PREPARED, Deployed
from node_agent.runtime.deployments.lifecycle import Plans
from node_agent.runtime.links.credit import Backpressure
from node_agent.runtime.links.drained import Arrivals
from node_agent.runtime.links.socket_connection import Connection
from node_agent.wire import frames
from node_agent.wire.punctuation_frames import check_counted, read_punctuation
from protos.records import (
    CAUSE_DECODE,
    CLOCK,
    NO_REF,
    RECEIVED,
)  # fmt: skip

NO_MEMORY = "memory_full"  # why a large tuple is withheld
MOST_CLOCKS = 256  # of peers that are remembered; that of the one that came longest ago is forgotten


class Context:
    """What the roles work with."""

    def __init__(self, shared: Shared, plans: Plans, backpressure: Backpressure) -> None:
        self.shared, self.plans, self.backpressure = shared, plans, backpressure
        self.refusals, self.lineage_epoch = shared.refusals, shared.lineage_epoch
        self.arrivals = Arrivals(backpressure)
        self.seqs: dict[int, int] = {}  # last sequence number by source id, over all plans: lineages must not repeat
        self.promised: dict[str, int] = {}  # by source: heartbeats have said that nothing that comes is older
        self.senders = 0  # connections that are granted credit
        self.clocks: OrderedDict[tuple[str, int], PeerClock] = OrderedDict()  # by peer and boot

    def admit(
        self, route: Route, source: int, lo_ns: int, hi_ns: int, payload: object, size: int, sent_ns: int = 0
    ) -> int:
        """A tuple whose origin lies in that interval enters with this drain, at a route of its source. Returns its
        number."""
        self.seqs[source] = seq = self.seqs.get(source, 0) + 1
        lineage: Lineage = (source, self.lineage_epoch, seq, 0, lo_ns, hi_ns)
        self.arrivals.add(route, True, lineage, payload, size, sent_ns)
        return seq

    def refuse(
        self, deployed: Deployed, source: core.Source, at_ns: int, lo_ns: int, hi_ns: int, reason: int, tuples: int = 1
    ) -> None:
        """Count tuples that do not, for the records and under the plan that they were offered to last."""
        loaded = deployed.loaded
        if loaded in self.plans.by_loaded:
            loaded.source_routes[source.id].refused += tuples
            flags = loaded.flags
        else:
            flags = 0  # of no plan: it came when that one was gone
        self.shared.refusals.add(at_ns, flags, source.id, reason, at_ns - hi_ns, at_ns - lo_ns, tuples)

    def clock_of(self, hello: frames.Hello) -> PeerClock:
        """The clock of the peer that said hello, the one of its earlier connections if it still is that one.

        Raises LinkError where its drift leaves no clock.
        """
        here, at_ns = self.shared.clock, self.shared.now_ns()
        clock = self.clocks.pop((hello.peer, hello.boot), None)
        if clock is None or not clock.speaks_like(hello.clock, hello.drift_ppm):
            try:
                clock = PeerClock(here.domain, here.drift_ppm, hello.clock, hello.drift_ppm, here.steady_since_ns)
            except ValueError as error:
                raise LinkError("hello_fields", str(error)) from None
        clock.met(at_ns, hello.suspensions)
        self.clocks[hello.peer, hello.boot] = clock
        while len(self.clocks) > MOST_CLOCKS:
            self.clocks.popitem(last=False)
        return clock


class Role(Protocol):
    """One connection after its Hello."""

    name: str
    boot: int
    clock: PeerClock

    def on_batch(self, at_ns: int, batch: frames.Batch) -> None:
        """Tuples came."""

    def acknowledge(self, drained: bool) -> bool:
        """After a drain: write what is due. False: what it would say stands in no record yet."""

    def taken_over(self) -> list[Row]:
        """What has to be promised since this was asked last."""

    @property
    def promised(self) -> bool:
        """Whether that is all that an acknowledgement would say now."""


class Entry:
    """Where tuples of one stream of one plan enter: looked up once for those that come one after the other."""

    __slots__ = ("begun", "counted", "decode", "deployed", "index", "loaded", "stamp", "stream")

    def __init__(self, deployed: Deployed, stamp: int, stream: int, index: int) -> None:
        self.deployed, self.stamp, self.stream, self.index = deployed, stamp, stream, index
        self.loaded, self.counted = deployed.loaded, stream in deployed.counted
        self.decode = deployed.codecs[stream].decode
        self.begun = False  # none of them has been taken


class NodeRole:
    """A peer's tuples."""

    def __init__(self, context: Context, connection: Connection, hello: frames.Hello, receiver: Receiver) -> None:
        self.context, self.connection, self.receiver = context, connection, receiver
        self.name, self.boot, self.key = hello.peer, hello.boot, peer_key(hello.peer)
        self.node = hello.peer.partition(":")[2]
        self.clock = context.clock_of(hello)
        self._unknown: list[int] = []  # numbers of this batch whose plan is not here
        self._entry: Entry | None = None  # of the latest tuple of this batch
        self._promised = 0  # link_seq
        take_large(connection, context, self._why_withheld)
        granted = receiver.on_hello(context.backpressure.credit(context.senders))
        self._tell_refused(receiver.refused)
        connection.write(answer(context.shared, resume_after=granted.upto, credit_bytes=granted.credit_bytes))

    def on_batch(self, at_ns: int, batch: frames.Batch) -> None:
        """Each tuple runs under the plan that it is stamped with."""
        fresh = self.receiver.on_batch(batch.first, batch.tuples)
        self.clock.on_batch(at_ns, batch.sent_ns)
        first, sent_ns, tuples = batch.first, batch.sent_ns, batch.tuples
        at = 0
        for arrived in fresh:
            while tuples[at] is not arrived:  # `fresh` is a part of them in the same order
                at += 1
            self._take(at_ns, arrived, first + at, sent_ns)
        self._entry = None  # plans may change until the next one, and go
        if self._unknown:
            self._refuse_unknown()

    def _take(self, at_ns: int, arrived: Arrived, link_seq: int, sent_ns: int) -> None:
        entry = self._entry
        if entry is None or entry.stamp != arrived.plan or entry.stream != arrived.stream:
            entry = self._entry = self._entry_of(arrived, link_seq)
            if entry is None:
                return
        if arrived.withheld is not None:
            self._withhold(arrived.withheld, link_seq)
            return
        context, stream = self.context, entry.stream
        if not entry.begun:
            entry.begun = True
            if entry.deployed.state == PREPARED:
                context.plans.proven(entry.deployed)
            entry.deployed.arrived_ns = at_ns
        lineage = arrived.lineage
        source, epoch, seq, ordinal, lo_ns, hi_ns = lineage
        if not self.clock.same:
            lo_ns, hi_ns = self.clock.map(at_ns, lo_ns, hi_ns)
            lineage = (source, epoch, seq, ordinal, lo_ns, hi_ns)
        if entry.counted:
            check_counted(self.name, at_ns, lineage, stream, entry.deployed.feeders)
        if hi_ns > at_ns:  # nothing is of later than it came
            lineage = (source, epoch, seq, ordinal, min(lo_ns, at_ns), at_ns)
        loaded = entry.loaded
        if arrived.absent:
            punctuation = read_punctuation(self.name, arrived, entry.deployed.counted, self.clock.same)
            if arrived.mark == frames.QUIET and not self.clock.known:
                return  # windows begin, and end, when its instants can be told here: the next one comes soon
            context.arrivals.add(loaded.routes[stream], False, lineage, punctuation, 0)
            return
        context.shared.facts.write(
            RECEIVED, loaded.flags, entry.index, source, epoch, seq, at_ns, link_seq, sent_ns, stream, ordinal
        )
        try:
            payload = entry.decode(arrived.payload)
        except CodecError as error:
            context.shared.note("payloads_undecodable", f"from {self.name}: {error}")
            entry.deployed.engine_slot.engine.lose(at_ns, loaded, stream, lineage, CAUSE_DECODE)
            return
        context.arrivals.add(loaded.routes[stream], False, lineage, payload, len(arrived.payload))

    def _entry_of(self, arrived: Arrived, link_seq: int) -> Entry | None:
        """None: its plan is not here. Raises LinkError where the peer may not send that stream."""
        context, stream = self.context, arrived.stream
        deployed = context.plans.stamped(arrived.plan)
        if deployed is None and arrived.absent:
            context.shared.counters["marks_of_unknown_plan"] += 1
            return None
        if deployed is None:
            message = f"{self.name} sent a tuple of plan {arrived.plan:016x}, which is not here: it was refused"
            context.shared.note("tuples_of_unknown_plan", message)
            self._unknown.append(link_seq)
            return None
        return Entry(deployed, arrived.plan, stream, self._producer(deployed, stream))

    def _why_withheld(self, head: Arrived, size: int) -> Withheld | None:
        """Of a large tuple whose payload begins to come; it is not held where it cannot be of use."""
        deployed = self.context.plans.stamped(head.plan)
        codec = deployed.codecs.get(head.stream) if deployed is not None else None
        if codec is None:
            return Withheld("plan_unknown", f"their plan is not on {self.context.shared.name}")
        return withheld(self.context, codec, size)

    def _withhold(self, withheld: Withheld, link_seq: int) -> None:
        """Told before the acknowledgement that covers it."""
        message = f"{self.name} sent a large tuple that was refused: {withheld.why}"
        self.context.shared.note("tuples_withheld", message)
        for each in self.receiver.refuse([link_seq]):
            self.connection.write(frames.encode_refused(withheld.why, each.start, withheld.code, len(each)))

    def _refuse_unknown(self) -> None:
        """Told before the acknowledgement that covers them, so that the sender writes that it gave them up."""
        unknown, self._unknown = self._unknown, []
        self._tell_refused(self.receiver.refuse(unknown))

    def _tell_refused(self, stretches: Iterable[range]) -> None:
        why = f"their plan is not on {self.context.shared.name}"
        for each in stretches:
            self.connection.write(frames.encode_refused(why, each.start, "plan_unknown", len(each)))

    def _producer(self, deployed: Deployed, stream: int) -> int:
        """The peer's number in that plan, if it may send that stream."""
        index = deployed.producers.get((self.node, stream))
        if index is None:
            raise LinkError("stream_not_allowed", f"{self.name} may not send stream {stream} here")
        return index

    def acknowledge(self, drained: bool) -> bool:
        """Everything that was handed over."""
        load = self.context.backpressure
        due = self.receiver.ack(load.credit(self.context.senders), drained, load.large_bytes)
        if due is not None:
            self.context.shared.facts.ring.acknowledge(self.key, self.boot, due.upto)
            self.connection.write(frames.encode_ack(due.upto, due.credit_bytes))
        return True

    def taken_over(self) -> list[Row]:
        """Acknowledgements of nodes are cumulative."""
        if self.promised:
            return []
        self._promised = self.receiver.last
        return [(self.key, self.boot, self._promised, 0)]

    @property
    def promised(self) -> bool:
        """See Role."""
        return self._promised == self.receiver.last


def take_large(
    connection: Connection, context: Context, why_withheld: Callable[[Arrived, int], Withheld | None]
) -> None:
    """From now on large tuples may come over that connection, in chunks."""
    assembly = connection.reader.assembly
    assembly.most_bytes = MOST_PAYLOAD_BYTES
    assembly.admit, assembly.hold = why_withheld, context.backpressure.hold


def withheld(context: Context, codec: Codec, size: int) -> Withheld | None:
    """Whether a payload of that size is of its stream, and there is memory for it."""
    if size > codec.most_bytes + codec.head_bytes:
        mend = f"the query allows {codec.most_bytes}: declare a larger 'max_size:', or send less"
        return Withheld("too_large", f"{size} bytes of {codec.name}; {mend}")
    if not context.backpressure.takes(size):
        return Withheld(NO_MEMORY, f"the node's queues are full: they have no room for {size} bytes")
    return None


def answer(
    shared: Shared, resume_after: int = 0, credit_bytes: int = 0, plan: int = 0, codec: str = "",
    most_bytes: int = MOST_PAYLOAD_BYTES,
) -> bytes:  # fmt: skip
    """The Hello that answers a Hello. most_bytes: of a payload; a larger one is refused."""
    hello = frames.Hello(
        f"node:{shared.name}", shared.clock.domain, shared.boot, plan, resume_after, shared.clock.drift_ppm,
        credit_bytes, codec, incarnation=shared.incarnation, suspensions=shared.counters["suspensions"],
        most_bytes=most_bytes,
    )  # fmt: skip
    return frames.encode_hello(hello)


def write_clock(context: Context, node: str, at_ns: int, offset: Offset) -> None:
    """CLOCK, under each committed plan's number of that peer; clients have no number."""
    facts = context.shared.facts
    refs = {
        (peer.index, deployed.loaded.flags)
        for deployed in context.plans.by_hash.values()
        if deployed.state == COMMITTED
        for peer in deployed.plan.peers
        if peer.name == node
    }
    for ref, flags in sorted(refs) or [(NO_REF, 0)]:
        facts.write(CLOCK, flags, ref, 0, 0, 0, at_ns, offset.lo_ns, offset.hi_ns, offset.rtt_ns, offset.era)
