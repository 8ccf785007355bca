"""Settles what became of each number of a source, in the order of the numbers, for reports in any order.

A number was admitted and is *present*, or *filtered* on its way, or *removed* (shed, lost, never told of). A number
without a report counts as removed when `wait_ns` has passed since a later one was heard of, or when more than `most`
reports wait for it; its origin is then known by its neighbours only: no less than the watermark, no more than the
instant at which the later number was heard of, since a tuple is older than its admission.

*Late*, so in no window, is what is older than the youngest origin of a lower number by more than the lateness ([S],
completed). Where a removed number may have been that younger one, it is not known whether a tuple is late: it then
counts as removed itself. So what a window gets depends on what was admitted alone, or the window is abandoned.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from node_agent.problems import UnusableValueError

NEVER = -(1 << 62)  # before any instant
SHORTEST_NS = 1_000_000  # between two looks at what is queued
PROGRESS, SINGLE, RANGE = range(3)  # in the order in which reports of one number are settled


@dataclass(slots=True)
class _Report:
    last: int
    least_ns: int
    greatest_ns: int
    exact: bool = False
    passes: bool = False
    payload: object = None


class Sink(Protocol):
    """Receives what was settled of a source, at once and in order."""

    def add(self, sequence: "Sequence", number: int, origin_ns: int, payload: object) -> None:
        """A tuple that is not late."""

    def span(self, sequence: "Sequence", first: int, last: int, least_ns: int, greatest_ns: int) -> None:
        """Numbers first..last are removed; what of them is not late has an origin in least..greatest."""

    def advanced(self, sequence: "Sequence") -> None:
        """The watermark or the next number may have moved."""

    def restarted(self, sequence: "Sequence", least_ns: int, greatest_ns: int) -> None:
        """A new incarnation; what the one before admitted and did not report has an origin in least..greatest."""


class Sequence:
    """One source at one window operator, over its incarnations.

    `lateness_ns` None: nothing is late (windows over numbers). `first`: the number that the next incarnation begins
    with; set anew for one of which it is known, which does not hold for those after it.
    `queued`: the lowest number of an incarnation that is known to be near and will be reported, however long it takes;
    it is not missing. Every report carries the instant at which it came; these instants never decrease. Bounds of a
    report are instants on the clock of the origins, and hold for each of its numbers.
    """

    def __init__(
        self, source: int, sink: Sink, lateness_ns: int | None, wait_ns: int, most: int = 4096, first: int = 0
    ) -> None:
        if wait_ns < 0 or most < 1 or (lateness_ns is not None and lateness_ns < 0):
            raise UnusableValueError(
                "out_of_range", f"lateness {lateness_ns}, wait {wait_ns}, most {most}: below 0, or no room for a report"
            )
        self.source, self.sink, self.lateness_ns = source, sink, lateness_ns
        self.wait_ns, self.most, self.first = wait_ns, most, first
        self._usual_first = first
        self.epoch: int | None = None
        self.next = first  # all numbers below are settled
        self.sure_ns = NEVER  # no number below `next` that is known to be there is younger
        self.possible_ns = NEVER  # nor one that was removed younger than this
        self.progress_ns = NEVER  # what is admitted from now on is not older
        self.late = self.doubtful = self.removed = self.repeated = self.stale = self.settled = 0
        self._heap: list[tuple[int, int, int]] = []  # number, kind, order of the report
        self._reports: dict[int, _Report] = {}  # by order
        self._singles: set[int] = set()  # numbers of them
        self._progress_reports: dict[int, int] = {}  # number to the order of the report that is held
        self._heard: deque[tuple[int, int]] = deque()  # (n, at): numbers below n were admitted by then; both ascend
        self._order = 0
        self.queued: Callable[[int], int | None] | None = None
        self._asks_ns = NEVER  # not asked again before this

    @property
    def watermark_ns(self) -> int:
        """No later tuple of this source that is not late is older."""
        if self.lateness_ns is None or self.sure_ns == NEVER:
            return self.progress_ns
        return max(self.sure_ns - self.lateness_ns, self.progress_ns)

    @property
    def held(self) -> int:
        """Reports that wait for lower numbers, at most `most`."""
        return len(self._heap)

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do; None: nothing is missing."""
        return max(self._heard[0][1] + self.wait_ns, self._asks_ns) if self._heard else None

    def begin(self, epoch: int, number: int) -> None:
        """It is known that this window operator is to have everything from that number on, and nothing before."""
        if self.epoch is not None:
            raise UnusableValueError(
                "given_twice",
                f"source {self.source} has begun already, with incarnation {self.epoch}",
                subject=str(self.source),
            )
        self.epoch, self.next = epoch, number

    def present(self, at_ns: int, epoch: int, number: int, origin_ns: int, payload: object) -> None:
        """A tuple has come."""
        self._single(at_ns, epoch, number, _Report(number, origin_ns, origin_ns, passes=True, payload=payload))

    def filtered(self, at_ns: int, epoch: int, number: int, origin_ns: int) -> None:
        """A tuple did not pass the operators before."""
        self._single(at_ns, epoch, number, _Report(number, origin_ns, origin_ns))

    def lost(self, at_ns: int, epoch: int, first: int, last: int, least_ns: int, greatest_ns: int, exact: bool) -> None:
        """Numbers first..last were removed. exact: some of them has the origin `greatest_ns`, else it is a bound."""
        if last < first or greatest_ns < least_ns:
            raise UnusableValueError(
                "out_of_range", f"numbers {first} to {last} with origins {least_ns} to {greatest_ns}: no range"
            )
        if self._comes(at_ns, epoch):
            if last < self.next:
                self.repeated += 1
            else:
                self._hear(last, at_ns)
                self._hold(first, RANGE, _Report(last, least_ns, greatest_ns, exact))
                self._run(at_ns)

    def progress(self, at_ns: int, epoch: int, next_number: int, origin_ns: int) -> None:
        """A heartbeat: numbers below `next_number` were admitted, and what comes after them is not older than this."""
        if not self._comes(at_ns, epoch):
            return
        if next_number in self._progress_reports:
            held = self._reports[self._progress_reports[next_number]]
            held.least_ns = max(held.least_ns, origin_ns)
            return
        self._hear(next_number, at_ns)
        if next_number > self.next:
            self._progress_reports[next_number] = self._order
        self._hold(next_number, PROGRESS, _Report(next_number, origin_ns, origin_ns))
        self._run(at_ns)

    def expire(self, at_ns: int) -> None:
        """Numbers that were missing for too long are removed."""
        while self._heard and self._heard[0][1] + self.wait_ns <= at_ns and self._asks_ns <= at_ns:
            queued = self.queued(self.epoch) if self.queued is not None and self.epoch is not None else None
            if queued is not None and queued <= self.next:
                self._asks_ns = at_ns + max(self.wait_ns, SHORTEST_NS)
                return
            self._give_up(queued)
            self._settle()

    def _comes(self, at_ns: int, epoch: int) -> bool:
        """Whether a report of this incarnation counts."""
        self.expire(at_ns)
        if epoch == self.epoch:
            return True
        if self.epoch is not None and epoch < self.epoch:
            self.stale += 1
            return False
        while self._heap:
            self._give_up()
            self._settle()
        self.sink.restarted(self, self.watermark_ns, at_ns)
        self.possible_ns = max(self.possible_ns, at_ns)
        self.epoch, self.next, self.first = epoch, self.first, self._usual_first
        return True

    def _single(self, at_ns: int, epoch: int, number: int, report: _Report) -> None:
        if not self._comes(at_ns, epoch):
            return
        if number < self.next or number in self._singles:
            self.repeated += 1
            return
        if number == self.next and not self._heap:  # the usual case
            self._one(number, report)
            self.sink.advanced(self)
            return
        self._hear(number, at_ns)
        self._singles.add(number)
        self._hold(number, SINGLE, report)
        self._run(at_ns)

    def _hear(self, number: int, at_ns: int) -> None:
        heard = self._heard
        if number > self.next and (not heard or heard[-1][0] < number):
            heard.append((number, at_ns))

    def _hold(self, number: int, kind: int, report: _Report) -> None:
        self._reports[self._order] = report
        heappush(self._heap, (number, kind, self._order))
        self._order += 1

    def _run(self, at_ns: int) -> None:
        self._settle()
        while len(self._heap) > self.most:
            self._give_up()
            self._settle()

    def _give_up(self, queued: int | None = None) -> None:
        """On what is missing before the next report that is held, or that is queued. All of it was admitted before one
        higher number was heard of, the first one that was: no report is held between."""
        number = self._heap[0][0] if queued is None else min(self._heap[0][0], queued)
        if number > self.next:
            self._remove(number - 1, self.watermark_ns, self._heard[0][1])

    def _remove(self, last: int, least_ns: int, greatest_ns: int) -> None:
        first, self.next = self.next, last + 1
        self.removed += last + 1 - first
        self.settled += last + 1 - first
        self.possible_ns = max(self.possible_ns, greatest_ns)
        if self.lateness_ns is not None:
            least_ns = max(least_ns, self.watermark_ns)  # what is older is late, and in no window
        if self.lateness_ns is None or least_ns <= greatest_ns:
            self.sink.span(self, first, last, least_ns, greatest_ns)
        self._forget()

    def _forget(self) -> None:
        heard = self._heard
        while heard and heard[0][0] <= self.next:
            heard.popleft()

    def _settle(self) -> None:
        """All reports that wait for no lower number."""
        heap = self._heap
        while heap and heap[0][0] <= self.next:
            number, kind, order = heappop(heap)
            report = self._reports.pop(order)
            if kind == SINGLE:
                self._singles.discard(number)
                if number == self.next:
                    self._one(number, report)
            elif kind == RANGE:
                self._range(report)
            else:
                self._progress_reports.pop(number, None)
                self.progress_ns = max(self.progress_ns, report.least_ns)
            self._forget()
            self.sink.advanced(self)

    def _one(self, number: int, report: _Report) -> None:
        origin_ns, lateness_ns = report.least_ns, self.lateness_ns
        self.next = number + 1
        self.settled += 1
        if lateness_ns is None:
            doubtful = False
        elif origin_ns < self.sure_ns - lateness_ns:
            self.late += 1
            return
        else:  # what breaks a heartbeat's promise may belong to windows that are closed: those still open go
            doubtful = origin_ns < self.possible_ns - lateness_ns or origin_ns < self.progress_ns
        self.sure_ns = max(self.sure_ns, origin_ns)
        self.possible_ns = max(self.possible_ns, origin_ns)
        if doubtful and report.passes:
            self.doubtful += 1
            self.sink.span(self, number, number, origin_ns, origin_ns)
        elif report.passes:
            self.sink.add(self, number, origin_ns, report.payload)

    def _range(self, report: _Report) -> None:
        """As far as no other report is held; the rest of it waits."""
        if report.last < self.next:
            self.repeated += 1
            return
        heap, last = self._heap, report.last
        while heap and heap[0][0] <= self.next:  # the same numbers once more: both bounds hold, the wider one is safe
            number, kind, order = heap[0]
            if kind != RANGE:
                break
            heappop(heap)
            other = self._reports.pop(order)
            self.repeated += 1
            last = max(last, other.last)
            report.least_ns = min(report.least_ns, other.least_ns)
            report.greatest_ns = max(report.greatest_ns, other.greatest_ns)
            report.exact = False
        report.last = last
        if heap and heap[0][0] <= last:
            number = heap[0][0]
            if number > self.next:
                self._remove(number - 1, report.least_ns, report.greatest_ns)
                self.sure_ns = max(self.sure_ns, report.least_ns)  # each of them is at least as young as that
            self._hold(number, RANGE, report)
            return
        self._remove(last, report.least_ns, report.greatest_ns)
        self.sure_ns = max(self.sure_ns, report.greatest_ns if report.exact else report.least_ns)


__all__ = ["NEVER", "Sequence", "Sink"]
