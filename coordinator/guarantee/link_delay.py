"""A link's worst delay: latency, and where it has a bandwidth the time to send and to wait for what is sent before.

A large tuple goes in chunks, and one chunk is written each time that a node writes its sockets. Small tuples go before
the next chunk, so they wait for small ones, one chunk and what the kernels of both ends hold. Large ones wait for all
that is sent while the link is busy, where each chunk takes its own time and that until the sockets are written, and
read, again.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.calculus.curves import TooLongError
from coordinator.calculus.demand import Task, UnboundedError, load
from coordinator.calculus.flow import total
from coordinator.calculus.selectivity import ONE
from coordinator.guarantee.streams import Flow
from coordinator.guarantee.system import Link
from coordinator.spec.runtime_charges import (
    CHUNK_BYTES,
    READ_BYTES,
    UNREAD_BYTES,
    UNSENT_BYTES,
    RuntimeOverhead,
    chunks,
    on_wire,
)

NS_BITS = 8 * 10**9
READS_PER_CHUNK = 4  # a chunk costs so many times what a small tuple does to be read, or written: measured


def sending_ns(link: Link, charges: RuntimeOverhead, max_bytes: int = 0) -> int:
    """Of one tuple of the largest size. max_bytes: of its payload, 0: not declared."""
    return _bytes_ns(link, on_wire(max_bytes, charges.tuple_bytes))


def _bytes_ns(link: Link, size: int) -> int:
    return -(-size * NS_BITS // link.bandwidth_bps) if link.bandwidth_bps else 0


def delay_ns(link: Link, flows: Sequence[Flow], charges: RuntimeOverhead, read_ns: int = 0) -> int:
    """Of small tuples. First in, first out: max over t of (all that may come within t, sent one after the other) - t,
    and the latency. flows: small and large ones of its connection. read_ns: until the other end reads its sockets:
    where there are chunks, some may lie there unread.

    Raises UnboundedError where more is sent than the bandwidth carries.
    """
    large = any(chunks(flow.max_bytes) for flow in flows)
    blocked_ns = _bytes_ns(link, on_wire(CHUNK_BYTES + UNSENT_BYTES, charges.tuple_bytes)) if large else 0
    blocked_ns += read_ns * UNREAD_BYTES // READ_BYTES if large else 0
    shared = len(link.shared) > 1  # connections of several cores: which of them waits for which, nobody orders
    waiting = [flow for flow in flows if shared or not chunks(flow.max_bytes)]
    sizes = {flow.max_bytes for flow in waiting}
    tasks = []
    for max_bytes in sorted(sizes):
        curve = total([flow.events for flow in waiting if flow.max_bytes == max_bytes])
        if each_ns := sending_ns(link, charges, max_bytes):
            tasks.append(Task("link", curve, 1, ((each_ns, ONE),)))
    return link.latency_ns + blocked_ns + (_queueing_ns(tasks) if tasks else 0)


def _queueing_ns(tasks: Sequence[Task]) -> int:
    try:
        steps = load(tasks).steps
        found = max(sum(each.at(at, at) for each in steps) - at for one in steps for at in one.times)
    except UnboundedError as error:
        raise UnboundedError("overloaded", str(error).replace("its work takes", "what is sent takes")) from error
    except TooLongError as error:
        raise UnboundedError("busy_period_too_long", str(error)) from error
    return int(-(-found // 1))


def large_delay_ns(link: Link, flows: Sequence[Flow], charges: RuntimeOverhead, pause_ns: int) -> int:
    """Of large tuples, until the last chunk is there; 0: there are none. pause_ns: until the sockets at both ends are
    written and read again. Raises UnboundedError."""
    if not any(chunks(flow.max_bytes) for flow in flows):
        return 0
    tasks = []
    for flow in flows:
        each_ns = sending_ns(link, charges, flow.max_bytes) + chunks(flow.max_bytes) * pause_ns
        if each_ns:
            tasks.append(Task("link", flow.events, 0, ((each_ns, ONE),), chore=True))
    if not tasks:
        return link.latency_ns
    try:
        busy = load(tasks).busy
    except UnboundedError as error:
        raise UnboundedError("overloaded", str(error).replace("its work takes", "what is sent takes")) from error
    return link.latency_ns + int(-(-busy // 1))
