"""An environment of its own with the wheel and an extra: its packages, the room they take, and whether it starts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")


@dataclass(frozen=True, slots=True)
class Installed:
    """dependencies: packages beside the product; megabytes: of all files in the environment; said: of --version."""

    dependencies: list[str]
    megabytes: float
    said: str

    def __str__(self) -> str:
        return f"{len(self.dependencies)} dependencies, {self.megabytes:.0f} MB, {self.said}"


def install(wheel: Path, extra: str, program: str, folder: Path) -> Installed:
    """Of `wheel[extra]`; extra: empty for the agent alone; program: which must say its version; folder: a new one.

    Raises CalledProcessError.
    """
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = str(folder / "bin" / "python")
    into = (*PIP[:3], "--python", python, *PIP[3:])
    _run(*into, "install", "-q", "--no-warn-script-location", f"{wheel}[{extra}]" if extra else str(wheel))
    listed = _run(*into, "list", "--format=freeze").splitlines()
    names = sorted(line.partition("==")[0] for line in listed if "==" in line)
    said = _run(str(folder / "bin" / program), "--version").strip()
    return Installed([name for name in names if name != "shimekiri"], size_mb(folder), said)


def size_mb(folder: Path) -> float:
    """Of the files below, each once, in millions of bytes."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def _run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
