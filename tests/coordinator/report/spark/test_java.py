"""Which Java Spark gets, what is said where none fits, and that a report does without."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from coordinator.report import command
from coordinator.report.command import judge
from coordinator.report.facts.reader import read_run
from coordinator.report.spark import java
from coordinator.report.spark.java import SparkUnavailableError, find
from coordinator.report.spark.spark_choice import SparkChoice
from tests.coordinator.report.synthetic import play, random_document
from tests.coordinator.wording import has

ROOT = Path(__file__).parents[4]
PATH, JAVA = os.environ["PATH"], shutil.which("java")


def install(home: Path, version: str) -> Path:
    """A Java that says this of itself."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has none yet."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))


def test_the_one_on_the_path_comes_before_newer_ones(tmp_path: Path) -> None:
    install(tmp_path / "path", "17.0.15")
    install(tmp_path / "jvm" / "b", "25.0.3")
    assert find(tmp_path / "jvm") == java.Java(tmp_path / "path" / "bin" / "java", 17)


def test_the_newest_installed_is_taken_where_the_path_has_none_or_an_old_one(tmp_path: Path) -> None:
    for name, version in {"a": "9.0.1", "b": "25", "c": "21.0.7"}.items():
        install(tmp_path / "jvm" / name, version)
    (tmp_path / "jvm" / "default").symlink_to("c")
    assert find(tmp_path / "jvm").home == tmp_path / "jvm" / "b"
    install(tmp_path / "path", "11.0.2")
    assert find(tmp_path / "jvm").version == 25


def test_java_home_is_what_the_user_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "mine", "21-ea")))
    assert find(tmp_path).version == 21
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", "11.0.2")))
    with pytest.raises(SparkUnavailableError, check=has(("java_too_old", "JAVA_HOME"))):
        find(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "empty"))
    with pytest.raises(SparkUnavailableError, check=has(("no_java", "JAVA_HOME"))):
        find(tmp_path)


def test_what_is_too_old_is_told_with_its_version(tmp_path: Path) -> None:
    install(tmp_path / "path", "1.8.0_392")
    install(tmp_path / "jvm" / "a", "11.0.2")
    with pytest.raises(SparkUnavailableError, check=has(("java_too_old", "java"))):
        find(tmp_path / "jvm")


def test_no_java_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    broken = install(tmp_path / "jvm" / "a", "21") / "bin" / "java"
    broken.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SparkUnavailableError, check=has(("no_java", "java"))) as told:
        find(tmp_path / "jvm")
    assert "\n" not in str(told.value)


def test_a_report_without_java_is_made_in_plain_python_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(command, "SPARK_FROM", 1)
    run = read_run(play(random_document(1), 1, tuples=5).save(tmp_path / "run"))
    said: list[str] = []
    (made,) = judge([run], "auto", SparkChoice(), said.append)
    assert made.engine == "python" and made == judge([run], "python", SparkChoice(), said.append)[0]
    assert any("JAVA_HOME is /nowhere" in line for line in said)
    for engine, master in (("spark", None), ("auto", "spark://far:7077")):
        with pytest.raises(SparkUnavailableError):
            judge([run], engine, SparkChoice(master), said.append)


def test_a_small_run_is_judged_in_plain_python_which_is_said(tmp_path: Path) -> None:
    run = read_run(play(random_document(1), 1, tuples=5).save(tmp_path / "run"))
    said: list[str] = []
    (made,) = judge([run], "auto", SparkChoice(), said.append)
    assert made.engine == "python"
    assert "records: in plain Python" in said[0] and "--engine spark" in said[0]


@pytest.mark.parametrize("after_s", [0.3, 2.0, 6.0])
def test_ctrl_c_while_spark_starts_or_works_leaves_no_jvm_and_no_folder(after_s: float, tmp_path: Path) -> None:
    if not JAVA:
        pytest.skip("no Java here")
    run = play(random_document(1), seed=1).save(tmp_path / "run")
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-m", "coordinator", "report", str(run), "--engine", "spark"]
    environment = {**os.environ, "PATH": PATH, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)}
    began = subprocess.Popen(words, env=environment, start_new_session=True, stderr=subprocess.PIPE)
    try:
        process, deadline = psutil.Process(began.pid), time.monotonic() + 60
        while not (java := process.children(recursive=True)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert java
        time.sleep(after_s)
        java = process.children(recursive=True)
        os.killpg(began.pid, signal.SIGINT)
        _, said = began.communicate(timeout=60)
        assert began.returncode == 130 and b"Traceback" not in said, said.decode()
        assert psutil.wait_procs(java, timeout=10)[1] == []
        assert list((tmp_path / "tmp").iterdir()) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(began.pid, signal.SIGKILL)
