"""Work on plans beside the task instances: cut into slices, so that it never holds the scheduling thread for long.

A slice is taken when nothing is ready. Where something always is, one is taken all the same every `WAIT_NS`: a node
that is never idle must be able to get a plan with less on it. What one step does (an operator's constructor above all)
cannot be cut.
"""

from collections import deque
from collections.abc import Callable

from node_agent.core.incremental import Incremental

SLICE_NS = 100_000  # as long as the sockets are left alone while instances run
WAIT_NS = 20_000_000  # half a percent of a busy node

Work = Incremental[None]


class BackgroundWork:
    """Pieces of work, one after the other in the order in which they came.

    running: whether a plan runs here that it would hold up. `longest_ns`: for how long anything did at most.
    """

    def __init__(self, running: Callable[[], bool], now: Callable[[], int]) -> None:
        self.line: deque[Work] = deque()
        self.due_ns = 0  # when the next slice is to be taken even if instances are ready
        self.longest_ns = 0
        self._running, self._now = running, now

    def add(self, work: Work) -> None:
        """To the end of the line."""
        if not self.line:
            self.due_ns = self._now() + WAIT_NS
        self.line.append(work)

    def at_once(self, work: Work) -> None:
        """What is short by nature, unless something is in line before it."""
        if self.line:
            self.line.append(work)
        else:
            self._take(work, 1 << 62)

    def take(self) -> None:
        """One slice, of what is first in line."""
        if self._take(self.line[0], SLICE_NS):
            self.line.popleft()
        self.due_ns = self._now() + WAIT_NS

    def timed(self, work: Callable[[], bool]) -> None:
        """Do it now; if it says that there was something to do, that kept the thread."""
        began_ns = self._now()
        if work() and self._running():
            self.longest_ns = max(self.longest_ns, self._now() - began_ns)

    def _take(self, work: Work, most_ns: int) -> bool:
        """Whether it has ended."""
        running, began_ns, ended = self._running(), self._now(), False
        spent_ns = 0
        while not ended and spent_ns < most_ns:
            ended = next(work, self) is self
            spent_ns = self._now() - began_ns
        if running:
            self.longest_ns = max(self.longest_ns, spent_ns)
        return ended
