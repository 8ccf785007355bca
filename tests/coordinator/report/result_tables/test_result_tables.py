"""The tables of a report: in step with report.json, and read by what users have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from coordinator.errors import CoordinatorError
from coordinator.report.command import publish
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.result_tables import write_tables
from coordinator.report.result_tables.table_columns import TABLES
from coordinator.report.spark.spark_choice import SparkChoice
from infra import table_reference
from tests.coordinator.report.aged_worlds import asking
from tests.coordinator.report.synthetic import play, random_document

ROOT = Path(__file__).parents[4]
QUERIES = sorted((ROOT / "docs" / "queries").glob("*.sql"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(play(asking(random_document(2)), 2, tuples=40).save(tmp_path / "run"))


def published(run: Run) -> dict[str, Any]:
    publish([run], "python", SparkChoice(), lambda _: None)
    found: dict[str, Any] = json.loads((run.path / "report.json").read_text())
    return found


def rows(run: Run, query: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().execute(query.replace("tables/", f"{run.path}/tables/")).fetchall()


def test_every_table_has_the_columns_that_the_reference_page_names(run: Run) -> None:
    published(run)
    for table in TABLES:
        found = duckdb.connect().execute(f"DESCRIBE FROM '{run.path}/tables/{table.name}/*.parquet'").fetchall()
        assert [row[0] for row in found] == [column.name for column in table.columns], table.name
    assert (ROOT / table_reference.PAGE).read_text(encoding="utf-8") == table_reference.page()


def test_results_are_counted_as_report_json_has_them(run: Run) -> None:
    outputs = published(run)["outputs"]
    found = rows(run, "SELECT output, outcome, count(*) FROM 'tables/results/*.parquet' GROUP BY ALL")
    for name, each in outputs.items():
        ends = {outcome: n for output, outcome, n in found if output == name}
        assert ends.get("met", 0) == each["met"] and ends.get("late", 0) == each["late"]
        assert ends.get("shed", 0) + ends.get("policed", 0) == each["shed"]
    assert sum(n for _, outcome, n in found if outcome in {"met", "late"}) > 0
    slowest = dict(rows(run, "SELECT output, max(latency_hi_ns) FROM 'tables/results/*.parquet' GROUP BY ALL"))
    for name, each in outputs.items():
        assert each["latency_ns"]["max"] in {slowest.get(name), None}, "None: one of them has no bound"


def test_the_ledger_sums_to_the_obligations(run: Run) -> None:
    books = published(run)["conservation"]
    ((n,),) = rows(run, "SELECT sum(obligations)::BIGINT FROM 'tables/ledger/*.parquet'")
    assert n == sum(books["by_outcome"].values())


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.stem)
def test_example_queries_run_and_give_rows(query: Path, run: Run) -> None:
    published(run)
    assert rows(run, query.read_text(encoding="utf-8"))


def test_a_report_that_fails_leaves_the_tables_that_were_there(run: Run) -> None:
    published(run)
    before = rows(run, "FROM 'tables/outputs/*.parquet'")
    with pytest.raises(KeyboardInterrupt), write_tables.replaced(run.path) as folder:
        (folder / "outputs").mkdir()
        raise KeyboardInterrupt
    assert rows(run, "FROM 'tables/outputs/*.parquet'") == before
    assert [path.name for path in run.path.glob(".tables*")] == []


def test_reports_of_one_run_at_once_leave_the_tables_of_one_of_them(run: Run) -> None:
    command = [sys.executable, "-m", "coordinator", "report", str(run.path), "--engine", "python"]
    began = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for each in began:
        _, said = each.communicate(timeout=120)
        assert each.returncode in {0, 3}, said
        assert "cannot be written" not in said
    assert rows(run, "FROM 'tables/outputs/*.parquet'")
    assert [path.name for path in run.path.glob(".*")] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(run: Run) -> None:
    run.path.chmod(0o500)
    try:
        with pytest.raises(CoordinatorError) as caught:
            published(run)
        assert caught.value.mistakes[0].code == "unwritable"
    finally:
        run.path.chmod(0o700)
