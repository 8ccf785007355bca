"""The reference page of a report's tables, made from their columns."""

from collections.abc import Iterator

from coordinator.report.result_tables.table_columns import TABLES, ResultTable

PAGE = "docs/reference/report_tables.md"
HEAD = """\
# Tables of a report

`coordinator report` writes what it found out into `RUN/tables` as well, a folder of Parquet files per table, for
notebooks and SQL: `duckdb -c "FROM 'tables/outputs/*.parquet'"` in the run's directory. Four queries to begin with:
[worst results](../queries/worst_results.sql), [who spent the time](../queries/who_spent_the_time.sql), [missed results
by hundred tuples](../queries/missed_by_hundred.sql), [who made data old](../queries/who_made_it_old.sql). Times are
nanoseconds. Null is "not known", or "there is none".

`results` has a row per result whose tuple is known. What is expected of tuples that no record tells of (windows that
nobody opened, sources whose node lacks records) is counted in `outputs` alone. On a cluster with `--copy-to`, Spark
writes `results` there.

This page is made from `coordinator/report/result_tables/table_columns.py` by `python -m infra.generate`.
"""


def page() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *(line for table in TABLES for line in _table(table))])


def _table(table: ResultTable) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield f"A row is {table.about}.\n"
    yield "| column | kind | what |"
    yield "|---|---|---|"
    for column in table.columns:
        yield f"| `{column.name}` | {column.kind} | {column.about} |"
    yield ""
