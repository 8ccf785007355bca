"""What the supervisor watches: the operator that runs too long, by the hang cell, and a process that stands still."""

from node_agent.host.trace_ring import Ring, RunningInstance
from protos.records import CAUSE_OPERATOR_HUNG, Lost

GRACE_NS = 1_000_000  # the cell is written just before the instance starts
SILENT_NS = 2_000_000_000  # beyond the instant at which something was to be heard of
MOST_GAP_NS = 100_000_000  # between two looks, as far as it counts


def hung(ring: Ring, at_ns: int) -> RunningInstance | None:
    """The running instance if it is beyond its limit."""
    running = ring.running_instance()
    if running is None or at_ns - running.start_ns <= running.hang_ns + GRACE_NS:
        return None
    return running if ring.running_instance() == running else None  # it changed while it was read: it does not hang


def write_hung(ring: Ring, running: RunningInstance, at_ns: int) -> bool:
    """Append LOST(operator_hung) to the ring of a runtime that is dead. The ring's reserve is there for it.

    Facts that the runtime had not published are forgotten, as is everything that the instance did: none of it has left
    the node. The record is followed up to its end, so no output of the instance is claimed.
    """
    lost = Lost.make(
        flags=running.flags, unit=running.unit, source=running.source, epoch=running.epoch, seq=running.seq,
        at_ns=at_ns, cause=CAUSE_OPERATOR_HUNG, ordinal=running.ordinal, start_ns=running.start_ns,
    )  # fmt: skip
    return ring.append(lost)


class Silence:
    """For how long something has not been heard of, as far as one could have heard it.

    Only the time in which the supervisor looked counts. Where it did not come to look, since the machine was suspended,
    stopped or overloaded, the others did not come to say anything either.
    """

    def __init__(self) -> None:
        self._looked_ns = self._silent_ns = 0

    def look(self, at_ns: int, due_ns: int) -> bool:
        """due_ns: when it was to be heard of at the latest. Whether that is over, and was at all looks for a while."""
        gap_ns, self._looked_ns = at_ns - self._looked_ns, at_ns
        self._silent_ns = self._silent_ns + min(gap_ns, MOST_GAP_NS) if at_ns > due_ns else 0
        return self._silent_ns > SILENT_NS
