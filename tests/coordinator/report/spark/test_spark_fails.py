"""A job of Spark that fails, and a Spark that is gone, are told in a sentence; what nobody asked Spark for goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.report.spark import java
from tests.coordinator.report.synthetic import play, random_document

FAILS = """
import sys
from coordinator.report.spark.java import SparkUnavailableError
from coordinator.report.spark.spark_session import session
try:
    with session() as spark:
        spark.sparkContext.textFile("file:///dev/null/below").getNumPartitions()
except SparkUnavailableError as error:
    print(error, error.exit_code)
"""
IS_KILLED = """
import sys
from pathlib import Path
import psutil
from coordinator.report import command
from coordinator.report.facts.reader import read_run
from coordinator.report.spark.spark_choice import HERE

def progress(text):
    print(text)
    if text == "Spark: ledgers":
        for each in psutil.Process().children():
            each.kill()

command.SPARK_FROM = 0
command.publish([read_run(Path(sys.argv[1]))], "auto", HERE, progress)
"""


@pytest.fixture(autouse=True)
def _java() -> None:
    try:
        java.find()
    except java.SparkUnavailableError as why:
        pytest.skip(str(why))


def said(program: str, *arguments: object) -> str:
    """In a process of its own, as a JVM is ended."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_job_that_fails_is_one_line_with_its_cause() -> None:
    told = said(FAILS).splitlines()
    assert len(told) == 1
    assert "Spark failed: " in told[0]
    assert "Exception: " in told[0]
    assert told[0].endswith("--engine python gives the same verdict without it 1")


@pytest.mark.soak  # a JVM more
def test_where_spark_is_killed_a_report_that_did_not_ask_for_it_is_made_in_plain_python(tmp_path: Path) -> None:
    run = play(random_document(2), 2, tuples=20).save(tmp_path / "run")
    assert "Spark failed: its process has ended" in said(IS_KILLED, run)
    assert json.loads((run / "report.json").read_text())["engine"] == "python"
    assert len(list((run / "tables" / "results").iterdir())) == 1
    assert list(run.glob(".*")) == []
