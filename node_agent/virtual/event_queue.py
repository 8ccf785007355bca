"""The event queue of virtual time. Its order is total: instant, class, then the order in which events were made.

At one instant: first plans change, then operators and instances end, then sources admit tuples, then tuples arrive over
links, then nodes take in what has come, and only when all of this is in does a node choose what to run next.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

CHANGED, ENDED, ADMITTED, ARRIVED, TAKEN, DISPATCHED = range(6)

Call = Callable[[int, Any], None]  # instant, argument
Entry = tuple[int, int, int, Call, Any]


class Events:
    """A queue of calls in virtual time."""

    __slots__ = ("_count", "_heap", "now_ns", "stopped")

    def __init__(self, now_ns: int = 0) -> None:
        self._heap: list[Entry] = []
        self._count = 0
        self.now_ns = now_ns
        self.stopped = False  # `run` ends, also where something is left

    def at(self, at_ns: int, kind: int, call: Call, argument: Any = None) -> None:
        """Call `call(at_ns, argument)` at that instant; never before now."""
        assert at_ns >= self.now_ns, "an event in the past"
        self._count += 1
        heappush(self._heap, (at_ns, kind, self._count, call, argument))

    def run(self) -> None:
        """Until nothing is left, or until it is `stopped`."""
        heap = self._heap
        while heap and not self.stopped:
            at_ns, _, _, call, argument = heappop(heap)
            self.now_ns = at_ns
            call(at_ns, argument)

    def skip_to(self, at_ns: int, kind: int) -> bool:
        """It is that instant now, and the turn of that kind. False: something else happens before."""
        heap = self._heap
        if self.stopped or (heap and (heap[0][0] < at_ns or (heap[0][0] == at_ns and heap[0][1] <= kind))):
            return False
        self.now_ns = at_ns
        return True
