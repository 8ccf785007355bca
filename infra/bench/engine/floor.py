"""The floor: the least that plain Python must do to run one task instance by deadline and leave a trace of it.

Take the earliest of 100 tuples off a heap, read the clock, call an operator that does nothing, read the clock, pack 64
bytes, put the tuple back with a new deadline. The engine and the runtime are measured as ratios to this loop, in the
same process and run. It must never get slower for the ratio's sake.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from time import monotonic_ns
from typing import Any

from protos.records import RAN, RECORD, RECORD_BYTES

IN_FLIGHT = 100
RING_RECORDS = 4096
DEADLINE_NS = 300_000_000


def no_operation(payload: Any) -> Any:
    """The operator of all per-instance figures."""
    return payload


def floor_ns(instances: int, clock: Callable[[], int] = monotonic_ns) -> float:
    """Nanoseconds per task instance of the bare heap loop."""
    ring = bytearray(RECORD_BYTES * RING_RECORDS)
    pack, end, at = RECORD.pack_into, len(ring), 0
    ready = [(number, number, number, None) for number in range(IN_FLIGHT)]
    number = IN_FLIGHT
    began = monotonic_ns()
    for _ in range(instances):
        deadline, release, _, payload = heappop(ready)
        start = clock()
        result = no_operation(payload)
        finish = clock()
        pack(ring, at, RAN, 0, 1, 1, 0, number, release, start, finish, deadline, 0, 0)
        at += RECORD_BYTES
        if at == end:
            at = 0
        number += 1
        heappush(ready, (finish + DEADLINE_NS, finish, number, result))
    return (monotonic_ns() - began) / instances
