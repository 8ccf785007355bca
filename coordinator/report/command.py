"""Command `coordinator report` on runs that were read: judges them and writes report.json and the pages."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.errors import unwritable, unwritable_run
from coordinator.leftovers import scratch_folder
from coordinator.report import report_extra
from coordinator.report.blame.ages.oldest_data import with_hops
from coordinator.report.blame.misses import misses
from coordinator.report.cost_overrun import cost_overruns
from coordinator.report.facts.began_anew import began_anew
from coordinator.report.facts.reader import Run
from coordinator.report.free_memory import hand_back
from coordinator.report.page.page import page_of
from coordinator.report.report_document import Report
from coordinator.report.result_tables.table_columns import RESULTS
from coordinator.report.series.run_series import run_series
from coordinator.report.spark.spark_choice import SparkChoice
from coordinator.report.summary.lost import with_logs
from protos.json_shape import Json

Progress = Callable[[str], None]
SPARK_FROM = 1_000_000  # records; below it plain Python is faster (at so many 25 s of CPU, where Spark takes 72 s)


@dataclass(frozen=True, slots=True)
class Published:
    """What a report of some runs made. page: to look at first."""

    reports: list[Report]
    page: Path


def publish(
    runs: Sequence[Run], engine: str, choice: SparkChoice, progress: Progress, output: Path | None = None
) -> Published:
    """Judge the runs, as `judge` does, and write tables, report.json and pages, as `write` does."""
    if not report_extra.has("pyarrow"):
        reports = judge(runs, engine, choice, progress)
        progress(f"tables are left out: {report_extra.missing('pyarrow', 'Parquet')}")
        return Published(reports, write(runs, reports, output, progress))
    from coordinator.report.result_tables import write_tables

    with ExitStack() as folders:
        tables = [folders.enter_context(write_tables.replaced(run.path)) for run in runs]
        reports = judge(runs, engine, choice, progress, tables)
        progress("tables")
        for folder, run, report in zip(tables, runs, reports, strict=True):
            with write_tables.writing(run.path):
                write_tables.write_report(folder, run, report)
    return Published(reports, write(runs, reports, output, progress))


def judge(
    runs: Sequence[Run], engine: str, choice: SparkChoice, progress: Progress, tables: Sequence[Path] = ()
) -> list[Report]:
    """One report per run. engine: auto (by size, or Spark where `choice` says anything of it), spark or python. tables:
    a folder per run for the table of its results.

    Raises SparkUnavailableError where spark itself is asked for.
    """
    reports, engine = _judged(runs, engine, choice, progress, tables)
    return [
        replace(
            report,
            engine=engine,
            cost_overruns=cost_overruns(run),
            began_anew=began_anew(run),
            misses=misses(run, report),
            freshness=with_hops(run, report),
            lost_in_units=with_logs(run, report.lost_in_units),
            verdict=_replayed(run, progress),
        )
        for run, report in zip(runs, reports, strict=True)
    ]


def _judged(
    runs: Sequence[Run], engine: str, choice: SparkChoice, progress: Progress, tables: Sequence[Path]
) -> tuple[list[Report], str]:
    """The verdicts, and the engine that gave them."""
    records = sum(each.places for run in runs for each in run.incarnations)
    small = engine == "auto" and not choice.made and records < SPARK_FROM
    if small:
        spark = "; --engine spark takes Spark" if report_extra.has("pyspark") else ""
        progress(f"{records} records: in plain Python, which is faster below {SPARK_FROM}{spark}")
    elif engine != "python":
        from coordinator.report.spark.java import SparkUnavailableError

        try:
            return _with_spark(runs, choice, records, progress, tables), "spark"
        except SparkUnavailableError as error:
            if engine == "spark" or choice.made:
                raise
            progress(f"{error}. This report is made so")
            for folder in tables:
                shutil.rmtree(folder / RESULTS.name, ignore_errors=True)
    reports = []
    for number, run in enumerate(runs):
        progress(f"{run.name}: ledgers and verdict in plain Python")
        reports.append(_in_python(run, tables[number] if tables else None))
    return reports, "python"


def _in_python(run: Run, folder: Path | None) -> Report:
    from coordinator.report.verdict import verdict

    if folder is None:
        return verdict(run)
    from coordinator.report.result_tables import write_tables
    from coordinator.report.result_tables.result_rows import ResultRows

    results = ResultRows(run.plan)
    report = verdict(run, results.add)
    with write_tables.writing(run.path):
        write_tables.write_table(folder, RESULTS, results.table())
    return report


def _with_spark(
    runs: Sequence[Run], choice: SparkChoice, records: int, progress: Progress, tables: Sequence[Path]
) -> list[Report]:
    from coordinator.report.spark.spark_session import session

    progress(f"{records} records; Spark starts")
    results = [folder / RESULTS.name for folder in tables]
    with session(choice, records) as spark:
        from coordinator.report.spark.spark import verdicts

        found = verdicts(spark, runs, choice, lambda text: progress(f"Spark: {text}"), results)
    hand_back()
    return found


def _replayed(run: Run, progress: Progress) -> Json:
    """The scene's verdict from replay.json, where there is one."""
    path = run.path / "replay.json"
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        progress(f"{path}: left out: {error}")
        return None
    return document.get("verdict") if isinstance(document, dict) else None


def write(runs: Sequence[Run], reports: Sequence[Report], output: Path | None, progress: Progress) -> Path:
    """Write report.json and report.html of each run, and the comparison. Returns the page to look at first.

    output: directory of that page; else the run's, or with several runs the first one's parent.
    """
    for run, report in zip(runs, reports, strict=True):
        text = json.dumps(report.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        _replace(run.path / "report.json", text, unwritable_run)
    progress("page")
    entries = [(run, report, run_series(run, len(runs))) for run, report in zip(runs, reports, strict=True)]
    pages = [_replace(entry[0].path / "report.html", page_of([entry]), unwritable_run) for entry in entries]
    if len(runs) == 1 and output is None:
        return pages[0]
    name = "comparison.html" if len(runs) > 1 else "report.html"
    directory = output or runs[0].path.resolve().parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(directory, error) from error
    return _replace(directory / name, page_of(entries), unwritable)


def _replace(path: Path, text: str, failure: Callable[[Path, OSError], Exception]) -> Path:
    """Write a file whole or not at all; reports of one run at once do not meet."""
    try:
        with scratch_folder(path.parent, ".report-") as scratch:
            (scratch / path.name).write_text(text, encoding="utf-8")
            return (scratch / path.name).replace(path)
    except OSError as error:
        raise failure(path, error) from error
