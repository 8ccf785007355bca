"""Windows that should have come and of which no result can come: their operator's node was away, or crashed.

Windows by time have numbers on a grid that is fixed on their node's clock, and empty ones come as well. So between
the last window that one incarnation tells of and the first one of the next incarnation, each number is one that nobody
ever opened. Both engines come here with the same few integers per incarnation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.report.counts import ADMITTED, BEGUN, TOLD, Counts
from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.plan_view import PlanView, Reach
from coordinator.report.facts.windows_view import BY_TIME, WindowView
from protos import records as rec

Range = tuple[int, int]  # numbers, both included


@dataclass
class Missing:
    """Of the windows that one source admits. begun: of `never`, those that were on their way as a node came back.

    unsure: what is not known to be lost, since records are missing; it is in the other figures as well.
    """

    never: int = 0
    never_unsure: int = 0
    begun: int = 0
    unended: int = 0
    unended_unsure: int = 0
    notes: list[str] = field(default_factory=list)


class MissingWindows:
    """Of one run, by the source that would have admitted them."""

    def __init__(self, plan: PlanView, counts: Counts) -> None:
        self._plan, self._counts = plan, counts
        self._reach = Reach(plan, counts.filtering)
        self._found: dict[int, Missing] = defaultdict(Missing)
        named: dict[tuple[int, str], list[WindowView]] = defaultdict(list)
        for view in plan.windows.values():
            named[view.node, view.name].append(view)
        for views in named.values():
            self._unended(views)
            alike: dict[str, list[WindowView]] = defaultdict(list)
            for view in views:
                if view.kind == BY_TIME and view.hop_ns > 0:
                    alike[view.definition].append(view)
            for same in alike.values():
                self._never(same)

    def counted(self, source: int) -> int:
        """Of the windows that this source would have admitted, those that are counted."""
        return self._found[source].never + self._found[source].unended if source in self._found else 0

    def of(self, views: Sequence[WindowView]) -> Missing:
        """The sum over an operator's windows under several plans."""
        found = [self._found[view.source] for view in views if view.source in self._found]
        return Missing(
            never=sum(each.never for each in found),
            never_unsure=sum(each.never_unsure for each in found),
            begun=sum(each.begun for each in found),
            unended=sum(each.unended for each in found),
            unended_unsure=sum(each.unended_unsure for each in found),
            notes=list(dict.fromkeys(note for each in found for note in each.notes)),
        )

    def results(self, output: int) -> tuple[int, int, int]:
        """(lost, lost unless they were filtered, undecidable) results of an output."""
        lost = maybe = unknown = 0
        for source, found in sorted(self._found.items()):
            sure = self._reach.stream(*self._plan.sources[source]).get(output)
            if sure is None:
                continue
            unsure = found.never_unsure + found.unended_unsure
            n = found.never + found.unended - unsure
            unknown += unsure
            lost, maybe = (lost + n, maybe) if sure else (lost, maybe + n)
        return lost, maybe, unknown

    # -- opened, and nothing says how they ended

    def _unended(self, views: Sequence[WindowView]) -> None:
        opened: dict[int, int] = defaultdict(int)
        operators = {operator for view in views for operator in view.operators}
        for (incarnation, kind, ref, state, _), count in self._counts.aggregated.items():
            if kind == rec.WINDOW and ref in operators and state != rec.WINDOW_SKIPPED:
                opened[incarnation] += count.extent if state == rec.WINDOW_OPENED else -count.extent
        for incarnation, n in sorted(opened.items()):
            trace, view = self._counts.traces[incarnation], self._last(incarnation, views)
            if n > 0 and view is not None and trace.status in (Status.CRASHED, Status.DAMAGED):
                lost = trace.status is Status.CRASHED and self._wanted(trace, views)
                found = self._found[view.source]
                found.unended += n
                found.unended_unsure += 0 if lost else n

    def _last(self, incarnation: int, views: Sequence[WindowView]) -> WindowView | None:
        """Under which plan the operator was at last."""
        spans = self._counts.intervals
        told = [(spans[key].last_at_ns, view.source, view) for view in views for key in _keys(incarnation, view)
                if key in spans]  # fmt: skip
        return max(told, key=lambda each: each[:2])[2] if told else None

    def _wanted(self, trace: Trace, views: Sequence[WindowView]) -> bool:
        """Whether an incarnation ended without having been told that no more of these windows are asked for."""
        left = set(trace.scan.epochs.values()) - trace.scan.drained
        return any(view.source >> ID_BITS in left for view in views)

    # -- never opened

    def _never(self, views: Sequence[WindowView]) -> None:
        """views: of one operator on one node, the same under several plans."""
        by_clock: dict[str, list[_Reported]] = defaultdict(list)
        for trace in self._counts.traces:
            told = self._reported(trace, views)
            if told is not None:
                by_clock[trace.incarnation.clock].append(told)
        for rows in by_clock.values():
            rows.sort(key=lambda row: (row.first_at_ns, row.trace.incarnation.number))
            upto = rows[0].last
            for before, after in zip(rows, [*rows[1:], None], strict=True):
                upto = max(upto, before.last)
                if after is not None or len(by_clock) == 1:
                    self._hole(views, before, after, upto + 1)
        if len(by_clock) > 1:
            latest = max(views, key=lambda view: view.source)
            self._found[latest.source].notes.append(
                f"{self._plan.nodes[latest.node]} began anew with another clock (after a reboot?): which windows were "
                "due in between is not known, and none of them is counted"
            )

    def _reported(self, trace: Trace, views: Sequence[WindowView]) -> _Reported | None:
        number, spans = trace.incarnation.number, self._counts.intervals
        told = [spans[number, view.source, TOLD] for view in views if (number, view.source, TOLD) in spans]
        begun = [spans[number, view.source, BEGUN] for view in views if (number, view.source, BEGUN) in spans]
        both = [*told, *begun]
        here = [view for view in views if any(key in spans for key in _keys(number, view))]
        if not here:
            return None
        grid = views[0]
        last = _last_of(grid, max(span.high_ns for span in both))
        on_way = [(_number(grid, span.low_ns), _last_of(grid, span.high_ns)) for span in begun]
        first = _number(grid, min(span.low_ns for span in told)) if told else last + 1
        at = {view.source: min(spans[key].first_at_ns for key in _keys(number, view) if key in spans) for view in here}
        earliest, latest = min(here, key=lambda view: (at[view.source], view.source)), self._last(number, here)
        assert latest is not None
        return _Reported(trace, at[earliest.source], first, last, on_way, earliest, latest)

    def _hole(self, views: Sequence[WindowView], before: _Reported, after: _Reported | None, first: int) -> None:
        """Numbers from `first` up to what the next incarnation tells of; after the last, up to what sources prove."""
        trace = before.trace
        if not self._wanted(trace, views) or (after is not None and not self._between(views, before, after)):
            return
        crashed = trace.status is Status.CRASHED
        if after is not None and crashed:
            ranges = [(first, after.first - 1)]
        elif crashed or (after is not None and trace.status is Status.CLEAN):
            ranges = list(self._proven(before, first, None if after is None else after.first - 1))
        else:
            return
        elsewhere, sure = self._elsewhere(before)
        ranges = _less(ranges, elsewhere)
        n = _size(ranges)
        if n:
            found = self._found[before.latest.source]
            found.never += n
            found.never_unsure += 0 if sure and self._whole(before.latest.node) else n
            begun = after.begun if after is not None else ()
            found.begun += _size([(max(a, c), min(b, d)) for a, b in ranges for c, d in begun])

    def _elsewhere(self, before: _Reported) -> tuple[list[Range], bool]:
        """Windows of the same operator that other nodes tell of, under plans that have it there, so that they are in
        those nodes' books; and whether these are all: not where another clock counted them."""
        mine, clock = before.latest, before.trace.incarnation.clock
        found, sure = list[Range](), True
        for view in self._plan.windows.values():
            if view.node == mine.node or (view.name, view.kind, view.hop_ns) != (mine.name, mine.kind, mine.hop_ns):
                continue
            for trace in self._counts.traces:
                span = self._counts.intervals.get((trace.incarnation.number, view.source, TOLD))
                if span is not None and trace.incarnation.clock == clock:
                    found.append((_number(view, span.low_ns), _last_of(view, span.high_ns)))
                sure &= span is None or trace.incarnation.clock == clock
        return found, sure

    def _between(self, views: Sequence[WindowView], before: _Reported, after: _Reported) -> bool:
        """Whether the operator was in each plan from the one to the other."""
        order = sorted(self._plan.numbers.values(), key=lambda number: (number == 0, number))
        begin, end = (order.index(view.source >> ID_BITS) for view in (before.latest, after.earliest))
        return set(order[begin : end + 1]) <= {view.source >> ID_BITS for view in views}

    def _whole(self, node: int) -> bool:
        """Whether no record of that node can be missing, but for what came after the trace was collected."""
        mine = [trace for trace in self._counts.traces if trace.incarnation.node == node]
        return all(trace.whole or trace.only_open for trace in mine)

    def _proven(self, before: _Reported, first: int, last: int | None) -> Iterator[Range]:
        """Windows during which each source admitted tuples before and after, on the clock of the windows. They would
        have closed, or said why not."""
        view, clock = before.latest, before.trace.incarnation.clock
        each: list[list[Range]] = []
        for feed in view.feeds:
            node = self._plan.sources.get(feed, (-1, 0))[0]
            incarnations = [trace.incarnation for trace in self._counts.traces if trace.incarnation.node == node]
            if last is None and any(incarnation.clock != clock for incarnation in incarnations):
                self._found[view.source].notes.append(
                    f"{self._plan.nodes[view.node]} told of none after it crashed: how many were due until the end is "
                    "not known, since their sources have other clocks, and none of them is counted"
                )
                return
            admitted = [
                self._counts.intervals.get((incarnation.number, feed, ADMITTED))
                for incarnation in incarnations
                if incarnation.clock == clock
            ]
            spans = [(-(-span.low_ns // view.hop_ns), _last_of(view, span.high_ns)) for span in admitted if span]
            each.append(spans)
        ranges = [(first, last if last is not None else max((b for spans in each for _, b in spans), default=first))]
        for spans in each:
            ranges = _both(ranges, spans)
        yield from ranges


class _Reported(NamedTuple):
    """What one incarnation tells of an operator's windows: numbers first..last, without those in `begun`."""

    trace: Trace
    first_at_ns: int
    first: int
    last: int
    begun: Sequence[Range]
    earliest: WindowView
    latest: WindowView


def _keys(incarnation: int, view: WindowView) -> Iterator[tuple[int, int, int]]:
    return ((incarnation, view.source, what) for what in (TOLD, BEGUN))


def _number(view: WindowView, start_ns: int) -> int:
    return start_ns // view.hop_ns


def _last_of(view: WindowView, end_ns: int) -> int:
    """The last window that ends at or before an instant."""
    return (end_ns - view.length_ns) // view.hop_ns


def _size(ranges: Sequence[Range]) -> int:
    return sum(max(0, last - first + 1) for first, last in ranges)


def _less(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """What is in some of the ranges and in none of the others."""
    left = list(ranges)
    for begin, end in others:
        left = [
            part for first, last in left for part in ((first, min(last, begin - 1)), (max(first, end + 1), last))
            if part[0] <= part[1]
        ]  # fmt: skip
    return left


def _both(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """What is in some of the ranges and in some of the others, once each. ranges: apart from each other."""
    apart: list[Range] = []
    for begin, last in sorted(others):
        first = max(begin, apart[-1][1] + 1) if apart else begin
        if first <= last:
            apart.append((first, last))
    met = ((max(a, c), min(b, d)) for a, b in ranges for c, d in apart)
    return [(first, last) for first, last in met if first <= last]


__all__ = ["Missing", "MissingWindows"]
