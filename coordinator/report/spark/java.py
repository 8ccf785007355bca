"""Finds a Java for Spark: the one of JAVA_HOME, else the one on PATH, else the newest under /usr/lib/jvm.

`python -m coordinator.report.spark.java` says which one, or exits with 1 and says what is missing; the set-up asks it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake

OLDEST = 17  # of Spark 4; tried with 17 and 25
INSTALLED = Path("/usr/lib/jvm")  # where distributions put theirs
ANSWER_S = 30.0
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
MEND = "install it (Debian, Ubuntu: apt-get install default-jre-headless), or use --engine python"


class SparkUnavailableError(CoordinatorError):
    """Spark cannot run here; the text is one line and says what to do."""


def _unavailable(code: Code, text: str, subject: str = "JAVA_HOME") -> SparkUnavailableError:
    mend = f"correct it, or {MEND}" if subject == "JAVA_HOME" else MEND
    return SparkUnavailableError(Mistake(code, text, mend, subject))


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark runs on. program: its `java`; version: the feature release, like 21."""

    program: Path
    version: int

    @property
    def home(self) -> Path:
        """What JAVA_HOME is to be for it."""
        return self.program.parents[1]

    def __str__(self) -> str:
        return f"Java {self.version} ({self.program})"


def find(installed: Path = INSTALLED) -> Java:
    """Raises SparkUnavailableError where there is none, or where JAVA_HOME names one that does not fit.

    JAVA_HOME is not passed over, since it is what the user asked for.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        return _of_home(Path(home))
    on_path = shutil.which("java")
    found = _asked(Path(on_path)) if on_path else None
    if found is None or found.version < OLDEST:
        others = [java for program in installed.glob("*/bin/java") if (java := _asked(program)) is not None]
        found = max((*others, *([found] if found else [])), key=lambda java: java.version, default=None)
    if found is None:
        raise _unavailable("no_java", f"Spark needs Java {OLDEST} or later, and no `java` was found", "java")
    if found.version < OLDEST:
        raise _unavailable("java_too_old", f"Spark needs Java {OLDEST} or later, and {found} is too old", "java")
    return found


def _of_home(home: Path) -> Java:
    program = home / "bin" / "java"
    if not program.exists():
        raise _unavailable("no_java", f"JAVA_HOME is {home}, where there is no bin/java")
    found = _asked(program)
    if found is None:
        raise _unavailable("unusable_java", f"JAVA_HOME is {home}, whose bin/java tells no version")
    if found.version < OLDEST:
        raise _unavailable(
            "java_too_old", f"JAVA_HOME is {home}, which is Java {found.version}, and Spark needs {OLDEST} or later"
        )
    return found


def _asked(program: Path) -> Java | None:
    """What it says of itself; None where it does not run."""
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = VERSION.search(done.stderr + done.stdout)
    return Java(program, int(told[1])) if told and done.returncode == 0 else None


def main() -> str | None:
    """What sys.exit takes."""
    try:
        sys.stdout.write(f"{find()}\n")
    except SparkUnavailableError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
