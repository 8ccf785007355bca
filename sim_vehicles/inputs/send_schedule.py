"""Send schedule of one node, in order: a sender takes from it, and a closed loop replaces what lies ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Event, Lock

from sim_vehicles.world.sense import Burst


class SendSchedule:
    """The bursts of one node, in the order in which they leave. For several threads.

    `changed` is set by `replace` and by `wake`. A thread that waits for the next burst's instant then looks again.
    """

    def __init__(self, bursts: Iterable[Burst]) -> None:
        self._ahead = deque(bursts)
        self._taken: list[Burst] = []
        self._lock = Lock()
        self.changed = Event()

    @property
    def reached_ns(self) -> int | None:
        """The instant of the burst that was taken last. None: nothing was."""
        with self._lock:
            return self._taken[-1].at_ns if self._taken else None

    def __len__(self) -> int:
        """How many bursts are ahead."""
        return len(self._ahead)

    def first(self) -> Burst | None:
        """The next burst, still to be taken. None: there are no more."""
        with self._lock:
            self.changed.clear()
            return self._ahead[0] if self._ahead else None

    def take(self, burst: Burst) -> list[Burst]:
        """`burst`, with those of its source and instant that follow it directly, if it still is the next one: they are
        the caller's to send, and nobody else's. Else nothing."""
        taken: list[Burst] = []
        with self._lock:
            if self._ahead and self._ahead[0] is burst:
                while self._ahead and (self._ahead[0].source, self._ahead[0].at_ns) == (burst.source, burst.at_ns):
                    taken.append(self._ahead.popleft())
                self._taken += taken
        return taken

    def replace(self, bursts: Iterable[Burst], after_ns: int) -> int:
        """From now on `bursts` instead of everything ahead that is later than after_ns.

        An instant whose sending has begun is finished as it was, so no burst is lost and none leaves twice. Gives how
        many of `bursts` came too late and differ from what leaves, or left, in their place.
        """
        fresh = list(bursts)
        with self._lock:
            from_ns = max(after_ns, self._taken[-1].at_ns) if self._taken else after_ns
            kept = [burst for burst in self._ahead if burst.at_ns <= from_ns]
            self._ahead = deque([*kept, *(burst for burst in fresh if burst.at_ns > from_ns)])
            before = [burst for burst in [*self._taken, *kept] if burst.at_ns > after_ns]
            self.changed.set()
        return sum(burst.at_ns <= from_ns and burst not in before for burst in fresh)

    def wake(self) -> None:
        """Wakes the thread that waits."""
        self.changed.set()
