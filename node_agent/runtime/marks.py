"""Marks on the wire: what an absent tuple says of its source's numbers, written and read."""

from node_agent.core.parts import ABSENT, Absent, Quiet, Removed
from node_agent.link.limits import LinkError
from node_agent.link.receiver import Arrived, Lineage
from node_agent.wire import frames

MOST_REMOVED = 1 << 32  # numbers of one mark

Mark = Absent | Removed | Quiet


def encode_mark(lineage: Lineage, stream: int, plan: int, mark: Mark) -> bytes:
    """The Tuple message. plan: its stamp."""
    kind, first = frames.FILTERED, 0
    if isinstance(mark, Removed):
        kind, first = frames.EXACT if mark.exact else frames.REMOVED, mark.first
    elif isinstance(mark, Quiet):
        kind, first = frames.QUIET, mark.first
    return frames.encode_tuple(lineage, stream, plan, b"", absent=True, mark=kind, first=first)


def read_mark(peer: str, arrived: Arrived, counted: frozenset[int], same_clock: bool) -> Mark:
    """What that peer's absent tuple tells. Its interval of origins is mapped as a tuple's is, so both bounds hold here;
    that one number has the greatest origin can only be said on the clock that it was read on.

    counted: the streams on which anything but a filtered tuple may be told. Raises LinkError for other streams, and for
    a range that is too long to be one.
    """
    if arrived.mark == frames.FILTERED:
        return ABSENT
    if arrived.stream not in counted:
        raise LinkError("mark_not_allowed", f"{peer} marks stream {arrived.stream}, which leads to no window")
    if arrived.mark == frames.QUIET:
        return Quiet(arrived.first)
    if arrived.lineage[2] - arrived.first >= MOST_REMOVED:
        raise LinkError("mark_range", f"{peer} says that numbers {arrived.first} to {arrived.lineage[2]} are removed")
    return Removed(arrived.first, arrived.mark == frames.EXACT and same_clock)
