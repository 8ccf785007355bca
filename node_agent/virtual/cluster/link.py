"""A link in virtual time: latency, the time that sending takes, order, and the facts of both ends.

One direction of a link. Tuples leave one after the other at the link's bandwidth and arrive in order. The receiver
acknowledges per instant; the acknowledgement takes the latency and no bandwidth. A tuple that is lost is never sent
again: the sender gives up when the last deadline that the stream leads to has passed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.punctuation import PUNCTUATION
from node_agent.virtual import random_draws
from node_agent.virtual.cluster.payloads import payload_bytes
from node_agent.virtual.event_queue import ARRIVED, DISPATCHED, Events
from protos.records import ACKED, GAVE_UP, RECEIVED, SENT

TUPLE_BYTES = 48  # of a tuple on the wire beside its payload, about
NS_BITS = 8 * 1_000_000_000

Receive = Callable[[int, int, int, Lineage, Any], None]  # instant, plan epoch, stream, lineage, payload
Parcel = tuple[
    CompiledPlan, int, int, int, Lineage, Any
]  # the sender's plan, link number, sent_ns, stream, lineage, payload


class Ends(NamedTuple):
    """Who is joined: node numbers, and where each writes its facts."""

    sender: int
    receiver: int
    sender_facts: Facts
    receiver_facts: Facts


class Cable(NamedTuple):
    """What joins them. bandwidth_bps 0: sending takes no time. loss: probability per tuple, drawn by loss_key."""

    latency_ns: int
    bandwidth_bps: int
    loss: float = 0.0
    loss_key: int = 0


class Link:
    """From one node to another; `receive(at_ns, plan_epoch, stream, lineage, payload)` is the other node's.

    Tuples of all plans share it, each stamped with its own. number: of the last tuple that was sent.
    """

    __slots__ = ("_acked_ns", "_busy_until_ns", "_cable", "_ends", "_events", "_receive", "_received", "number")

    def __init__(self, events: Events, ends: Ends, cable: Cable, receive: Receive, number: int = 0) -> None:
        self._events, self._ends, self._cable, self._receive = events, ends, cable, receive
        self.number = number
        self._busy_until_ns = 0
        self._received = number
        self._acked_ns = -1

    def send(self, at_ns: int, loaded: CompiledPlan, stream: int, lineage: Lineage, payload: Any) -> None:
        """Put a tuple or a mark on the link. Marks leave no facts, take no time to send and are not lost."""
        if payload.__class__ in PUNCTUATION:
            arrives_ns = max(at_ns, self._busy_until_ns) + self._cable.latency_ns
            self._events.at(arrives_ns, ARRIVED, self._arrive, (loaded, 0, at_ns, stream, lineage, payload))
            return
        self._busy_until_ns = max(at_ns, self._busy_until_ns) + self._sending_ns(payload)
        arrives_ns = self._busy_until_ns + self._cable.latency_ns
        self.number = number = self.number + 1
        source, epoch, seq, ordinal, origin_ns, _ = lineage
        ends = self._ends
        ends.sender_facts.write(SENT, loaded.flags, ends.receiver, source, epoch, seq, at_ns, number, stream, ordinal)
        parcel = (loaded, number, at_ns, stream, lineage, payload)
        if self._cable.loss and self._is_lost(stream, lineage):
            due_ns = max(arrives_ns, origin_ns + last_ns(loaded, stream))
            self._events.at(due_ns, ARRIVED, self._give_up, parcel)
        else:
            self._events.at(arrives_ns, ARRIVED, self._arrive, parcel)

    def _sending_ns(self, payload: Any) -> int:
        bandwidth_bps = self._cable.bandwidth_bps
        if not bandwidth_bps:
            return 0
        return -(-(TUPLE_BYTES + payload_bytes(payload)) * NS_BITS // bandwidth_bps)

    def _is_lost(self, stream: int, lineage: Lineage) -> bool:
        source, epoch, seq, ordinal, _, _ = lineage
        key = random_draws.key(self._cable.loss_key, self._ends.sender, stream, source, epoch, seq, ordinal)
        return random_draws.uniform(key) < self._cable.loss

    def _arrive(self, at_ns: int, parcel: Parcel) -> None:
        loaded, number, sent_ns, stream, lineage, payload = parcel
        if payload.__class__ not in PUNCTUATION:
            source, epoch, seq, ordinal, _, _ = lineage
            ends = self._ends
            ends.receiver_facts.write(
                RECEIVED, loaded.flags, ends.sender, source, epoch, seq, at_ns, number, sent_ns, stream, ordinal
            )
            self._received = number
            if self._acked_ns != at_ns:
                self._acked_ns = at_ns
                self._events.at(at_ns, DISPATCHED, self._acknowledge, loaded)
        self._receive(at_ns, loaded.plan.epoch, stream, lineage, payload)

    def _acknowledge(self, at_ns: int, loaded: CompiledPlan) -> None:
        self._events.at(at_ns + self._cable.latency_ns, ARRIVED, self._acknowledged, (loaded, self._received))

    def _acknowledged(self, at_ns: int, told: tuple[CompiledPlan, int]) -> None:
        loaded, upto = told
        self._ends.sender_facts.write(ACKED, loaded.flags, self._ends.receiver, 0, 0, 0, at_ns, upto)

    def _give_up(self, at_ns: int, parcel: Parcel) -> None:
        loaded, number, _, stream, (source, epoch, seq, ordinal, _, _), _ = parcel
        ends = self._ends
        ends.sender_facts.write(
            GAVE_UP, loaded.flags, ends.receiver, source, epoch, seq, at_ns, number, stream, ordinal
        )


def last_ns(loaded: CompiledPlan, stream: int) -> int:
    """After its origin, how long a tuple on that stream may still be in time for some output."""
    return next(each.last_ns for each in loaded.plan.streams if each.id == stream)
