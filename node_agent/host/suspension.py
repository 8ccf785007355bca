"""Whether the machine was suspended: CLOCK_MONOTONIC_RAW stands still then, and CLOCK_BOOTTIME goes on."""

import time
from collections.abc import Callable
from functools import partial

from node_agent.ports import Suspended

COMPILED = not __file__.endswith(".py")
Clock = Callable[[], int]
LEAST_NS = 10_000_000  # no machine sleeps for less
READINGS = 3  # at first, of which the quickest counts

awake_ns = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)
through_ns = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


class Suspension:
    """Compares the clock that counts suspensions with the one that is slewed alike and does not.

    What lies between them is the time that the machine was suspended so far, up to the time that the readings take.
    """

    __slots__ = ("_awake", "_most_ns", "_now", "_real", "_since_ns", "_through", "steady_since_ns")

    def __init__(self, now: Clock, awake: Clock = awake_ns, through: Clock = through_ns) -> None:
        self._now, self._awake, self._through = now, awake, through
        self._real = awake is awake_ns and through is through_ns
        self._since_ns = now()
        self._most_ns = min(self._between() for _ in range(READINGS))
        self.steady_since_ns = self._since_ns if self._most_ns >= LEAST_NS else None
        """`ports.Clock`: from before this process nothing tells when the machine slept."""

    def _between(self) -> int:
        before_ns = self._awake()
        return self._through() - before_ns

    def look(self) -> Suspended | None:
        """What happened since the last look."""
        if COMPILED and self._real:  # the machine's clocks without Python
            before_ns = clock_ns(CLOCK_MONOTONIC)  # type: ignore[name-defined]  # noqa: F821 - of suspension.pxd
            at_ns = clock_ns(CLOCK_BOOTTIME)  # type: ignore[name-defined]  # noqa: F821
            after_ns = clock_ns(CLOCK_MONOTONIC)  # type: ignore[name-defined]  # noqa: F821
        else:
            before_ns, at_ns, after_ns = self._awake(), self._through(), self._awake()
        since_ns, self._since_ns = self._since_ns, self._now()
        slept_ns = at_ns - after_ns - self._most_ns
        if slept_ns >= LEAST_NS:
            self._most_ns = at_ns - before_ns
            self.steady_since_ns = self._since_ns
            return Suspended(since_ns, self._since_ns, slept_ns)
        self._most_ns = min(self._most_ns, at_ns - before_ns)
        return None
