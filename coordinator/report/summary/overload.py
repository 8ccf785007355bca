"""Cost of overload, from the sums of `Counts`: windows given of all, tuples shed by policy, operators degraded.

Both engines come here with the same integers. Ratios are exact fractions until the last step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from coordinator.report.counts import AggregatedCount, Counts
from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.plan_view import OutputView, PlanView, Reach
from coordinator.report.facts.windows_view import WindowView
from coordinator.report.ledger.missing_windows import MissingWindows
from coordinator.report.ledger.witnesses import Witnesses
from coordinator.report.report_document import Shed, ShedAtUnit, ShedOfSource, ShedTuples, Windows
from coordinator.report.summary.best_share import window_bound
from protos import records as rec
from protos.records import SHED_POLICIES, WINDOW_CAUSES

NO_CAUSE, STOPPED = 0, WINDOW_CAUSES.index("stopped")


class _About(NamedTuple):
    incarnation: int
    word: int
    cause: int
    summed: AggregatedCount


class Overload:
    """The figures of one run."""

    def __init__(self, plan: PlanView, counts: Counts, missing: MissingWindows, witnesses: Witnesses) -> None:
        self._plan, self._counts, self._missing, self._reach = plan, counts, missing, Reach(plan)
        self._witnesses = witnesses
        self._sums: dict[tuple[int, int], list[_About]] = defaultdict(list)  # (kind, ref)
        for (incarnation, kind, ref, word, cause), count in sorted(counts.aggregated.items()):
            self._sums[kind, ref].append(_About(incarnation, word, cause, count))

    def _of(self, kind: int, ref: int) -> Sequence[_About]:
        return self._sums.get((kind, ref), ())

    def _admitted(self, source: int) -> int:
        return sum(each.summed.n for each in self._of(rec.ADMITTED, source))

    def windows_admitted(self) -> int:
        """Of the admitted: windows, and no client's tuples."""
        return sum(self._admitted(source) for source in self._plan.windows)

    # -- windows

    def only_windows(self, view: OutputView) -> bool:
        """Whether all that leads to an output are windows."""
        leading = {s for s, where in self._plan.sources.items() if view.id in self._reach.stream(*where)}
        return bool(leading) and leading <= set(self._plan.windows)

    def windows(self, view: OutputView) -> dict[str, Windows]:
        """By window operator that leads to an output: what became of its windows there, its load, and f*."""
        found: dict[str, list[WindowView]] = defaultdict(list)  # several plans of a run may have the operator
        for source, each in self._plan.windows.items():
            if view.id in self._reach.stream(*self._plan.sources[source]):
                found[each.name].append(each)
        return {name: self._windows(view, found[name]) for name in sorted(found)}

    def _windows(self, view: OutputView, views: Sequence[WindowView]) -> Windows:
        outcomes = _WindowOutcomes(self._counts.traces)
        for operator in dict.fromkeys(operator for w in views for operator in w.operators):
            for each in self._of(rec.WINDOW, operator):
                outcomes.add(each)
        idle = sum(self._counts.idle.get(w.source, 0) for w in views)
        admitted = sum(self._admitted(w.source) for w in views) - idle
        answers = [self._counts.window_answers.get((view.id, w.source), (0, 0)) for w in views]
        on_time = sum(met for _, met in answers)
        answered = sum(answered for answered, _ in answers)
        filtered = max(0, admitted - answered)
        ended = outcomes.given - idle + sum(outcomes.abandoned.values()) + outcomes.skipped
        missing = self._missing.of(views)
        unknown = sum(self._witnesses.of(view.id, w.source) for w in views)
        every = max(admitted, ended, answered) + outcomes.unended + missing.never + unknown
        load = self.load(views)
        best, why = window_bound(views[0], load, view.deadline_ns)
        return Windows(
            all=every,
            given=outcomes.given - idle,
            on_time=on_time,
            filtered=filtered,
            abandoned=outcomes.abandoned,
            skipped=outcomes.skipped,
            unended=outcomes.unended,
            never_opened=missing.never,
            unknown=unknown,
            idle=idle,
            opened=outcomes.opened,
            cut_off=outcomes.cut_off - missing.begun,
            share=(on_time + filtered) / every if every else None,
            load=None if load is None else float(load),
            long_run_share=None if best is None else float(best),
            long_run_share_why=why,
            not_counted=tuple(missing.notes),
        )

    def load(self, views: Sequence[WindowView]) -> Fraction | None:
        """How busy the tuples of these windows would keep their node: running per tuple that was let in at the entry,
        all the way, times tuples per time that came there. None: fewer than two came, or none ran."""
        came = span_ns = ran = busy_ns = 0
        for view in views:
            for at_entry in self._at_entry(view.path[0]).values() if view.path else ():
                came += sum(count.n for count in at_entry) - 1
                span_ns += max(count.last_ns for count in at_entry) - min(count.first_ns for count in at_entry)
            ran += sum(each.summed.n for unit in view.path[:1] for each in self._of(rec.RAN, unit))
            busy_ns += sum(each.summed.extent for unit in view.path for each in self._of(rec.RAN, unit))
        return Fraction(busy_ns, ran) * Fraction(came, span_ns) if ran and span_ns > 0 else None

    def _at_entry(self, unit: int) -> Mapping[int, Sequence[AggregatedCount]]:
        """By incarnation: the tuples that came to a unit, by how they ended there."""
        found: dict[int, list[AggregatedCount]] = defaultdict(list)
        for kind in (rec.RAN, rec.SHED, rec.LOST):
            for each in self._of(kind, unit):
                if kind != rec.SHED or not each.cause:  # else results
                    found[each.incarnation].append(each.summed)
        return found

    # -- tuples

    def shed(self) -> Shed:
        """By source: what was admitted, and of how many tuples something was shed, by policy. By unit that shed: the
        tuples that came to it, and those that it shed (with policy selectivity: results)."""
        return Shed(self._by_source(), self._by_unit())

    def _by_source(self) -> dict[str, ShedOfSource]:
        admitted: dict[str, int] = defaultdict(int)
        shed: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for source, (_, stream) in sorted(self._plan.sources.items()):
            name = self._plan.streams.get(stream, f"source {source}")
            admitted[name] += self._admitted(source)
            for (of, policy), n in sorted(self._counts.shed_tuples.items()):
                if of == source:
                    shed[name][_name(SHED_POLICIES, policy)] += n
        return {name: ShedOfSource(n, _rates(shed[name], n)) for name, n in admitted.items()}

    def _by_unit(self) -> dict[str, ShedAtUnit]:
        came: dict[str, int] = defaultdict(int)
        shed: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for unit in sorted(self._plan.units):
            view = self._plan.units[unit]
            name = f"{view.label} at {self._plan.nodes[view.node]}"
            came[name] += sum(count.n for tallies in self._at_entry(unit).values() for count in tallies)
            for each in self._of(rec.SHED, unit):
                shed[name][_name(SHED_POLICIES, each.word)] += each.summed.n
        return {name: ShedAtUnit(came[name], _rates(found, came[name])) for name, found in shed.items()}

    def degraded(self) -> dict[str, int]:
        """By operator: how often its cheaper variant ran."""
        found: dict[str, int] = defaultdict(int)
        for (kind, _), rows in self._sums.items():
            for each in rows if kind == rec.DEGRADED else ():
                found[self._plan.operators.get(each.word, f"operator {each.word}")] += each.summed.n
        return dict(sorted(found.items()))


class _WindowOutcomes:
    """What the WINDOW records of an operator say.

    unended: opened, and nothing tells how they ended: after a crash, or where records are missing. cut_off: windows
    that had begun before all sources were heard of, or were open as the plan or the trace ended: none is expected.
    """

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._traces = traces
        self._open: dict[int, int] = defaultdict(int)  # by incarnation
        self._cut_off = 0
        self.opened = self.given = self.skipped = 0
        self.abandoned: dict[str, int] = {}

    def add(self, about: _About) -> None:
        """A row of `Counts.aggregated`."""
        state, windows = about.word, about.summed.extent
        match state:
            case rec.WINDOW_OPENED:
                self.opened += windows
                self._open[about.incarnation] += windows
            case rec.WINDOW_CLOSED:
                self.given += windows
            case rec.WINDOW_SKIPPED if about.cause == NO_CAUSE:
                self._cut_off += windows
            case rec.WINDOW_SKIPPED:
                self.skipped += windows
            case rec.WINDOW_ABANDONED if about.cause == STOPPED:
                self._cut_off += windows
            case rec.WINDOW_ABANDONED:
                cause = _name(WINDOW_CAUSES, about.cause)
                self.abandoned[cause] = self.abandoned.get(cause, 0) + windows
        if state in (rec.WINDOW_CLOSED, rec.WINDOW_ABANDONED):
            self._open[about.incarnation] -= windows

    def _left(self, *statuses: Status) -> int:
        return sum(max(0, n) for i, n in self._open.items() if self._traces[i].status in statuses)

    @property
    def unended(self) -> int:
        return self._left(Status.CRASHED, Status.DAMAGED)

    @property
    def cut_off(self) -> int:
        return self._cut_off + self._left(Status.CLEAN, Status.UNKNOWN)


def _rates(shed: Mapping[str, int], of: int) -> dict[str, ShedTuples]:
    return {policy: ShedTuples(n, n / of if of else None) for policy, n in shed.items()}


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 < number < len(names) else f"number {number}"
