"""The witness's environment and process. What it has said of the same pairs is not asked again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.environments.pinned_environment import PinnedEnvironment
from infra.second_witness.near_pairs import near_pairs
from infra.second_witness.pair_file import NearPair, Statement, read_statements, write_pairs
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.world.crossing_angle import LEAST_RAD, MOST_RAD
from sim_vehicles.world.motion import Motion

ROOT = Path(__file__).parents[2]
VERSION = "0.4.5"
ENVIRONMENT = PinnedEnvironment(ROOT / ".venv-witness", (f"commonroad-crime=={VERSION}",))
RECORDS = ROOT / "runs" / "witness"
SCENARIO = b"<commonRoad"


class SilentError(Exception):
    """The witness's process ended with a mistake; the text is its last line."""


def motion_of(recording: Path, python: Path) -> Motion:
    """A CommonRoad scenario is read by the witness's own library, everything else by our readers."""
    with opened(recording) as stream:
        is_scenario = SCENARIO in stream.peek(1024)
    if not is_scenario:
        return read_motion(recording)
    with TemporaryDirectory(prefix="witness-") as name:
        rows = Path(name) / f"{recording.stem}.csv"
        _run(python, "rows", str(recording), str(rows))
        return read_motion(rows)


def heard(name: str, motion: Motion, python: Path, records: Path = RECORDS) -> list[tuple[NearPair, Statement]]:
    """Every near pair of a recording with what the witness says of it. Raises SilentError."""
    pairs = near_pairs(motion)
    records.mkdir(parents=True, exist_ok=True)
    asked, said = records / f"{name}.pairs.json", records / f"{name}.statement.json"
    before = asked.read_text() if asked.exists() and said.exists() else None
    write_pairs(pairs, asked)
    if asked.read_text() != before:
        said.unlink(missing_ok=True)
        _run(python, "testify", repr(LEAST_RAD), repr(MOST_RAD), str(asked), str(said))
    return list(zip(pairs, read_statements(said), strict=True))


def _run(python: Path, *words: str) -> None:
    command = ["nice", "-n", "10", str(python), "-m", "infra.second_witness.crime", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=ROOT)
    if ended.returncode:
        raise SilentError(_last_line(ended.stderr.splitlines()))


def _last_line(lines: Sequence[str]) -> str:
    """Of what it said; nanobind's lines about leaks come after that."""
    said = [line.strip() for line in lines if line.strip() and "leak" not in line and "nanobind" not in line]
    return said[-1] if said else "it ended without a word"
