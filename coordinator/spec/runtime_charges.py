"""Charges for the runtime beside the operators, and other assumptions of a bound, stated so that they can be disputed.

They are per node where the cluster file has what `node-agent charges` measured there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from coordinator.errors import MistakeError
from protos.plan.charges import ChargedOverhead, NodeCharges

ASSUMED_NS = 20_000
DRIFT_NS = 1_000_000  # of two clocks against each other from one look at the other to the next, a second later
TICK_NS = 1_000_000  # a runtime looks at its timers so often at most


CHUNK_BYTES = 32 << 10  # of a larger payload, in one frame: other tuples go in between
UNSENT_BYTES = 64 << 10  # that may be written to a link and not be on it yet
UNREAD_BYTES = 256 << 10  # that may have come over a link and not be read yet
READ_BYTES = 64 << 10  # that are read of a connection each time
HEAD_BYTES = 2048  # of a tuple beside its payload
FRAME_SHARE = 16  # a part of these more, for the headers of packets and chunks


def on_wire(max_bytes: int, tuple_bytes: int) -> int:
    """The most bytes that a tuple takes on a link, all headers included. max_bytes: of its payload as declared; 0:
    not, so tuple_bytes."""
    return max(tuple_bytes, max_bytes + HEAD_BYTES + max_bytes // FRAME_SHARE) if max_bytes else tuple_bytes


def chunks(max_bytes: int) -> int:
    """In how many frames such a payload comes at most; 0: it is not large, and comes with others in one."""
    return -(-(max_bytes + HEAD_BYTES) // CHUNK_BYTES) if max_bytes > CHUNK_BYTES else 0


@dataclass(frozen=True)
class RuntimeOverhead:
    """What a plan's bounds charge.

    `decision_ns`, `drain_ns`, `side_ns`: as in NodeCharges, of a node whose own are not in the plan. The runtime's loop
    was measured at about 4 us per instance and a socket read at some 10 us on a desktop machine; 20 us each is the
    order of that with room for a slower one. `per_node`: a plan's own figures of a node go before these.

    `drained`: sockets are drained, and written, at the end of an instance and not before `drain_every_ns` after the
    last time. So a tuple may be stamped, and may leave, one longest instance and that much after it could be. Not so
    in virtual time, where `drained` may be off.

    `tuple_bytes`: the most that a tuple takes on a link with a bandwidth, all headers included, where its stream has no
    `max_size:`; one Ethernet frame is assumed.

    `loading_ns`: the longest stretch of loading another plan; counted only in the bounds of a change, else 0.
    """

    decision_ns: int = ASSUMED_NS
    drain_ns: int = ASSUMED_NS
    side_ns: int = ASSUMED_NS
    drained: bool = True
    drain_every_ns: int = 100_000
    tuple_bytes: int = 1500
    per_node: bool = True
    loading_ns: int = 0

    def __post_init__(self) -> None:
        given = (self.decision_ns, self.drain_ns, self.side_ns, self.drain_every_ns, self.tuple_bytes, self.loading_ns)
        if min(given) < 0:
            raise MistakeError("negative", "charges cannot be negative")

    @classmethod
    def read(cls, written: ChargedOverhead) -> RuntimeOverhead:
        """From plan.json."""
        return cls(**asdict(written))

    def document(self) -> ChargedOverhead:
        """For plan.json."""
        return ChargedOverhead(**asdict(self))

    @property
    def tick_ns(self) -> int:
        """How much later than it should a node may say a heartbeat, beside waiting for an instance."""
        return TICK_NS if self.drained else 0

    @property
    def drift_ns(self) -> int:
        """How far two clocks may move apart unseen."""
        return DRIFT_NS if self.drained else 0

    def on(self, own: NodeCharges | None) -> NodeCharges:
        """Those of a node; `own`: what the plan says of it."""
        if own is not None and self.per_node:
            return own
        return NodeCharges(decision_ns=self.decision_ns, drain_ns=self.drain_ns, side_ns=self.side_ns)

    def said(self, own: NodeCharges | None) -> str:
        """Where a node's charges come from: measured, assumed, or none at all."""
        if not self.per_node:
            return "none"
        return "assumed" if own is None else "measured"


MEASURED = RuntimeOverhead()  # where they are: else assumed
NOTHING = RuntimeOverhead(decision_ns=0, drain_ns=0, side_ns=0, drained=False, drain_every_ns=0, per_node=False)
