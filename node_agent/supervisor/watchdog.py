"""The hang cell seen from the supervisor: which operator runs too long, and what is written down when it was killed."""

from node_agent.host.trace_ring import Ring, Running
from protos.records import CAUSE_OPERATOR_HUNG, Lost

GRACE_NS = 1_000_000  # the cell is written just before the instance starts


def hung(ring: Ring, at_ns: int) -> Running | None:
    """The running instance if it is beyond its limit."""
    running = ring.running()
    if running is None or at_ns - running.start_ns <= running.hang_ns + GRACE_NS:
        return None
    return running if ring.running() == running else None  # it changed while it was read: it does not hang


def write_hung(ring: Ring, running: Running, at_ns: int) -> bool:
    """Append LOST(operator_hung) to the ring of a runtime that is dead. The ring's reserve is there for it.

    Facts that the runtime had not published are forgotten, as is everything that the instance did: none of it has left
    the node. The record is followed up to its end, so no output of the instance is claimed.
    """
    lost = Lost.make(
        flags=running.flags, unit=running.unit, source=running.source, epoch=running.epoch, seq=running.seq,
        at_ns=at_ns, cause=CAUSE_OPERATOR_HUNG, ordinal=running.ordinal, start_ns=running.start_ns,
    )  # fmt: skip
    return ring.append(lost)
