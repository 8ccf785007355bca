"""Rows of the tables that a `Report` fills, by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from coordinator.report.counts import QUANTILES as POINTS
from coordinator.report.report_document import DataAge, Reaction, Report, Spread
from coordinator.report.result_tables import table_columns as columns
from coordinator.report.result_tables.table_columns import ResultTable

Row = dict[str, object]


def rows_of(report: Report) -> dict[ResultTable, list[Row]]:
    """Each of these tables with its rows."""
    return {table: list(made(report)) for table, made in MADE.items()}


def _outputs(report: Report) -> Iterator[Row]:
    query = {output: name for name, each in report.queries.items() for output in each.outputs}
    for name, found in report.outputs.items():
        lo, hi = found.missed_of_offered or (None, None)
        known = {column.name: getattr(found, column.name, None) for column in columns.OUTPUTS.columns}
        yield known | {
            "output": name, "query": query.get(name, ""), "missed_of_offered_lo": lo, "missed_of_offered_hi": hi,
        }  # fmt: skip


def _quantiles(report: Report) -> Iterator[Row]:
    for name, found in report.outputs.items():
        for number, latency_ns in enumerate(found.quantiles_ns, start=1):
            yield {"output": name, "share": number / POINTS, "latency_ns": latency_ns}


def _hops(report: Report) -> Iterator[Row]:
    for name, found in report.latency_breakdowns.items():
        for hop in found.hops:
            yield {"output": name} | asdict(hop)


def _sources(report: Report) -> Iterator[Row]:
    for name, found in report.offered.items():
        yield {
            "source": name, "offered": found.offered, "admitted": found.admitted,
            "refused": sum(found.refused.values()), "policed": found.policed,
        }  # fmt: skip


def _refusals(report: Report) -> Iterator[Row]:
    for name, found in report.offered.items():
        for reason, tuples in found.refused.items():
            yield {"source": name, "reason": reason, "tuples": tuples}


def _windows(report: Report) -> Iterator[Row]:
    for output, found in report.outputs.items():
        for operator, each in found.windows.items():
            known = {column.name: getattr(each, column.name, None) for column in columns.WINDOWS.columns}
            yield known | {"output": output, "operator": operator, "abandoned": sum(each.abandoned.values())}


def _ages(report: Report) -> Iterator[Row]:
    for output, found in report.freshness.items():
        if found.age is not None:
            yield _age_row(found.age, found.age.age_ns) | {
                "output": output, "kind": "age", "source": "", "counted": found.age.results,
            }  # fmt: skip
        for source, each in found.reactions.items():
            yield _age_row(each, each.reaction_ns) | {
                "output": output, "kind": "reaction", "source": source, "counted": each.tuples,
            }  # fmt: skip


def _age_row(found: DataAge | Reaction, spread: Spread) -> Row:
    lo, hi = found.share or (None, None)
    known = {column.name: getattr(found, column.name, None) for column in columns.AGES.columns}
    quantiles = {"p50_ns": spread.p50, "p99_ns": spread.p99, "max_ns": spread.max}
    return known | {"share_lo": lo, "share_hi": hi} | quantiles


def _age_hops(report: Report) -> Iterator[Row]:
    for output, found in report.freshness.items():
        for hop in found.age.hops if found.age else ():
            yield {
                "output": output, "hop": hop.place, "kind": hop.kind, "mean_ns": hop.mean_ns, "share": hop.share,
            }  # fmt: skip


def _ledger(report: Report) -> Iterator[Row]:
    books = report.conservation
    for outcome, n in books.by_outcome.items():
        if outcome not in {"shed", "lost"}:
            yield {"outcome": outcome, "cause": "", "obligations": n}
    for key, n in books.by_cause.items():
        outcome, _, cause = key.partition("(")
        yield {"outcome": outcome, "cause": cause.removesuffix(")"), "obligations": n}


def _misses(report: Report) -> Iterator[Row]:
    for miss in report.misses.worst if report.misses else ():
        told = {name: getattr(miss, name) for name in ("output", "source", "epoch", "seq", "ordinal", "outcome")}
        for rank, cause in enumerate(miss.causes):
            yield told | {
                "latency_ns": miss.latency_ns, "rank": rank, "cause": cause.kind, "node": cause.node,
                "subject": cause.subject, "ns": cause.ns, "text": cause.text,
            }  # fmt: skip


def _causes(report: Report) -> Iterator[Row]:
    for output, causes in (report.misses.by_cause if report.misses else {}).items():
        for cause, results in causes.items():
            yield {"output": output, "cause": cause, "results": results}


def _completeness(report: Report) -> Iterator[Row]:
    for each in report.completeness.incarnations:
        yield {column.name: getattr(each, column.name) for column in columns.COMPLETENESS.columns}


MADE: Mapping[ResultTable, Callable[[Report], Iterator[Row]]] = {
    columns.OUTPUTS: _outputs, columns.QUANTILES: _quantiles, columns.HOPS: _hops, columns.SOURCES: _sources,
    columns.REFUSALS: _refusals, columns.WINDOWS: _windows, columns.AGES: _ages, columns.AGE_HOPS: _age_hops,
    columns.LEDGER: _ledger,
    columns.MISSES: _misses, columns.CAUSES: _causes, columns.COMPLETENESS: _completeness,
}  # fmt: skip
