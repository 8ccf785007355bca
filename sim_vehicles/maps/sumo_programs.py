"""SUMO's programs: where they are, and calls of them. Needs the extra [record]."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sim_vehicles.errors import MissingToolError

LONGEST_S = 600.0  # a program that runs for longer hangs


def home(purpose: str = "recording") -> Path:
    """SUMO's folder. MissingToolError, which says for what purpose, if SUMO is not installed."""
    try:
        import sumo  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise MissingToolError(
            "missing_tool",
            f"{purpose} needs SUMO, which is not installed: pip install 'shimekiri[record]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[record]')",
            subject="sumo",
        ) from None
    return Path(sumo.SUMO_HOME)


def call(program: str, options: list[str], here: Path, purpose: str = "recording", longest_s: float = LONGEST_S) -> str:
    """Runs a program in the folder `here`, without a shell, and returns what it printed. MissingToolError if it fails
    or takes longer than `longest_s`."""
    command = [str(home(purpose) / "bin" / program), *options]
    try:
        done = subprocess.run(
            command, cwd=here, capture_output=True, text=True, errors="replace", timeout=longest_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise MissingToolError(
            "tool_failed", f"{program} has not ended within {longest_s:g} s", subject=program
        ) from None
    if done.returncode:
        raise MissingToolError(
            "tool_failed", f"{program} failed: {done.stderr.strip() or done.stdout.strip()}", subject=program
        )
    return done.stdout


def version(here: Path) -> str:
    """SUMO's version, as in 1.28.0."""
    return call("sumo", ["--version"], here).splitlines()[0].split()[-1]
