"""Fresh Debian systems with python3 and make and nothing else: set-up, demo and a sample of the tests."""

from __future__ import annotations

from pathlib import Path

from infra.release.release_steps import Outcome, Trial
from infra.release.userland import ORDINARY, SUITES, home, userland

PACKAGES = ("python3", "make")
SAMPLE = (
    "tests/node_agent/core", "tests/node_agent/wire/test_plan_message.py", "tests/node_agent/wire/test_frames.py",
    "tests/node_agent/agents/test_agent_live.py", "tests/node_agent/agents/test_tls_live.py",
    "tests/coordinator/report/spark/test_java.py",
)  # fmt: skip
SET_UP_S, DEMO_S, TESTS_S = 1800, 1200, 1800
COUNTED = r"\d+ (?:failed|passed).* in .*"
JAVA = r"reports use Spark with (Java \d+)"


def fresh(suite: str, clone: Path, trees: Path | None, logs: Path) -> list[Outcome]:
    """As root and as an ordinary user, each on a system of its own. Raises UserlandError."""
    return [*_as(suite, "root", clone, trees, logs), *_as(suite, ORDINARY, clone, trees, logs)]


def _as(suite: str, user: str, clone: Path, trees: Path | None, logs: Path) -> list[Outcome]:
    with userland(suite, PACKAGES, trees) as system:
        version = system.run(["python3", "--version"])[1].strip()
        trial = Trial(f"{SUITES[suite]}, {version}, {'root' if user == 'root' else 'user'}", system, logs, user)
        project = f"{home(user)}/shimekiri"
        system.place(clone, project, user)
        make = ("make", "-C", project)
        if user != "root":
            trial.step("set-up without venv", [*make, "setup"], SET_UP_S, "apt-get install python3-venv", code=2)
            words = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "python3-venv"]
            trial.step("apt-get install python3-venv", words, SET_UP_S, as_root=True)
        java = JAVA if user == "root" else "without Spark: (.*no `java` was found)"
        if trial.step("set-up", [*make, "setup"], SET_UP_S, java, note=java):
            trial.step("demo", [*make, "demo"], DEMO_S, "AVOIDED", note=r"Done in \d+ s")
            python = f"{project}/.venv/bin/python"
            trial.step("tests", ["env", "-C", project, python, "-m", "pytest", *SAMPLE], TESTS_S, COUNTED, note=COUNTED)
    return trial.outcomes
