"""Writes the tables into `RUN/tables`, a folder each. A command that is killed, or a full disk, leaves the tables that
were there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator import leftovers
from coordinator.errors import unwritable_run
from coordinator.report.facts.reader import Run
from coordinator.report.report_document import Report
from coordinator.report.result_tables import report_rows, unit_rows
from coordinator.report.result_tables.table_columns import ResultTable

MOST_TRIES = 10
FOLDER, PART = "tables", "part-0000.parquet"


@contextmanager
def replaced(run: Path) -> Iterator[Path]:
    """A folder that takes the place of `RUN/tables` at the end, if all goes well. Raises CoordinatorError where it
    cannot be written."""
    folder = run / FOLDER
    with ExitStack() as stack:
        with writing(run):
            scratch = stack.enter_context(leftovers.scratch_folder(run, f".{FOLDER}-"))
            new = scratch / FOLDER
            new.mkdir()
        yield new
        with writing(run):
            _put(new, folder, scratch)


@contextmanager
def writing(run: Path) -> Iterator[None]:
    """Raises CoordinatorError in place of OSError."""
    try:
        yield
    except OSError as error:
        plain = OSError(error.errno, os.strerror(error.errno)) if error.errno else error  # pyarrow's says more
        raise unwritable_run(run / FOLDER, plain) from error


def _put(new: Path, folder: Path, scratch: Path) -> None:
    """What was there goes aside first, since no rename takes the place of a folder with files. Another report may put
    its own there in between: then that one goes as well."""
    for number in range(MOST_TRIES):
        with suppress(FileNotFoundError):
            folder.rename(scratch / str(number))
        try:
            new.rename(folder)
        except OSError as error:
            if error.errno not in {ENOTEMPTY, EEXIST} or number == MOST_TRIES - 1:
                raise
        else:
            return


def write_report(folder: Path, run: Run, report: Report) -> None:
    """The tables that are made of a report, and of its run's records. Raises OSError."""
    for table, rows in (report_rows.rows_of(report) | unit_rows.rows_of(run)).items():
        write_table(folder, table, pa.Table.from_pylist(rows, schema=table.schema))


def write_table(folder: Path, table: ResultTable, rows: pa.Table) -> None:
    """One table. Raises OSError."""
    (folder / table.name).mkdir()
    pq.write_table(rows, folder / table.name / PART, compression="zstd")
