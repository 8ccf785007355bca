"""Punctuation on the wire: what an absent tuple says of its source's numbers, written and read."""

from collections.abc import Mapping

from node_agent.core import plan as core
from node_agent.core.punctuation import ABSENCE, Absence, Progress, Removal
from node_agent.link.arrived import Arrived, Lineage
from node_agent.link.limits import LinkError
from node_agent.wire import frames

MOST_REMOVED = 1 << 32  # numbers of one range
MOST_NUMBER = 1 << 46  # of a counted tuple: windows by count add those of incarnations, and records have 63 bits

Punctuation = Absence | Removal | Progress


def encode_punctuation(lineage: Lineage, stream: int, plan: int, punctuation: Punctuation) -> bytes:
    """The Tuple message. plan: its stamp."""
    kind, first = frames.FILTERED, 0
    if isinstance(punctuation, Removal):
        kind, first = frames.EXACT if punctuation.exact else frames.REMOVED, punctuation.first
    elif isinstance(punctuation, Progress):
        kind, first = frames.QUIET, punctuation.first
    return frames.encode_tuple(lineage, stream, plan, b"", absent=True, mark=kind, first=first)


def read_punctuation(peer: str, arrived: Arrived, counted: frozenset[int], same_clock: bool) -> Punctuation:
    """What that peer's absent tuple tells. Its interval of origins is mapped as a tuple's is, so both bounds hold here;
    that one number has the greatest origin can only be said on the clock that it was read on.

    counted: the streams on which anything but a filtered tuple may be told. Raises LinkError for other streams, and for
    a range that is too long to be one.
    """
    if arrived.mark == frames.FILTERED:
        return ABSENCE
    if arrived.stream not in counted:
        raise LinkError("mark_not_allowed", f"{peer} marks stream {arrived.stream}, which leads to no window")
    if arrived.mark == frames.QUIET:
        return Progress(arrived.first)
    if arrived.lineage[2] - arrived.first >= MOST_REMOVED:
        raise LinkError("mark_range", f"{peer} says that numbers {arrived.first} to {arrived.lineage[2]} are removed")
    return Removal(arrived.first, arrived.mark == frames.EXACT and same_clock)


def feeders(plan: core.Plan) -> dict[int, frozenset[int]]:
    """Of streams from peers that lead to windows of this node: which sources come by them. By none of the streams into
    one input comes a source of another input. Of streams that lead to windows elsewhere nothing is known here."""
    makers = {operator.output: operator for operator in plan.operators}
    received = {stream.id for stream in plan.streams if stream.producers}
    found: dict[int, frozenset[int]] = {}
    for operator in plan.operators:
        window = operator.window
        if window is None:
            continue
        for number, stream in enumerate(operator.inputs):
            sources = frozenset(source for source, by in window.feeds if by == number)
            waiting, seen = [stream], set[int]()
            while waiting:
                each = waiting.pop()
                if each not in seen:
                    seen.add(each)
                    if each in received:
                        found[each] = found.get(each, sources) & sources
                    elif each in makers:
                        waiting += makers[each].inputs
    return found


def check_counted(peer: str, at_ns: int, lineage: Lineage, stream: int, feeders: Mapping[int, frozenset[int]]) -> None:
    """A node that may send a stream to windows tells of no source that does not come by it, and nothing of the future:
    windows do not run ahead of the clock. lineage: its origins as they are here. Raises LinkError."""
    source, _, number, _, lo_ns, _ = lineage
    allowed = feeders.get(stream)
    if allowed is not None and source not in allowed:
        raise LinkError("source_not_allowed", f"{peer} tells of source {source} on stream {stream}")
    if lo_ns > at_ns:
        raise LinkError("origin_in_future", f"{peer} tells of an origin {lo_ns - at_ns} ns from now")
    if number >= MOST_NUMBER:
        raise LinkError("number_range", f"{peer} tells of number {number} of source {source}: no source comes so far")
