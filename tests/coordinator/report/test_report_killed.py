"""What a report that was killed leaves behind goes with the next one, and nothing of one that goes on does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.leftovers import scratch_folder
from coordinator.report.command import publish
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.spark.spark_choice import SparkChoice
from tests.coordinator.report.synthetic import play, random_document

HALF_DONE = """
import sys, time
from pathlib import Path
from coordinator.leftovers import scratch_folder
from coordinator.report.result_tables import write_tables
with write_tables.replaced(Path(sys.argv[1])) as tables, scratch_folder(Path(sys.argv[1]), ".report-") as scratch:
    (tables / "outputs").mkdir()
    (scratch / "report.html").write_text("half of it")
    print(flush=True)
    time.sleep(600)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(play(random_document(2), 2, tuples=20).save(tmp_path / "run"))


def report(run: Run) -> None:
    publish([run], "python", SparkChoice(), lambda _: None)


def hidden(run: Run) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in run.path.glob(".*"))


def test_what_a_killed_report_left_goes_with_the_next_one(run: Run) -> None:
    with subprocess.Popen([sys.executable, "-c", HALF_DONE, str(run.path)], stdout=subprocess.PIPE) as half_done:
        assert half_done.stdout is not None
        half_done.stdout.readline()
        try:
            report(run)
            assert hidden(run) == [".report", ".tables"], "it goes on, and its folders are its own"
        finally:
            half_done.send_signal(signal.SIGKILL)
    assert hidden(run) == [".report", ".tables"]
    report(run)
    assert hidden(run) == []


def test_folders_of_before_there_were_locks_go(run: Run) -> None:
    (run.path / ".tables-0a1b2c3d" / "outputs").mkdir(parents=True)
    (run.path / ".tables-0a1b2c3d-old").mkdir()
    report(run)
    assert hidden(run) == []


def test_what_only_has_such_a_name_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (run.path / ".tables-elsewhere").symlink_to(tmp_path / "precious")
    (run.path / ".tables-notes").write_text("mine")
    report(run)
    assert (tmp_path / "precious").is_dir()
    assert (run.path / ".tables-notes").read_text() == "mine"


def test_a_folder_that_is_swept_as_it_is_made_is_made_anew(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, swept = os.open, list[Path]()

    def sweep_first(path: Path, flags: int) -> int:
        descriptor = opened(path, flags)
        if not swept:
            swept.append(path)
            path.rmdir()
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", sweep_first)
        with scratch_folder(run.path, ".report-") as folder:
            patch.undo()
            assert folder.is_dir()
            assert folder not in swept
