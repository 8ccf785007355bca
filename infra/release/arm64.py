"""arm64 by user-mode emulation: the wheel, the agent's tests, and the page for two Pis, deployed from this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from coordinator.lab import namespaces
from infra.release import two_pis
from infra.release.release_steps import Outcome, Trial
from infra.release.userland import SUITES, home, userland

PACKAGES = ("python3", "python3-venv", "ca-certificates")
PYTHON, PROJECT = "/opt/venv/bin/python", f"{home('root')}/shimekiri"
# What these tests ask for; a Pi needs none of it.
FOR_TESTS = ("pytest", "hypothesis")
TESTS = (
    "tests/node_agent/core/engine/test_engine_stories.py", "tests/node_agent/core/policies/test_policies.py",
    "tests/node_agent/core/shedding/test_source_limits.py", "tests/node_agent/link",
    "tests/node_agent/wire/test_plan_message.py", "tests/node_agent/wire/test_frames.py",
    "tests/node_agent/host/test_trace_ring.py",
)  # fmt: skip
INSTALL_S, DOCTOR_S, TESTS_S = 3600, 900, 7200
SLOWER = 6  # than a Pi, which waits on the page are stretched by
COUNTED = r"\d+ (?:failed|passed).* in .*"


def arm64(suite: str, clone: Path, trees: Path | None, logs: Path) -> list[Outcome]:
    """On one emulated system. Raises UserlandError."""
    (wheel,) = _wheel(clone)
    with userland(suite, PACKAGES, trees, "arm64") as system:
        version = system.run(["python3", "--version"])[1].strip()
        trial = Trial(f"{SUITES[suite]} arm64, {version}", system, logs)
        system.place(wheel, f"/opt/{wheel.name}")
        system.run(["python3", "-m", "venv", "/opt/venv"], seconds=INSTALL_S)
        pip = (PYTHON, "-m", "pip", "install", "--only-binary=:all:")
        if not trial.step("the wheel", [*pip, f"/opt/{wheel.name}"], INSTALL_S, note=r"Successfully installed (.*)"):
            return trial.outcomes
        words = ["/opt/venv/bin/node-agent", "doctor", "--no-rt"]
        trial.step("doctor", words, DOCTOR_S, note=r".*\d+ .*$")
        _page(trial)
        system.place(clone, PROJECT)
        if trial.step("what the tests need", [*pip, *FOR_TESTS], INSTALL_S):
            run = ["env", "-C", PROJECT, PYTHON, "-m", "pytest", *TESTS]
            trial.step("core and wire tests", run, TESTS_S, COUNTED, note=COUNTED)
    return trial.outcomes


def _wheel(clone: Path) -> list[Path]:
    """As `make wheel` makes it, of the clone."""
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", "."]
    subprocess.run(words, cwd=clone, check=True, env={**os.environ, "SHIMEKIRI_COMPILED": "0"})
    return list((clone / "dist").glob("*.whl"))


def _page(trial: Trial) -> None:
    """Two agents of this system, each on a machine of its own in a lab."""
    began, folder = time.monotonic(), trial.system.root / "walk"
    folder.mkdir()
    pis = two_pis.Pis(
        Path("/opt/venv/bin/node-agent"), trial.system.root,
        lambda words: trial.system.command(words, own_processes=False), SLOWER,
    )  # fmt: skip
    note, said = "", ""
    try:
        walked = two_pis.walk(folder, pis)
        (lamp,) = walked.report.outputs.values()
        books = walked.report.conservation.balanced, walked.report.completeness.complete
        note = f"{lamp.met} met, {lamp.late} late, balanced {books[0]}, complete {books[1]}, ends {walked.ends}"
        passed = all(books) and lamp.met > 0 and walked.ends == [0, 0]
    except (two_pis.WalkError, namespaces.LabError, subprocess.TimeoutExpired) as error:
        passed, said = False, str(error)
    trial.add("two Pis", passed, time.monotonic() - began, note, said or note)
