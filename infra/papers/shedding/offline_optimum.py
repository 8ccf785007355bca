"""The most windows of a run that any choice of tuples gives exactly and in time: arrivals and costs are known before.

One server takes admitted tuples in the order of their arrival, each for its own cost, and at most `most` wait beside
the one that runs. A window is given if all its tuples are admitted and the last of them is done `latency_ns` after its
end at the latest. The order of arrival is the order of these deadlines, so for the deadlines alone no other order gives
more. Tuples that no given window needs are not admitted: they would only take time and room.

It is a dynamic programme over the windows in order. A label is a state at a window: the tuples of a row of windows up
to the end of this one are admitted, so many windows have been given, and these departures are still to come. A label
is left out where another one has given as many windows and has no departure later, counted from the last one: all that
can follow the first can follow the other. The windows between two of a row that overlap need no tuples of their own, so
a row is extended window by window. A server that is empty has no past, so labels that empty become one.

Where more than `labels` labels remain at a window, those with the same number of given windows become one that has the
earliest of each departure. It is no schedule any more, so the result is an upper bound, and is marked as one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from node_agent.core.windows.allocator import Grid

LABELS = 400  # at a window
NEVER_NS = 1 << 62


@dataclass(frozen=True)
class Workload:
    """Instants of arrival, in order, and what each tuple costs, ns."""

    at_ns: Sequence[int]
    cost_ns: Sequence[int]


@dataclass(frozen=True)
class Constraints:
    """grid: of the windows. latency_ns: after its end a window is of use for so long. most: tuples that wait beside the
    one that runs; None: any number."""

    grid: Grid
    latency_ns: int
    most: int | None = None


@dataclass(frozen=True)
class Optimum:
    """Windows that can be given. exact: a schedule has as many; else no schedule has more."""

    windows: int
    exact: bool


@dataclass(frozen=True, slots=True)
class _Label:
    """given: windows so far. departures: instants at which admitted tuples will be done, in order."""

    given: int
    departures: tuple[int, ...]

    def dominates(self, other: _Label) -> bool:
        mine, its = self.departures, other.departures
        if self.given < other.given or len(mine) > len(its):
            return False
        return all(a <= b for a, b in zip(reversed(mine), reversed(its), strict=False))


class _Front:
    """Labels at a window of which none dominates another."""

    def __init__(self) -> None:
        self.labels: list[_Label] = []

    def add(self, label: _Label) -> None:
        if not any(each.dominates(label) for each in self.labels):
            self.labels = [each for each in self.labels if not label.dominates(each)]
            self.labels.append(label)

    def relax(self) -> None:
        """One label for each number of given windows, with the earliest of each departure."""
        by_given: dict[int, list[tuple[int, ...]]] = {}
        for label in self.labels:
            by_given.setdefault(label.given, []).append(label.departures)
        self.labels = []
        for given, rows in by_given.items():
            shortest = min(map(len, rows))
            ends = [row[len(row) - shortest :] for row in rows]
            self.add(_Label(given, tuple(map(min, zip(*ends, strict=True)))))


class _Search:
    """fronts: for each window, what is possible once its tuples are admitted. empty: for each window, the most windows
    given before it with the server empty as it begins."""

    def __init__(self, workload: Workload, constraints: Constraints, windows: range) -> None:
        self._at_ns, self._cost_ns = workload.at_ns, workload.cost_ns
        self._most = constraints.most
        grid = constraints.grid
        self._due_ns = [grid.end(each) + constraints.latency_ns for each in windows]
        self._low = [bisect_left(self._at_ns, grid.begin(each)) for each in windows]
        self._high = [bisect_left(self._at_ns, grid.end(each)) for each in windows]
        self._fronts = [_Front() for _ in windows]
        self._empty = [0] * (len(windows) + 1)

    def run(self, labels: int) -> Optimum:
        """All windows in order."""
        best, exact = 0, True
        for i, front in enumerate(self._fronts):
            self._empty[i + 1] = max(self._empty[i + 1], self._empty[i])
            self._admit(i, self._low[i], _Label(self._empty[i], ()))
            if len(front.labels) > labels:
                front.relax()
                exact = False
            for label in front.labels:
                best = max(best, label.given)
                self._go_on(i, label)
            front.labels.clear()
        return Optimum(max(best, self._empty[-1]), exact)

    def _go_on(self, i: int, label: _Label) -> None:
        """What may come after window i: the next one, if it overlaps, and each one that does not, until the server is
        empty."""
        high, count = self._high[i], len(self._fronts)
        if i + 1 < count and self._low[i + 1] < high:
            self._admit(i + 1, high, label)
        for j in range(bisect_left(self._low, high, i + 1), count):
            if not label.departures or label.departures[-1] <= self._arrival(self._low[j]):
                self._empty[j] = max(self._empty[j], label.given)
                return
            self._admit(j, self._low[j], label)
        self._empty[count] = max(self._empty[count], label.given)

    def _admit(self, i: int, first: int, before: _Label) -> None:
        """The tuples of window i from `first` on, after that label."""
        pending, high = deque(before.departures), self._high[i]
        free_ns = pending[-1] if pending else 0
        for at_ns, cost_ns in zip(self._at_ns[first:high], self._cost_ns[first:high], strict=True):
            while pending and pending[0] <= at_ns:
                pending.popleft()
            if self._most is not None and len(pending) > self._most:
                return
            free_ns = max(free_ns, at_ns) + cost_ns
            pending.append(free_ns)
        given = not pending or pending[-1] <= self._due_ns[i]
        if not given and first == self._low[i]:
            return  # a row that begins with the next window needs less
        next_ns = self._arrival(high)
        while len(pending) > 1 and (self._most is None or pending[0] <= next_ns):
            pending.popleft()
        self._fronts[i].add(_Label(before.given + given, tuple(pending)))

    def _arrival(self, number: int) -> int:
        return self._at_ns[number] if number < len(self._at_ns) else NEVER_NS


def optimum(workload: Workload, constraints: Constraints, windows: range, labels: int = LABELS) -> Optimum:
    """Of these windows of the grid, which begin and end within the run. labels: where more remain at a window, the
    result is a bound."""
    return _Search(workload, constraints, windows).run(labels)


__all__ = ["Constraints", "Optimum", "Workload", "optimum"]
