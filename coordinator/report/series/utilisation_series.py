"""What nodes were busy with over time, by unit, and how long units took: from the instances that ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.plan_view import PlanView
from coordinator.report.series.durations import COUNTERS, counter, quantile_ns
from coordinator.report.series.record_rows import Ints, Own

MOST_BINS, ALL_BINS = 120, 24_000  # of a unit, and of all runs and units of a page together

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UnitUse:
    """One unit. shares: of the time of each bin that it ran; instances: those of several tuples count once;
    response_ns: from release to end, of each tuple."""

    unit: int
    shares: tuple[float, ...]
    instances: int
    tuples: int
    run_ns: int
    longest_ns: int
    response_p50_ns: int | None
    response_p99_ns: int | None
    response_most_ns: int


class _Instants:
    """How many instants lie in each bin, and how far into it, added up."""

    def __init__(self, bins: int, width_ns: int) -> None:
        self._width_ns = width_ns
        self._counts, self._sums = np.zeros(bins), np.zeros(bins)

    def add(self, instants: Ints) -> None:
        bins = len(self._counts)
        at = np.clip(instants // self._width_ns, 0, bins - 1)
        self._counts += np.bincount(at, minlength=bins)
        self._sums += np.bincount(at, weights=instants - at * self._width_ns, minlength=bins)

    def passed(self) -> Floats:
        """At the end of each bin: how long ago all instants before were, added up."""
        before = np.cumsum(self._counts) - self._counts
        return np.cumsum(before * self._width_ns + self._counts * self._width_ns - self._sums)


class _Unit:
    def __init__(self, bins: int, width_ns: int) -> None:
        self.starts, self.ends = _Instants(bins, width_ns), _Instants(bins, width_ns)
        self.responses: Ints = np.zeros(COUNTERS, np.int64)
        self.instances = self.run_ns = self.longest_ns = self.slowest_ns = 0


class UtilisationSeries:
    """Of all units of a run."""

    def __init__(self, plan: PlanView, length_ns: int, runs: int) -> None:
        self.bins = max(10, min(MOST_BINS, ALL_BINS // max(1, len(plan.units) * runs)))
        self.width_ns = length_ns // self.bins + 1
        self._units = {id_: _Unit(self.bins, self.width_ns) for id_ in plan.units}

    def add(self, ran: Own, start_ns: Ints, end_ns: Ints) -> None:
        """RAN records of one runtime, and when they began and ended in the run."""
        ids = ran.id("unit")
        response_ns = ran["end_ns"] - ran["release_ns"]
        finished = ran["unfinished"] == 0
        for id_ in np.unique(ids).tolist():
            one = self._units.get(id_)
            if one is not None:
                mine = ids == id_
                self._responses(one, response_ns[mine & finished])
                self._runs(one, start_ns[mine], end_ns[mine])

    def _responses(self, one: _Unit, response_ns: Ints) -> None:
        if len(response_ns):
            one.responses += np.bincount(counter(response_ns), minlength=COUNTERS)
            one.slowest_ns = max(one.slowest_ns, int(response_ns.max()))

    def _runs(self, one: _Unit, start_ns: Ints, end_ns: Ints) -> None:
        """Records of one instance, of several tuples, share start and end and follow one another."""
        first = np.ones(len(start_ns), np.bool_)
        first[1:] = (start_ns[1:] != start_ns[:-1]) | (end_ns[1:] != end_ns[:-1])
        start_ns, end_ns = start_ns[first], np.maximum(end_ns, start_ns)[first]
        run_ns = end_ns - start_ns
        one.instances += len(run_ns)
        one.run_ns += int(run_ns.sum())
        one.longest_ns = max(one.longest_ns, int(run_ns.max(initial=0)))
        one.starts.add(start_ns)
        one.ends.add(end_ns)

    def uses(self) -> Mapping[int, UnitUse]:
        """By unit, those that ran."""
        return {id_: self._use(id_, one) for id_, one in self._units.items() if one.instances}

    def _use(self, id_: int, one: _Unit) -> UnitUse:
        busy = one.starts.passed() - one.ends.passed()
        shares = np.clip(np.diff(busy, prepend=0.0) / self.width_ns, 0.0, None)
        return UnitUse(
            unit=id_,
            shares=tuple(float(each) for each in shares),
            instances=one.instances,
            tuples=int(one.responses.sum()),
            run_ns=one.run_ns,
            longest_ns=one.longest_ns,
            response_p50_ns=quantile_ns(one.responses, 0.5, one.slowest_ns),
            response_p99_ns=quantile_ns(one.responses, 0.99, one.slowest_ns),
            response_most_ns=one.slowest_ns,
        )


__all__ = ["UnitUse", "UtilisationSeries"]
