"""Witnesses on other nodes of tuples that nodes without records admitted: these are expected, and undecidable.

A source numbers what it admits one after the other, so of any two numbers that records name, all between were admitted
as well. Windows by time are numbered in time: as long as their sources admitted tuples, each was due, and so it was
until the same operator went on elsewhere. Both engines come here with the same few integers per source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from coordinator.report.counts import ADMITTED, TOLD, Came, Counts
from coordinator.report.facts.completeness import Status, Trace, lacking_nodes
from coordinator.report.facts.merged_plans import number_of
from coordinator.report.facts.plan_view import Reach
from coordinator.report.facts.reader import Run
from coordinator.report.facts.windows_view import BY_TIME, WindowView
from coordinator.report.ledger.missing_windows import MissingWindows


def lacking_sources(run: Run, traces: Iterable[Trace]) -> frozenset[int]:
    """The sources, and windows, whose node lacks records."""
    nodes = lacking_nodes(run, traces)
    return frozenset(source for source, (node, _) in run.plan.sources.items() if node in nodes)


class _Fed(NamedTuple):
    """While all sources of some windows admitted tuples: from the first to the last instant, ns of that clock; None:
    their clocks differ, and the instants are good for their difference only."""

    first_ns: int
    last_ns: int
    clock: str | None


class Witnesses:
    """Of one run: the expected results that no record tells of."""

    def __init__(self, run: Run, counts: Counts, missing: MissingWindows) -> None:
        self._run, self._plan, self._counts, self._missing = run, run.plan, counts, missing
        self._reach, self._spans = Reach(self._plan), counts.intervals
        self._numbers: dict[tuple[int, int], int] = {
            key: seen.last - seen.first + 1 for key, seen in counts.seen.items()
        }
        for source in sorted(lacking_sources(run, counts.traces) & set(self._plan.windows)):
            view = self._plan.windows[source]
            if view.kind == BY_TIME and view.hop_ns > 0:
                self._numbers[source, 0] = self._due(view)

    def undecidable(self, output: int) -> int:
        """Results that the output should have had, or not, from what must have been admitted."""
        return sum(self.of(output, source) for source in {source for source, _ in self._numbers})

    def of(self, output: int, source: int) -> int:
        """Those of one source, or of windows."""
        if source not in self._plan.sources or output not in self._reach.stream(*self._plan.sources[source]):
            return 0
        return sum(
            max(0, n - self._counts.known.get((output, *key), 0))
            for key, n in self._numbers.items()
            if key[0] == source
        )

    # -- windows

    def _due(self, view: WindowView) -> int:
        """How many windows were due at least, without those that are counted as missing anyhow."""
        fed, hull = self._fed(view), self._numbers.get((view.source, 0), 0)
        told = [trace for trace in self._counts.traces if (trace.incarnation.number, view.source, TOLD) in self._spans]
        if told:
            hull = max(0, hull - self._missing.counted(view.source))
            end = told[-1]
            if end.status is not Status.UNKNOWN or end.only_open or number_of(view.source) in end.scan.drained:
                return hull
        if fed is None:
            return hull
        came = self._came(view, fed.clock)
        by_calendar = 0 if told else max(0, (fed.last_ns - fed.first_ns - view.length_ns) // view.hop_ns)
        if came is None:
            return max(hull, by_calendar)
        first_ns = came.first_ns - (0 if view.first else view.length_ns)
        last_ns = came.last_ns + (view.length_ns if view.first else 0)
        until_ns = max(fed.last_ns, self._taken_over(view, fed.clock))
        before = 0 if told else max(0, (first_ns - fed.first_ns) // view.hop_ns)
        return max(hull + before + max(0, (until_ns - last_ns) // view.hop_ns), by_calendar)

    def _fed(self, view: WindowView) -> _Fed | None:
        """None: no record of any of their sources."""
        spans: list[tuple[int, int]] = []
        clocks: set[str] = set()
        for feed in view.feeds:
            found = [
                (span, incarnation.clock)
                for incarnation in self._run.incarnations
                if (span := self._spans.get((incarnation.number, feed, ADMITTED)))
            ]
            clocks |= {clock for _, clock in found}
            if len({clock for _, clock in found}) == 1:
                spans.append((min(span.low_ns for span, _ in found), max(span.high_ns for span, _ in found)))
        if not spans:
            return None
        if len(clocks) == 1:
            return _Fed(max(low for low, _ in spans), min(high for _, high in spans), clocks.pop())
        shortest = min(spans, key=lambda span: span[1] - span[0])
        return _Fed(*shortest, None)

    def _came(self, view: WindowView, clock: str | None) -> Came | None:
        """When the first and the last window ended that anybody with that clock tells of."""
        found = [came for (number, source), came in self._counts.came.items() if self._is(number, source, view, clock)]
        found += [
            Came(span.low_ns, span.high_ns)
            for (number, source, about), span in self._spans.items()
            if about == ADMITTED and self._is(number, source, view, clock)
        ]
        if not found:
            return None
        return Came(min(came.first_ns for came in found), max(came.last_ns for came in found))

    def _is(self, number: int, source: int, view: WindowView, clock: str | None) -> bool:
        return source == view.source and self._run.incarnations[number].clock == clock

    def _taken_over(self, view: WindowView, clock: str | None) -> int:
        """The end of the last window before those of the same operator elsewhere, under the next plan that has it."""
        later: dict[int, list[int]] = defaultdict(list)
        for incarnation, source, about in self._spans:
            other = self._plan.windows.get(source)
            same = other is not None and (other.name, other.definition) == (view.name, view.definition)
            if about == TOLD and same and self._run.incarnations[incarnation].clock == clock:
                later[self._order(source)].append(self._spans[incarnation, source, about].low_ns)
        mine = self._order(view.source)
        following = min((order for order in later if order > mine), default=None)
        return 0 if following is None else min(later[following]) + view.length_ns - view.hop_ns

    def _order(self, source: int) -> int:
        """Of its plan in the run; the last one's number is 0."""
        number = number_of(source)
        return number if number else len(self._plan.numbers)


__all__ = ["Witnesses", "lacking_sources"]
