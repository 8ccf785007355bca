"""Latency of each output over time: of each bin how many results, how many late, the median, p99 and the longest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.report.facts.plan_view import PlanView
from coordinator.report.series.durations import COUNTERS, counter, quantile_ns
from coordinator.report.series.record_rows import Ints, Own

MOST_BINS, ALL_BINS = 200, 8_000  # of an output, and of all runs and outputs of a page together
UNBOUNDED_NS = 1 << 50  # a latency of which nobody knows the most


@dataclass(frozen=True, slots=True)
class LatencyBin:
    """from_ns: since the run's beginning. Latencies are upper bounds; late: even the lower bound is."""

    from_ns: int
    results: int
    late: int
    p50_ns: int
    p99_ns: int
    most_ns: int


class LatencySeries:
    """Of all outputs of a run."""

    def __init__(self, plan: PlanView, length_ns: int, runs: int) -> None:
        self._plan = plan
        bins = max(10, min(MOST_BINS, ALL_BINS // max(1, len(plan.outputs) * runs)))
        self._width_ns = length_ns // bins + 1
        self._counts = {id_: np.zeros((bins, COUNTERS), np.int64) for id_ in plan.outputs}
        self._late = {id_: np.zeros(bins, np.int64) for id_ in plan.outputs}
        self._most = {id_: np.zeros(bins, np.int64) for id_ in plan.outputs}

    def add(self, results: Own, at_ns: Ints) -> None:
        """OUTPUT records, and their instants in the run."""
        if not len(results):
            return
        ids, instants = results.outputs(self._plan), results["at_ns"]
        took_ns, least_ns = instants - results["origin_lo_ns"], instants - results["origin_hi_ns"]
        for id_ in self._counts:
            bins = len(self._late[id_])
            mine = (ids == id_) & (took_ns >= 0) & (took_ns < UNBOUNDED_NS)
            at = np.clip(at_ns[mine] // self._width_ns, 0, bins - 1)
            took = took_ns[mine]
            counted = np.bincount(at * COUNTERS + counter(took), minlength=bins * COUNTERS)
            self._counts[id_] += counted.reshape(bins, COUNTERS)
            late = least_ns[mine] > self._plan.outputs[id_].deadline_ns
            self._late[id_] += np.bincount(at[late], minlength=bins)
            np.maximum.at(self._most[id_], at, took)

    def bins(self, output: int) -> list[LatencyBin]:
        """Of one output; those without a result are left out."""
        found, most = self._counts[output], self._most[output]
        return [
            LatencyBin(
                from_ns=n * self._width_ns,
                results=int(found[n].sum()),
                late=int(self._late[output][n]),
                p50_ns=quantile_ns(found[n], 0.5, int(most[n])) or 0,
                p99_ns=quantile_ns(found[n], 0.99, int(most[n])) or 0,
                most_ns=int(most[n]),
            )
            for n in np.flatnonzero(found.sum(axis=1)).tolist()
        ]


__all__ = ["LatencyBin", "LatencySeries"]
