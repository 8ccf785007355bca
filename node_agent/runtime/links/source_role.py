"""An accepted connection of a client that feeds one source: its tuples are admitted or refused, one by one."""

from node_agent.core import plan as core
from node_agent.core.model import Route
from node_agent.core.shedding.memory_limit import REFUSE
from node_agent.core.shedding.refusals import age_refused, too_old
from node_agent.host.trace_ring import Row, peer_key
from node_agent.link.arrived import Arrived, Withheld
from node_agent.link.limits import MOST_PAYLOAD_BYTES, LinkError
from node_agent.link.outcomes import OutcomeLog
from node_agent.link.receiver import Acknowledgement, Receiver
from node_agent.operators.codecs import CodecError
from node_agent.runtime.deployments.deployed_plan import Deployed
from node_agent.runtime.links import hello_refusals
from node_agent.runtime.links.roles import NO_MEMORY, Context, answer, take_large, withheld
from node_agent.runtime.links.socket_connection import Connection
from node_agent.wire import frames
from protos.records import (
    REASON_AGE_UNKNOWN,
    REASON_FULL,
    REASON_FUTURE,
    REASON_OTHER_CODEC,
    REASON_OTHER_PLAN,
    REASON_STOPPED,
    REASON_TOO_LARGE,
    REASON_TOO_OLD,
    REASON_UNREADABLE,
)  # fmt: skip

NOTHING = 0, ""
LOOKED_EVERY = 64  # tuples of a batch, for how many more there is room


class Feed:
    """Where the tuples of a source go under one plan, and what is asked of each: looked up once for all of them."""

    __slots__ = (
        "ages", "codec", "codec_name", "counted", "decode", "deployed", "id", "max_age_ns", "refuses", "route",
        "source", "stamp",
    )  # fmt: skip

    def __init__(self, deployed: Deployed, source: core.Source) -> None:
        self.deployed, self.source, self.id, self.stamp = deployed, source, source.id, deployed.plan.hash
        self.route: Route | None = deployed.loaded.source_routes[source.id]  # None: that plan is gone
        self.codec = deployed.codecs[source.stream]
        self.codec_name, self.decode = self.codec.name, self.codec.decode
        self.counted, self.max_age_ns = source.stream in deployed.counted, source.max_age_ns
        self.refuses = source.on_full == REFUSE  # else the engine decides which tuple goes
        self.ages = deployed.ages[source.id]


class SourceRole:
    """A client that feeds one source."""

    def __init__(
        self, context: Context, connection: Connection, hello: frames.Hello, receiver: Receiver, outcome_log: OutcomeLog
    ) -> None:
        self.context, self.connection, self.receiver, self.outcome_log = context, connection, receiver, outcome_log
        self.name, self.boot, self.key = hello.peer, hello.boot, peer_key(hello.peer)
        self.source_name = hello.peer.partition(":")[2]
        found = context.plans.source(self.source_name)
        if found is None:
            deployed_here = context.plans.by_hash.values()
            why = hello_refusals.source(self.source_name, context.shared.name, deployed_here)
            raise LinkError("source_unknown", why)
        self._found, self._feed = found, Feed(*found)  # where its tuples went last
        self.clock = context.clock_of(hello)
        self.codec_name = codec_name = self._feed.codec_name
        take_large(connection, context, self._why_withheld)
        receiver.resume(outcome_log.resume_after(hello.resume_after))
        outcome_log.on_hello(hello.resume_after)
        granted = receiver.on_hello(self._credit(context.senders))
        codec = self._feed.codec
        connection.write(
            answer(
                context.shared, resume_after=granted.upto, credit_bytes=granted.credit_bytes,
                plan=self._feed.stamp, codec=codec_name,
                most_bytes=min(MOST_PAYLOAD_BYTES, codec.most_bytes + codec.head_bytes),
            )
        )  # fmt: skip

    def on_batch(self, at_ns: int, batch: frames.Batch) -> None:
        """The plan that is committed now stamps them."""
        fresh = self.receiver.on_batch(batch.first, batch.tuples)
        sent_ns = batch.sent_ns
        self.clock.on_batch(at_ns, sent_ns)
        link_seq = batch.first + len(batch.tuples) - len(fresh)
        feed, outcome_log = self._feed_now(), self.outcome_log
        room = left = 0
        for arrived in fresh:
            if not left:
                left, room = LOOKED_EVERY, self.context.backpressure.room()
            left -= 1
            if not outcome_log.knows(link_seq):
                why = self._admit(at_ns, feed, arrived, link_seq, room <= 0, sent_ns)
                room -= 1
                if why:
                    self.context.shared.counters["tuples_refused"] += 1
                    outcome_log.refused(link_seq, why)
            link_seq += 1

    def _feed_now(self) -> Feed | None:
        """Where they go; None: the plan with the source has been stopped."""
        found = self.context.plans.source(self.source_name)
        if found is not None and found is not self._found:
            self._found, self._feed = found, Feed(*found)
        if found is None:
            self._feed.route = None  # it leads to all operators of a plan that is gone
            return None
        return self._feed

    def _admit(self, at_ns: int, feed: Feed | None, arrived: Arrived, link_seq: int, full: bool, sent_ns: int) -> str:
        """Empty, or why not."""
        _, _, _, _, lo_ns, hi_ns = arrived.lineage
        if not self.clock.same:
            lo_ns, hi_ns = self.clock.map(at_ns, lo_ns, hi_ns)
        hi_ns = min(hi_ns, at_ns)
        if feed is None:
            why = f"the plan with source {self.source_name!r} has been stopped"
            return self._refuse(at_ns, lo_ns, hi_ns, REASON_STOPPED, why)
        reason, why = self._against(at_ns, feed, arrived, full, lo_ns, hi_ns)
        if reason:
            return self._refuse(at_ns, lo_ns, hi_ns, reason, why)
        try:
            payload = feed.decode(arrived.payload)
        except CodecError as error:
            reason = REASON_TOO_LARGE if error.code == "too_large" else REASON_UNREADABLE
            return self._refuse(at_ns, lo_ns, hi_ns, reason, str(error))
        context = self.context
        assert feed.route is not None
        context.refusals.pressing = True
        seq = context.admit(feed.route, feed.id, lo_ns, hi_ns, payload, len(arrived.payload), sent_ns)
        self.outcome_log.admitted(link_seq, context.lineage_epoch, seq)
        return ""

    def _against(self, at_ns: int, feed: Feed, arrived: Arrived, full: bool, lo_ns: int, hi_ns: int) -> tuple[int, str]:
        """What the node, the plan or its age has against a tuple: the reason, or 0, and the same in words."""
        if arrived.withheld is not None:
            reason = REASON_FULL if arrived.withheld.code == NO_MEMORY else REASON_TOO_LARGE
            return reason, arrived.withheld.why
        if full and feed.refuses:
            return REASON_FULL, "the node's queues are full"
        if arrived.plan and arrived.plan != feed.stamp:
            return REASON_OTHER_PLAN, "stamped with a plan that is not committed"
        if arrived.absent or feed.codec_name != self.codec_name:
            return REASON_OTHER_CODEC, f"the source now takes {feed.codec_name}: connect again"
        feed.ages.add(at_ns, lo_ns)
        if feed.max_age_ns or lo_ns > at_ns:
            promised_ns = self.context.promised.get(feed.source.name)
            reason = age_refused(feed.source, feed.counted, at_ns, lo_ns, hi_ns, promised_ns)
            return reason, _why(reason, feed.source, at_ns, lo_ns, hi_ns) if reason else ""
        return NOTHING

    def _why_withheld(self, head: Arrived, size: int) -> Withheld | None:
        """Of a large tuple whose payload begins to come."""
        feed = self._feed_now() or self._feed
        return withheld(self.context, feed.codec, size)

    def _refuse(self, at_ns: int, lo_ns: int, hi_ns: int, reason: int, why: str) -> str:
        """Count it. Returns why."""
        feed = self._feed
        self.context.refuse(feed.deployed, feed.source, at_ns, lo_ns, hi_ns, reason)
        return why

    def _credit(self, senders: int) -> int:
        feed = self._feed_now()
        return self.context.backpressure.credit(senders, feed is not None and not feed.refuses)

    def acknowledge(self, drained: bool) -> bool:
        """Outcomes, and the acknowledgement that covers them."""
        if self.context.refusals.held and self.outcome_log.refuses:
            return False
        large_bytes = self.context.backpressure.large_bytes
        due = self.receiver.ack(self._credit(self.context.senders), drained, large_bytes)
        outcomes = self.outcome_log.take()
        while outcomes or due is not None:
            if due is None:
                due = Acknowledgement(self.receiver.last, self._credit(1))
            self.connection.write(frames.encode_outcomes(outcomes, due.upto, due.credit_bytes))
            due, outcomes = None, self.outcome_log.take()
        return True

    def taken_over(self) -> list[Row]:
        """Each with the lineage that it was given."""
        key, boot = self.key, self.boot
        return [(key, boot, link_seq, seq) for link_seq, _, seq, _ in self.outcome_log.promise_admissions()]

    @property
    def promised(self) -> bool:
        """See Role."""
        return self.outcome_log.promised


def _why(reason: int, source: core.Source, at_ns: int, lo_ns: int, hi_ns: int) -> str:
    """What its age has against a tuple, in words."""
    if reason == REASON_FUTURE:
        return "its origin lies in the future"
    if reason == REASON_TOO_OLD:
        return too_old(source, at_ns, lo_ns, hi_ns)
    if reason == REASON_AGE_UNKNOWN:
        return "its age is not known before both clocks have been compared: send it again later"
    return "windows were told under the plan before, which allowed less, that nothing as old as that comes"
