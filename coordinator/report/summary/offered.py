"""Offered tuples: admitted and refused tuples of each source, and the share of results that were missed of it.

Refused tuples, and such as policing shed, have no result that could be judged. What would have become of them lies
between all met and all missed, so the share is an interval. Both engines come here with the same counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from coordinator.report.counts import AggregatedCount, Counts
from coordinator.report.facts.completeness import Status
from coordinator.report.facts.plan_view import OUTPUT, PlanView, consumer_parts
from coordinator.report.facts.problems import Fault, Problem
from coordinator.report.facts.windows_view import WindowView
from coordinator.report.missed_share import MEANT, WINDOWS, interval
from coordinator.report.report_document import Missed, Output
from coordinator.report.report_document import Offered as OfferedSource
from protos import records as rec


class Offered:
    """Of one run."""

    def __init__(self, plan: PlanView, counts: Counts) -> None:
        self._plan, self._counts = plan, counts
        self._refused: dict[int, list[tuple[int, AggregatedCount]]] = defaultdict(list)  # by source, with the reason
        for (_, kind, source, reason, _), count in sorted(counts.aggregated.items()):
            if kind == rec.REFUSED:
                self._refused[source].append((reason, count))
        self._most: dict[tuple[int, int], int] = {}  # by stream and source
        self._ends: dict[int, list[int]] = defaultdict(list)  # by output: its streams, under all plans
        for (_, stream), consumers in sorted(plan.consumers.items()):
            for kind, output, _ in map(consumer_parts, consumers):
                if kind == OUTPUT:
                    self._ends[output].append(stream)

    # -- the ledger

    def sources(self) -> dict[str, OfferedSource]:
        """By source that clients feed: tuples offered, admitted, refused by reason, and policed of the admitted."""
        admitted, policed, refused = Counter[str](), Counter[str](), dict[str, Counter[str]]()
        of_source = self._admitted()
        for source, (_, stream) in sorted(self._plan.sources.items()):
            if source in self._plan.windows:
                continue
            name = self._plan.streams.get(stream, f"source {source}")
            admitted[name] += of_source[source]
            policed[name] += self._policed(source)
            reasons = refused.setdefault(name, Counter())
            for reason, count in self._refused.get(source, ()):
                reasons[rec.REASONS[reason] if 0 < reason < len(rec.REASONS) else f"number {reason}"] += count.n
        return {
            name: OfferedSource(n + sum(refused[name].values()), n, dict(refused[name]), policed[name])
            for name, n in admitted.items()
        }

    def problems(self) -> list[Problem]:
        """Contradictions among the REFUSED records, where a trace is whole: a source that nobody feeds there, and
        counts that do not follow one another."""
        sums: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
        for (incarnation, kind, source, _, epoch), count in self._counts.aggregated.items():
            if kind == rec.REFUSED:
                both = sums[incarnation, source, epoch]
                both[0] += count.n
                both[1] = max(both[1], count.extent)
        found = []
        for (incarnation, source, epoch), (n, upto) in sorted(sums.items()):
            trace = self._counts.traces[incarnation]
            node = self._plan.sources.get(source, (-1, 0))[0]
            if node != trace.incarnation.node or source in self._plan.windows:
                found.append(Problem(Fault.REFUSED_NOWHERE, incarnation, source, source, epoch, upto, 0, n))
            elif n != upto and trace.status is not Status.UNKNOWN:
                found.append(Problem(Fault.REFUSED_MISSING, incarnation, source, source, epoch, upto, 0, n))
        return found

    # -- the share that was missed

    def output(self, output: int) -> Missed:
        """Of one output."""
        from coordinator.report.counts import Rank

        def n(*ranks: Rank) -> int:
            return sum(self._counts.results.get((output, rank), 0) for rank in ranks)

        refused, policed = 0, n(Rank.POLICED, Rank.POLICED_UNSURE)
        for source in self._plan.sources:
            results = self._results(source, output)
            if results and source not in self._plan.windows:
                refused += results * self._judged(source)
                policed += (results - 1) * self._policed(source)
        idle = self._counts.idle_met.get(output, 0)
        met = n(Rank.MET) - idle
        between = {
            "refused": refused,
            "policed": policed,
            "shed_before_filter": n(Rank.SHED_UNSURE),
            "lost_before_filter": n(Rank.LOST_UNSURE),
            "undecidable": n(Rank.UNDECIDABLE),
            WINDOWS: min(met, self._windows_touched(output)),
        }
        missed = n(Rank.LATE, Rank.SHED, Rank.LOST)
        return Missed(missed, idle, between, interval(met, missed, between))

    def _admitted(self) -> Mapping[int, int]:
        found: dict[int, int] = defaultdict(int)
        for (_, kind, source, _, _), count in self._counts.aggregated.items():
            if kind == rec.ADMITTED:
                found[source] += count.n
        return found

    def _policed(self, source: int) -> int:
        return self._counts.shed_tuples.get((source, rec.POLICY_ARRIVALS), 0)

    def _judged(self, source: int) -> int:
        """Refused tuples that speak against the run: not those that came when the plan had been told to end."""
        return sum(count.n for reason, count in self._refused.get(source, ()) if reason != rec.REASON_STOPPED)

    def _results(self, source: int, output: int) -> int:
        """The most results that a tuple of a source can have at an output; 0: it triggers none."""
        start = self._plan.sources[source][1]
        return sum(self._of(stream, start) for stream in self._ends.get(output, ()))

    def _of(self, stream: int, start: int) -> int:
        """The most tuples on a stream that come of one on `start`."""
        if stream == start:
            return 1
        key = stream, start
        if key not in self._most:
            self._most[key] = 0  # a stream that goes in a circle ends here
            unit_id, exit_ = self._plan.producer.get(stream, (-1, 0))
            unit = self._plan.units.get(unit_id)
            if unit is not None:
                came = [self._of(each, start) for each in unit.inputs]
                # a join gives one result of a lineage by any branch
                self._most[key] = (max(came) if unit.join else sum(came)) * unit.gives[exit_]
        return self._most[key]

    # -- windows, which are expected by calendar, with or without refusals

    def _windows_touched(self, output: int) -> int:
        """Windows, times their results, that were made without refused tuples which may belong into them."""
        return sum(
            self._results(source, output) * self._touched(view) for source, view in sorted(self._plan.windows.items())
        )

    def _touched(self, view: WindowView) -> int:
        tallies = [
            count
            for feed in view.feeds
            for reason, count in self._refused.get(feed, ())
            if reason != rec.REASON_STOPPED and count.n
        ]
        if not tallies:
            return 0
        of_each = -(-view.length_ns // view.hop_ns) if view.hop_ns > 0 else 1
        most = sum(count.n for count in tallies) * max(1, of_each)
        return min([most, *_on_grid(view, tallies)])


def _on_grid(view: WindowView, tallies: Sequence[AggregatedCount]) -> Iterator[int]:
    """How many windows by time overlap what refused tuples originated in."""
    if view.kind == "time" and view.hop_ns > 0:
        yield sum((count.last_ns - count.first_ns + view.length_ns) // view.hop_ns + 1 for count in tallies)


def summed(outputs: Sequence[Output]) -> Missed:
    """The same of several outputs together."""
    between = {key: sum(each.between[key] for each in outputs) for key in MEANT}
    met, missed = sum(each.met for each in outputs), sum(each.missed for each in outputs)
    idle = sum(each.met_idle for each in outputs)
    return Missed(missed, idle, between, interval(met - idle, missed, between))


__all__ = ["Offered", "summed"]
