"""Each expected result as the plain-Python engine tells of it, as columns."""

from __future__ import annotations

import pyarrow as pa

from coordinator.report.counts import INSTANT_LIMIT, Rank
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.result_tables.table_columns import RESULTS
from protos.latency import Latency


class ResultRows:
    """Of one run."""

    def __init__(self, plan: PlanView) -> None:
        self._plan = plan
        self._columns: dict[str, list[object]] = {column.name: [] for column in RESULTS.columns}

    def add(
        self, output: int, lineage: tuple[int, int, int], ordinal: int, rank: Rank, latency: Latency | None
    ) -> None:
        """One more. lineage: source, epoch and seq; latency: None where it was not delivered."""
        source, epoch, seq = lineage
        view = self._plan.outputs[output]
        least_ns, most_ns = bounds_ns(latency)
        values = (
            view.name, source_name(self._plan, source), epoch, seq, ordinal, rank.name.lower(), least_ns, most_ns,
            view.deadline_ns,
        )  # fmt: skip
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def table(self) -> pa.Table:
        """All of them, in the order in which they came."""
        return pa.Table.from_pydict(self._columns, schema=RESULTS.schema)


def bounds_ns(latency: Latency | None) -> tuple[int | None, int | None]:
    """Its ends, each None where it is no bound."""
    if latency is None:
        return None, None
    least_ns = latency.least_ns if latency.least_ns > -INSTANT_LIMIT else None
    return least_ns, latency.most_ns if latency.most_ns < INSTANT_LIMIT else None


def source_name(plan: PlanView, source: int) -> str:
    """Its name; its number where a damaged record names none."""
    where = plan.sources.get(source)
    return plan.streams[where[1]] if where else str(source)
