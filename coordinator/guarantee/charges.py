"""What the runtime costs beside the operators, and what else a bound has to assume: stated, so that it can be
disputed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Charges:
    """All in ns of CPU time of the node, whatever its speed, but for the bytes.

    `decision_ns`: choosing and ending one task instance. `drain_ns`: one tuple, or absence mark, read from a socket.
    `side_ns`: one update of a side input of one operator. The runtime's loop was measured at about 4 us per instance
    and a socket read at some 10 us on a desktop machine; 20 us each is the order of that with room for a slower one.

    `drained`: sockets are drained, and written, at the end of an instance and not before `drain_every_ns` after the
    last time. So a tuple may be stamped, and may leave, one longest instance and that much after it could be. Not so
    in virtual time, where `drained` may be off.

    `tuple_bytes`: the most that a tuple takes on a link with a bandwidth, all headers included. A plan does not know
    sizes; one Ethernet frame is assumed.
    """

    decision_ns: int = 20_000
    drain_ns: int = 20_000
    side_ns: int = 20_000
    drained: bool = True
    drain_every_ns: int = 100_000
    tuple_bytes: int = 1500

    def __post_init__(self) -> None:
        given = (self.decision_ns, self.drain_ns, self.side_ns, self.drain_every_ns, self.tuple_bytes)
        if min(given) < 0:
            raise ValueError("charges cannot be negative")


MEASURED = Charges()
NOTHING = Charges(decision_ns=0, drain_ns=0, side_ns=0, drained=False, drain_every_ns=0)
