"""Builds the wheel from a clean clone of a commit, with the commit's time in place of today's: same bytes each time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

UMASK = 0o022  # modes of files are in the wheel


def commit_time(clone: Path) -> str:
    """Seconds since 1970 of the last commit, for SOURCE_DATE_EPOCH."""
    return _run(["git", "log", "-1", "--format=%ct"], clone).strip()


def clone_and_build(root: Path, folder: Path) -> Path:
    """The wheel of the last commit of `root`, built in a clone in the new `folder`. Raises CalledProcessError."""
    clone = folder / "clone"
    folder.mkdir(parents=True)
    _run(["git", "clone", "-q", "--no-hardlinks", str(root), str(clone)], root)
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps"]
    words += ["--no-build-isolation", "-w", str(folder / "dist"), str(clone)]
    _run(words, clone, {"SOURCE_DATE_EPOCH": commit_time(clone), "SHIMEKIRI_COMPILED": "0"})
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def _run(words: list[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """What it says. Raises CalledProcessError."""
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **(more or {})}, capture_output=True, text=True, check=True, umask=UMASK
    )
    return done.stdout
