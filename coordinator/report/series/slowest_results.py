"""The results that took most of their deadline, a bounded number of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation
from coordinator.report.series.latency_series import UNBOUNDED_NS
from coordinator.report.series.record_rows import Own

KEPT = 20  # per run


@dataclass(frozen=True, slots=True, order=True)
class SlowResult:
    """One result. share: its latency, an upper bound, of its deadline; at_ns: on its node's clock."""

    share: float
    output: str
    source: int
    epoch: int
    seq: int
    at_ns: int
    took_ns: int
    least_ns: int
    node: int
    trace: int


class SlowestResults:
    """The top of a run."""

    def __init__(self, plan: PlanView) -> None:
        self._plan = plan
        self._found: list[SlowResult] = []

    def add(self, incarnation: Incarnation, results: Own) -> None:
        """OUTPUT records."""
        if not len(results):
            return
        ids, at_ns = results.outputs(self._plan), results["at_ns"]
        took_ns, least_ns = at_ns - results["origin_lo_ns"], at_ns - results["origin_hi_ns"]
        deadlines = np.ones(len(results), np.int64) * UNBOUNDED_NS
        for id_, view in self._plan.outputs.items():
            deadlines[ids == id_] = max(1, view.deadline_ns)
        share = np.where((took_ns >= 0) & (took_ns < UNBOUNDED_NS), took_ns / deadlines, 0.0)
        for n in _greatest(share, KEPT):
            if share[n] and int(ids[n]) in self._plan.outputs:
                slow = SlowResult(
                    share=float(share[n]),
                    output=self._plan.outputs[int(ids[n])].name,
                    source=int(results["source"][n]),
                    epoch=int(results["epoch"][n]),
                    seq=int(results["seq"][n]),
                    at_ns=int(at_ns[n]),
                    took_ns=int(took_ns[n]),
                    least_ns=int(least_ns[n]),
                    node=incarnation.node,
                    trace=incarnation.number,
                )
                heapq.heappush(self._found, slow)
                if len(self._found) > KEPT:
                    heapq.heappop(self._found)

    def worst_first(self) -> list[SlowResult]:
        """Those that took most of their deadline first."""
        return sorted(self._found, reverse=True)


def _greatest(values: npt.NDArray[np.float64], most: int) -> list[int]:
    if len(values) <= most:
        return list(range(len(values)))
    return [int(n) for n in np.argpartition(values, -most)[-most:]]


__all__ = ["SlowResult", "SlowestResults"]
