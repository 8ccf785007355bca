"""SUMO's programs: where they are, and calls of them. Needs the extra [record]."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sim_vehicles.errors import MissingToolError

LONGEST_S = 600.0  # a program that runs for longer hangs


def home() -> Path:
    """SUMO's folder. MissingToolError if SUMO is not installed."""
    try:
        import sumo  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise MissingToolError(
            "missing_tool",
            "recording needs SUMO, which is not installed: pip install 'shimekiri[record]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[record]')",
            subject="sumo",
        ) from None
    return Path(sumo.SUMO_HOME)


def call(program: str, options: list[str], here: Path) -> str:
    """Runs a program in the folder `here` and returns what it printed. MissingToolError if it fails."""
    command = [str(home() / "bin" / program), *options]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode:
        raise MissingToolError(
            "tool_failed", f"{program} failed: {done.stderr.strip() or done.stdout.strip()}", subject=program
        )
    return done.stdout


def version(here: Path) -> str:
    """SUMO's version, as in 1.28.0."""
    return call("sumo", ["--version"], here).splitlines()[0].split()[-1]
