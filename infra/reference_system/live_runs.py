"""The reference system on agents of this machine, for some seconds, by the commands that a user types."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.reference_system.kpis import Kpis, kpis
from infra.reference_system.reference_files import OPERATORS, write
from infra.reference_system.reference_graph import DRIVE, HOT_PATH
from infra.reference_system.run_kpis import observed, with_ages
from protos import plan_document


@dataclass(frozen=True)
class Live:
    """What came of it. bound_ns: of the hot path, with what sockets, decisions and side inputs cost, age_bound_ns: of
    the data behind a command to drive; 0: none."""

    load: float
    nodes: int
    seconds: int
    bound_ns: int
    age_bound_ns: int
    kpis: Kpis


def live(load: float, nodes: int, seconds: int, limit_s: int = 10) -> Live:
    """Operators burn their declared cost, as `emulate` has it. Raises RuntimeError with what a command says."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        query, cluster = write(folder, load, nodes, live=True)
        plan, runs = folder / "plan.json", folder / "runs"
        made = ["plan", query, cluster, "-o", plan, "--policy", "edf", "--time-limit", limit_s, "--best-effort"]
        _coordinator(*map(str, made))
        ran = ["run", "--local", "--plan", plan, "--for", f"{seconds}s", "--operators", OPERATORS]
        _coordinator(*map(str, [*ran, "-o", runs, "--no-check-operators"]))
        (run,) = runs.iterdir()
        found = plan_document.parse((run / "plan.json").read_bytes())
        hot, drive = found.guarantee[HOT_PATH].bound_ns or 0, found.guarantee[DRIVE].age_bound_ns or 0
        return Live(load, nodes, seconds, hot, drive, kpis([with_ages(run, observed(run))]))


def _coordinator(*arguments: str) -> None:
    command = [sys.executable, "-m", "coordinator", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):  # 3: a verdict that is no good one is a result here
        raise RuntimeError(f"coordinator {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
