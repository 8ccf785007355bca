"""A corpus of plans, virtual traces and reports that stays byte for byte what it is.

Each plan is made by the commands that users type, and run in virtual time. Some of the runs are reported. Where a
change of the product is meant to change one, write the corpus again with `SHIMEKIRI_GOLDEN=write` and say in the commit
why.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.cli.app import app as coordinator
from coordinator.cli.app import register
from coordinator.errors import CoordinatorError
from sim_vehicles.cli.app import build

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).with_name("corpus")
TRACES = HERE / "traces.json"
VEHICLES, EXAMPLES = "sim_vehicles/queries", "coordinator/examples"
PAPER = (f"{VEHICLES}/collision_paper.yaml", f"{VEHICLES}/cluster_paper.yaml")
GUARANTEED = (f"{VEHICLES}/collision_guaranteed.yaml", f"{VEHICLES}/cluster_paper.yaml")
WARNING = (f"{VEHICLES}/collision_warning.yaml", f"{VEHICLES}/cluster_paper.yaml")
FLEET = (f"{VEHICLES}/collision_guaranteed.yaml", f"{VEHICLES}/fleet_monitor.yaml", f"{VEHICLES}/cluster_paper.yaml")
WINDOWS = ("tests/coordinator/spec/example_query.yaml", "tests/coordinator/spec/example_cluster.yaml")
ENDURANCE = ("infra/endurance/query.yaml", "infra/endurance/cluster.yaml")
SORTING = (f"{EXAMPLES}/sorting_line/query.yaml", f"{EXAMPLES}/sorting_line/cluster.yaml")
TWO_NODES = (f"{EXAMPLES}/two_nodes/query.yaml", f"{EXAMPLES}/two_nodes/cluster.yaml")
TEMPLATE = ("coordinator/cli/templates/query.yaml", "coordinator/cli/templates/cluster.yaml")
OWN_OPERATORS = (SORTING, TWO_NODES, TEMPLATE)
OUGHT = ("--best-effort", "--time-limit", "600")  # the end of a search is never the clock's


@dataclass(frozen=True)
class Case:
    """A plan of these files with these options, and how it runs. reported: its report is kept as well."""

    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    scenario: tuple[str, ...] = ()
    reported: bool = False


CASES = {
    "paper": Case(PAPER, ("--model", "paper"), ("--age", "v2v=100ms"), True),
    "paper_fifo": Case(PAPER, ("--allocator", "sqpr", "--policy", "fifo"), ("--age", "v2v=100ms"), True),
    "paper_operators": Case(PAPER, ("--allocator", "sqpr", "--units", "operator"), ("--jitter", "exp")),
    "paper_bts": Case(PAPER, ("--model", "paper", "--policy", "bts:phi=10ms,k=5"), ("--decision-cost", "50us")),
    "paper_adaptive": Case(
        PAPER, ("--model", "paper", "--policy", "adaptive:share=2%"), ("--jitter", "lognormal:cv=1")
    ),
    "paper_qed": Case(PAPER, ("--model", "paper", "--policy", "qed"), ("--cost-scale", "1.5"), True),
    "paper_slack": Case(PAPER, ("--model", "paper", "--policy", "slack"), ("--cost-scale", "1.2")),
    "paper_held": Case(PAPER, ("--model", "paper", "--place", "O3=b"), ("--loss", "0.05"), True),
    "guaranteed": Case(GUARANTEED, (), ("--jitter", "exp"), True),
    "guaranteed_free": Case(GUARANTEED, ("--overhead", "none"), ("--latency", "0")),
    "warning": Case(WARNING, ("--model", "paper"), (), True),
    "fleet": Case(FLEET, (), ("--jitter", "exp")),
    "fleet_apart": Case(FLEET, ("--no-sharing", "--model", "paper"), ()),
    "windows": Case(WINDOWS, ("--model", "paper"), ("--bursts", "40"), True),
    "windows_late": Case(WINDOWS, ("--model", "paper"), ("--bursts", "40", "--cost-scale", "3"), True),
    "endurance": Case(ENDURANCE, (), ("--bursts", "50", "--cost-scale", "2"), True),
    "sorting": Case(SORTING, (), ("--jitter", "exp")),
    "two_nodes": Case(TWO_NODES, (), ("--jitter", "exp", "--loss", "0.1"), True),
    "template": Case(TEMPLATE),
    "survive": Case(TEMPLATE, ("--survive", "1")),
}


def command(app: Any, *words: str | Path, codes: tuple[int, ...] = (0,)) -> None:
    register()
    done = CliRunner().invoke(app, [str(word) for word in words])
    code = done.exception.exit_code if isinstance(done.exception, CoordinatorError) else done.exit_code
    assert code in codes, f"{words}: {done.output}\n{done.exception!r}"


def with_operators(folder: Path, files: tuple[str, ...]) -> Path:
    """A copy of a query's folder, with what its operators are written down."""
    copy = folder / "project"
    shutil.copytree((ROOT / files[0]).parent, copy)
    if (copy / "operators.py.txt").exists():  # the template's
        (copy / "operators.py.txt").rename(copy / "operators.py")
    words = [sys.executable, "-m", "node_agent", "operators", "--operators", "operators.py", "--json"]
    done = subprocess.run(words, cwd=copy, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    (copy / "operators.json").write_bytes(done.stdout)
    return copy


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of each trace, by its path in the run."""
    found = sorted(run.rglob("*.trace"))
    return {path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def lasting(report: Path) -> str:
    """A report's text without the names of the folder that it is in, and without the misses one by one."""
    values = json.loads(report.read_text())
    del values["misses"]["worst"]
    return (
        json.dumps({key: value for key, value in values.items() if key != "run"}, indent=1, ensure_ascii=False) + "\n"
    )


def check(expected: Path, found: str) -> None:
    if os.environ.get("SHIMEKIRI_GOLDEN") == "write":
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(found)
    assert found == expected.read_text(), expected.name


@pytest.mark.parametrize("name", CASES)
def test_a_plan_its_traces_and_its_report_stay_what_they_are(name: str, tmp_path: Path) -> None:
    case, plan, run = CASES[name], tmp_path / "plan.json", tmp_path / "run"
    files, operators = [ROOT / file for file in case.files], tuple[str | Path, ...]()
    if case.files in OWN_OPERATORS:
        copy = with_operators(tmp_path, case.files)
        files, operators = [copy / file.name for file in files], ("--operators", copy / "operators.py")
    command(coordinator, "plan", *files, *OUGHT, *case.options, "-o", plan)
    check(HERE / "plans" / f"{name}.json", plan.read_text())
    command(build(), "simulate", plan, "--no-check-operators", *operators, *case.scenario, "--out", run)
    kept = json.loads(TRACES.read_text()) if TRACES.exists() else {}
    check(TRACES, json.dumps(kept | {name: digests(run)}, indent=1, sort_keys=True) + "\n")
    if case.reported:
        command(coordinator, "report", run, "--engine", "python", codes=(0, 3))
        check(HERE / "reports" / f"{name}.json", lasting(run / "report.json"))
