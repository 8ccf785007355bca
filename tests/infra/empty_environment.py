"""The product's wheel, and an empty environment with it: made once for all test processes, from what git knows here."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
PATIENCE = ("--retries", "1", "--timeout", "15")


class UnreachableError(Exception):
    """Packages cannot be had here and now; the text is pip's."""


def wheel(shared: Path) -> Path:
    """The product's wheel. shared: a directory of all test processes of this run."""
    return _once(shared / "wheel", _build)


def environment(shared: Path) -> Path:
    """A virtual environment with the wheel and what it demands, nothing else. Raises UnreachableError."""
    made = wheel(shared)

    def install(folder: Path) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        into = [*PIP[:3], "--python", str(folder / "bin/python"), *PIP[3:], "install", "-q", *PATIENCE, str(made)]
        _pip(into)
        return folder

    return _once(shared / "environment", install)


def wheelhouse(shared: Path) -> Path:
    """A folder with the wheels that an agent demands, for this machine. Raises UnreachableError."""
    made = wheel(shared)

    def download(folder: Path) -> Path:
        _pip([*PIP, "download", "-q", *PATIENCE, "--only-binary=:all:", "-d", str(folder), str(made)])
        (folder / made.name).unlink(missing_ok=True)
        return folder

    return _once(shared / "wheelhouse", download)


def _build(folder: Path) -> Path:
    """From a copy: a `build` directory that lies about would bring in files that are no longer there."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!tests"]
        try:
            done = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True)
            names = [Path(os.fsdecode(each)) for each in done.stdout.split(b"\0") if each]
        except (OSError, subprocess.CalledProcessError):  # not a clone
            tops = [
                each for each in ROOT.iterdir() if each.name[0] != "." and each.name not in {"tests", "runs", "build"}
            ]
            names = [path.relative_to(ROOT) for top in tops for path in (top, *top.rglob("*"))]
        for each in names:
            if (ROOT / each).is_file():
                (copy / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / each, copy / each)
        _pip([*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(copy)])
    (found,) = folder.glob("*.whl")
    return found


def _pip(command: list[str]) -> None:
    environment = {**os.environ, "SHIMEKIRI_COMPILED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return
    if "No matching distribution" in done.stderr or "Connection" in done.stderr or "timed out" in done.stderr:
        raise UnreachableError(f"no packages to install from: {done.stderr.strip().splitlines()[-1]}")
    raise AssertionError(f"{command}: {done.stderr}")


def _once(folder: Path, make: Callable[[Path], Path]) -> Path:
    """What `make` makes in the folder, which the first caller makes while the others wait."""
    with _locked(folder.with_suffix(".lock")):
        told = folder.with_suffix(".json")
        if told.exists():
            kept = json.loads(told.read_text())
            if "why" in kept:
                raise UnreachableError(kept["why"])
            return Path(kept["path"])
        folder.mkdir()
        try:
            made = make(folder)
        except UnreachableError as error:
            told.write_text(json.dumps({"why": str(error)}))
            raise
        told.write_text(json.dumps({"path": str(made)}))
        return made


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
