"""The set-up's script beside other people's systems: what apt-get offers, refuses or breaks never ends it, but for what
is truly needed. apt-get, apt-cache, id and Python are stand-ins on PATH; the script is the real one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "infra" / "setup.sh"
# Answers as a Python would: `ensurepip` and Java are there when a file says so; `-m venv` makes .venv of itself.
PYTHON = """#!/bin/sh
echo "python $*" >> $LOG
case "$*" in
*ensurepip*) [ -e $THERE/python3-venv ];;
*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python;;
*chromedriver*) [ -e $THERE/chromium-driver ];;
*report.spark.java*)
    [ -z "${JAVA_HOME:-}" ] && java=$(ls $THERE | grep jre) && echo "Java ($java)" && exit
    echo "no Java" >&2; exit 1;;
esac
"""
APT_GET = """#!/bin/sh
echo "apt-get $*" >> $LOG
case "$*" in
update*) cp $NEW/* $OFFERED 2>/dev/null; exit ${UPDATE:-0};;
install*) for name; do :; done; [ -z "${BROKEN:-}" ] && [ -e $OFFERED/$name ] && touch $THERE/$name;;
esac
"""
APT_CACHE = """#!/bin/sh
[ -e $OFFERED/$2 ] && echo '  Candidate: 21.0.7' || echo '  Candidate: (none)'
"""


class System:
    """A machine to run the set-up on."""

    def __init__(self, folder: Path) -> None:
        self.clone, self.log, self._bin = folder / "clone", folder / "log", folder / "bin"
        self.there, self.offered, self.new = (folder / name for name in ("there", "offered", "new"))
        for each in (self.clone / "infra", self._bin, self.there, self.offered, self.new):
            each.mkdir(parents=True)
        (self.clone / "infra" / "setup.sh").write_text(SETUP.read_text())
        self._program("python3", PYTHON)

    def debian(self) -> None:
        self._program("apt-get", APT_GET)
        self._program("apt-cache", APT_CACHE)

    def user(self, number: int) -> None:
        self._program("id", f"#!/bin/sh\necho {number}\n")

    def set_up(self, **given: str) -> tuple[int, str]:
        """Exit code, and what was said."""
        where = {"LOG": self.log, "THERE": self.there, "OFFERED": self.offered, "NEW": self.new}
        seen = {"PATH": f"{self._bin}:/usr/bin:/bin", **{name: str(path) for name, path in where.items()}, **given}
        done = subprocess.run(
            ["sh", str(self.clone / "infra" / "setup.sh")], env=seen, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    def asked(self) -> str:
        return self.log.read_text()

    def _program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text)
        os.chmod(self._bin / name, 0o755)


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Debian with root, venv, a browser, and no Java."""
    made = System(tmp_path)
    made.debian()
    made.user(0)
    (made.there / "python3-venv").touch()
    (made.there / "chromium-driver").touch()
    return made


def test_a_java_that_is_there_is_taken(system: System) -> None:
    (system.there / "some-jre").touch()
    assert system.set_up()[0] == 0
    assert "apt-get" not in system.asked()


def test_the_newest_java_that_the_system_offers_is_installed(system: System) -> None:
    for name in ("openjdk-17-jre-headless", "openjdk-21-jre-headless"):
        (system.offered / name).touch()
    code, said = system.set_up()
    assert code == 0 and "reports use Spark with Java (openjdk-21-jre-headless)" in said


def test_lists_are_fetched_where_nothing_is_offered_yet(system: System) -> None:
    (system.new / "openjdk-25-jre-headless").touch()
    code, said = system.set_up(UPDATE="100")  # one list of several that failed is no reason to stop
    assert code == 0 and "openjdk-25" in said


@pytest.mark.parametrize("broken", ["", "1"])
def test_a_java_that_cannot_be_had_is_said_in_a_line_and_the_set_up_goes_on(system: System, broken: str) -> None:
    if broken:
        (system.offered / "openjdk-21-jre-headless").touch()
    code, said = system.set_up(BROKEN=broken, UPDATE="100")
    assert code == 0 and (system.clone / ".venv" / ".ready").exists()
    assert said.splitlines()[-1] == "shimekiri: reports work in plain Python, without Spark: no Java"


@pytest.mark.parametrize("user", [0, 1000])
def test_a_browser_is_installed_where_it_may_be_and_missed_in_a_line_where_not(system: System, user: int) -> None:
    system.user(user)
    (system.there / "chromium-driver").unlink()
    (system.there / "some-jre").touch()
    (system.offered / "chromium-driver").touch()
    code, said = system.set_up()
    assert code == 0 and ("apt-get install" in system.asked()) is (user == 0)
    assert ("not tested in a browser" in said) is (user != 0)


def test_nothing_is_installed_beside_a_java_home_that_would_hide_it(system: System) -> None:
    (system.offered / "openjdk-21-jre-headless").touch()
    code, said = system.set_up(JAVA_HOME="/nowhere")
    assert code == 0 and "without Spark: no Java" in said and "apt-get" not in system.asked()


def test_an_ordinary_user_is_told_what_to_install(system: System) -> None:
    system.user(1000)
    (system.there / "python3-venv").unlink()
    code, said = system.set_up()
    assert code == 1 and said.splitlines() == [
        "shimekiri: Python's venv module is missing: install it (Debian, Ubuntu: sudo apt-get install python3-venv)"
    ]
    (system.there / "python3-venv").touch()
    code, said = system.set_up()
    assert code == 0 and "without Spark: no Java" in said and "apt-get" not in system.asked()


def test_root_gets_the_venv_module_and_is_told_where_that_fails(system: System) -> None:
    (system.there / "python3-venv").unlink()
    code, said = system.set_up()
    assert code == 1 and "apt-get install python3-venv" in said.splitlines()[-1]
    (system.offered / "python3-venv").touch()
    assert system.set_up()[0] == 0
