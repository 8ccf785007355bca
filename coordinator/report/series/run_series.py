"""The second pass over a run: everything that its page draws over time, at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.series.incidents import Costs, Incident, of_nodes, of_plans, of_refusals
from coordinator.report.series.latency_series import LatencyBin, LatencySeries
from coordinator.report.series.record_rows import Ints, Own, RunRecords, Wanted
from coordinator.report.series.run_clock import RunClock
from coordinator.report.series.slowest_results import SlowestResults, SlowResult
from coordinator.report.series.utilisation_series import UnitUse, UtilisationSeries
from protos import records as rec

BINS = 200  # of what went wrong
WANTED: Wanted = {
    rec.OUTPUT: ("at_ns", "output", "source", "epoch", "seq", "origin_lo_ns", "origin_hi_ns", "deadline_ns"),
    rec.RAN: ("unit", "release_ns", "start_ns", "end_ns", "unfinished"),
    rec.SHED: ("at_ns",),
    rec.LOST: ("at_ns",),
    rec.REFUSED: ("at_ns", "tuples"),
}
ENDS: Mapping[int, str] = {rec.SHED: "shed", rec.LOST: "lost"}


@dataclass(frozen=True, slots=True)
class NodeTime:
    """A node: (from, until) of each of its runtimes; shed, lost: tuples, by bin."""

    node: str
    present: tuple[tuple[int, int], ...]
    shed: tuple[int, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunSeries:
    """Of one run. latencies: by output, which earlier plans may call the same; late: results of all outputs, by bin of
    bin_ns; use_bin_ns: of `uses`, by unit."""

    records: RunRecords
    clock: RunClock
    length_ns: int
    latencies: Mapping[str, list[LatencyBin]]
    uses: Mapping[int, UnitUse]
    use_bin_ns: int
    nodes: tuple[NodeTime, ...]
    bin_ns: int
    late: tuple[int, ...]
    incidents: tuple[Incident, ...]
    slowest: tuple[SlowResult, ...]


def run_series(run: Run, runs: int = 1) -> RunSeries:
    """Reads the run's records twice. runs: on a page, which all of their series have to fit on."""
    records = RunRecords(run)
    clock = RunClock(run, records)
    found = _Pass(run, records, clock, runs)
    for presence in clock.presences:
        for piece in records.pieces(presence.incarnation, WANTED):
            found.add(presence.incarnation, {kind: rows.own(presence.epochs) for kind, rows in piece.items()})
    return found.series()


class _Pass:
    def __init__(self, run: Run, records: RunRecords, clock: RunClock, runs: int) -> None:
        self._run, self._records, self._clock, length_ns = run, records, clock, clock.length_ns
        self._latency = LatencySeries(run.plan, length_ns, runs)
        self._use = UtilisationSeries(run.plan, length_ns, runs)
        self._slowest = SlowestResults(run.plan)
        self._bin_ns = length_ns // BINS + 1
        self._late = np.zeros(BINS, np.int64)
        self._ends = {(kind, node): np.zeros(BINS, np.int64) for kind in ENDS for node in run.plan.nodes}
        self._after_ns = max((output.deadline_ns for output in run.plan.outputs.values()), default=0)
        apart_ns, incidents = max(self._bin_ns, self._after_ns), [*of_nodes(run, clock), *of_plans(run, clock)]
        for one in clock.presences:
            incidents += of_refusals(run, one.incarnation.node, one.refused, apart_ns)
        self._costs = Costs(incidents, length_ns, self._after_ns)

    def add(self, incarnation: Incarnation, records: Mapping[int, Own]) -> None:
        """Some records of one runtime."""
        clock = self._clock
        results = records[rec.OUTPUT]
        at_ns = clock.many(incarnation, results["at_ns"])
        self._latency.add(results, at_ns)
        self._slowest.add(incarnation, results)
        least_ns = results["at_ns"] - results["origin_hi_ns"]
        late_ns = at_ns[least_ns > results["deadline_ns"]]
        self._late += self._binned(late_ns)
        self._costs.add("late", late_ns)
        ran = records[rec.RAN]
        start_ns, end_ns = (clock.many(incarnation, ran[each]) for each in ("start_ns", "end_ns"))
        self._use.add(ran, start_ns, end_ns)
        for kind, what in ENDS.items():
            ended_ns = clock.many(incarnation, records[kind]["at_ns"])
            self._ends[kind, incarnation.node] += self._binned(ended_ns)
            self._costs.add("shed" if what == "shed" else "lost", ended_ns)
        refused = records[rec.REFUSED]
        self._costs.add("refused", clock.many(incarnation, refused["at_ns"]), refused["tuples"])

    def _binned(self, at_ns: Ints) -> Ints:
        return np.bincount(np.clip(at_ns // self._bin_ns, 0, BINS - 1), minlength=BINS)

    def series(self) -> RunSeries:
        """When all have been added."""
        plan = self._run.plan
        present: dict[int, list[tuple[int, int]]] = {number: [] for number in plan.nodes}
        for one in self._clock.presences:
            present[one.incarnation.node].append((one.from_ns, one.until_ns))
        nodes = (
            NodeTime(
                name,
                tuple(sorted(present[number])),
                tuple(self._ends[rec.SHED, number].tolist()),
                tuple(self._ends[rec.LOST, number].tolist()),
            )
            for number, name in plan.nodes.items()
        )
        return RunSeries(
            records=self._records,
            clock=self._clock,
            length_ns=self._clock.length_ns,
            latencies={view.name: self._latency.bins(id_) for id_, view in plan.outputs.items()},
            uses=self._use.uses(),
            use_bin_ns=self._use.width_ns,
            nodes=tuple(nodes),
            bin_ns=self._bin_ns,
            late=tuple(self._late.tolist()),
            incidents=tuple(self._costs.with_costs()),
            slowest=tuple(self._slowest.worst_first()),
        )


__all__ = ["NodeTime", "RunSeries", "run_series"]
