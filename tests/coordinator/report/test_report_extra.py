"""The coordinator without the extra `report`: all but Spark and Parquet. The imports of what it brings are refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from coordinator.report.command import publish
from coordinator.report.facts.reader import read_run
from coordinator.report.landing import landed_run
from coordinator.report.spark.spark_choice import SparkChoice
from tests.coordinator.report.synthetic import everything, play

ROOT = Path(__file__).parents[3]
WITHOUT = """
import contextlib, io, json, sys
for package in ("pyspark", "py4j", "pandas", "pyarrow"):
    sys.modules[package] = None
import coordinator.__main__ as program
found = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            program.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def without_report(folder: Path, *commands: Sequence[object]) -> list[tuple[int, str, str]]:
    """Exit code, standard output and errors of each command, in one process."""
    asked = json.dumps([[str(word) for word in words] for words in commands])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, asked], cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(int(code), out, err) for code, out, err in json.loads(done.stdout)]


def test_what_plans_and_deploys_works_and_what_needs_spark_names_the_extra(tmp_path: Path) -> None:
    run = play(everything(), 3, tuples=20).save(tmp_path / "run")
    files = ["pumps/query.yaml", "pumps/cluster.yaml"]
    helped, begun, valid, planned, explained, spark, cluster, dropped = without_report(
        tmp_path, ["--help"], ["init", "pumps"], ["validate", *files], ["plan", *files, "-o", "plan.json"],
        ["explain", "plan.json"], ["report", run, "--engine", "spark"], ["report", run, "--master", "local"],
        ["collect", "--drop-raw"],
    )  # fmt: skip
    assert [each[0] for each in (helped, begun, valid, planned, explained)] == [0, 0, 0, 0, 0]
    assert (tmp_path / "plan.json").is_file()
    for (code, out, err), package in ((spark, "pyspark"), (cluster, "pyspark"), (dropped, "pyarrow")):
        last = err.splitlines()[-1]
        assert (code, out) == (1, "") and f"needs {package}, which is not installed" in last
        assert "pip install 'shimekiri[report]'" in last


def test_a_plain_report_is_the_same_and_has_no_tables(tmp_path: Path) -> None:
    run = play(everything(), 3, tuples=40, mishaps=0.05).save(tmp_path / "run")
    publish([read_run(run)], "python", SparkChoice(), lambda _: None)
    expected = (run / "report.json").read_bytes()
    shutil.rmtree(run / "tables")
    ((code, _, err),) = without_report(tmp_path, ["report", run])
    assert code == 0, err
    assert (run / "report.json").read_bytes() == expected
    assert not (run / "tables").exists()
    assert "in plain Python" in err and "tables are left out" in err and "shimekiri[report]" in err


def test_traces_that_are_parquet_alone_need_the_extra(tmp_path: Path) -> None:
    run = play(everything(), 3, tuples=20).save(tmp_path / "run")
    read = read_run(run)
    landed_run.land(run, read.firsts)
    assert landed_run.drop_raw(run, read.firsts)
    ((code, _, err),) = without_report(tmp_path, ["report", run])
    assert code == 1 and "reading it needs pyarrow" in err and "shimekiri[report]" in err


@pytest.mark.parametrize("number", [1, 2, 3])
def test_keys_are_numbered_alike_with_and_without_pyarrow(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    import numpy as np

    from coordinator.report import report_extra
    from coordinator.report.witness import keys

    random = np.random.default_rng(number)
    columns = [random.integers(-(1 << 61), 1 << 61, 300)[random.integers(0, 300, 500)] for _ in range(number)]
    found = keys.codes(*columns)
    monkeypatch.setattr(report_extra, "has", lambda _: False)
    plain = keys.codes(*columns)
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    for numbers in (found, plain):
        assert len(set(zip(rows, numbers.tolist(), strict=True))) == len(set(rows)) == len(set(numbers.tolist()))
