"""The hang cell seen from the supervisor: which operator runs too long, and what is written down when it was killed."""

from node_agent.ring import CELLS, DATA, Ring
from protos.records import CAUSE_OPERATOR_HUNG, LOST, RECORD, RECORD_BYTES

Running = tuple[int, int, int, int, int, int]  # as Ring.running returns it

WRITTEN, TAKEN = 0, 1
GRACE_NS = 1_000_000  # the cell is written just before the instance starts


def hung(ring: Ring, at_ns: int) -> Running | None:
    """The running instance if it is beyond its limit."""
    running = ring.running()
    if running is None or at_ns - running[0] <= running[1] + GRACE_NS:
        return None
    return running if ring.running() == running else None  # it changed while it was read: it does not hang


def write_hung(ring: Ring, running: Running, at_ns: int) -> bool:
    """Append LOST(operator_hung) to the ring of a runtime that is dead. False where the ring is full.

    Facts that the runtime had not published are forgotten, as is everything that the instance did: none of it has left
    the node. The record is followed up to its end, so no output of the instance is claimed.
    """
    written = ring.cells[WRITTEN]
    if ring.capacity - (written - ring.cells[TAKEN]) < RECORD_BYTES:
        return False
    start_ns, _, unit, source, seq, ordinal = running
    RECORD.pack_into(
        ring.memory, DATA + written % ring.capacity, LOST, unit & 0xFF, unit >> 16, source >> 32, source & 0xFFFF, seq,
        at_ns, CAUSE_OPERATOR_HUNG, ordinal, 0, start_ns, 0,
    )  # fmt: skip
    ring.cells[WRITTEN] = written + RECORD_BYTES
    return True


__all__ = ["CELLS", "hung", "write_hung"]
