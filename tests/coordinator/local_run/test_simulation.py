"""`coordinator simulate` and `node-agent simulate`: one result, one run directory, and no child left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests import command_line

ROOT = Path(__file__).parents[3]
OPERATORS = """
import os, time
from node_agent.sdk import operator

@operator("made.steady", version="1", inputs={"value": "json"}, output="json")
def steady(value, *, at):
    print("operators may print")
    return value

@operator("made.crash", version="1", inputs={"value": "json"}, output="json")
def crash(value, *, at):
    os.abort()

@operator("made.slow", version="1", inputs={"value": "json"}, output="json")
def slow(value, *, at):
    time.sleep(60)
    return value
"""
QUERY = """shimekiri: 1
query: made
sources:
  given: {at: a, type: json, arrival: {burst: 2, period: 100 ms}}
operators:
  only: {run: made.NAME, in: given, cost: 1 ms}
outputs:
  result: {from: only, at: a, deadline: 50 ms}
"""
CLUSTER = """shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
operators: operators.json
security: insecure-loopback
"""


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """A command there."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def planned(folder: Path, name: str) -> Path:
    """A directory with a plan of one operator."""
    (folder / "operators.py").write_text(OPERATORS)
    (folder / "query.yaml").write_text(QUERY.replace("NAME", name))
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "operators.json").write_text(
        run(folder, "node_agent", "operators", "--operators", "operators.py", "--json").stdout
    )
    made = run(folder, "coordinator", "plan", "query.yaml", "cluster.yaml", "--best-effort")
    assert made.returncode == 0, made.stderr
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    """The files of a run, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planned(tmp_path_factory.mktemp("steady"), "steady")


def test_three_commands_give_one_result_and_one_run(steady: Path) -> None:
    words = ["plan.json", "--operators", "operators.py"]
    varied = ["--trials", 3, "--seed", 7, "--jitter", "exp", "--bursts", 2, "--age", "given=20ms", "--json"]
    (steady / "scenario.json").write_text(
        json.dumps({"trials": 3, "seed": 7, "jitter": "exp", "bursts": 2, "ages_ns": {"given": 20_000_000}})
    )
    vehicles = run(steady, "sim_vehicles", "simulate", *words, *varied, "--out", "1/run")
    ours = run(steady, "coordinator", "simulate", *words, *varied, "--out", "2/run")
    read = run(steady, "coordinator", "simulate", *words, "--scenario", "scenario.json", "--json", "--out", "3/run")
    agents = run(steady, "node_agent", "simulate", *words, "--scenario", "scenario.json", "--json", "--out", "4/run")
    *trials, last = map(json.loads, agents.stdout.splitlines())
    assert trials == [{"event": "trial", "trial": number, "of": 3} for number in (1, 2, 3)]
    assert last["event"] == "done" and "operators may print" in agents.stderr
    results = [
        json.loads(vehicles.stdout.splitlines()[-1]),
        json.loads(ours.stdout),
        json.loads(read.stdout),
        last["result"],
    ]
    assert [each.pop("run") for each in results] == [f"{number}/run" for number in (1, 2, 3, 4)]
    assert results[0]["admitted"] == 12 and all(each == results[0] for each in results)
    written = [files_below(steady / each) for each in "1234"]
    assert len(written[0]) == 3 and all(each == written[0] for each in written)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ('{"trails": 2}', "'trails' is unknown"),
        ('{"trials": "2"}', "trials: '2' is not a count"),
        ('{"trials": true}', "trials: True is not a count"),
        ('{"ages_ns": {"given": 1.5}}', "is not ns per source"),
        ('{"loss": NaN}', "loss: nan is not a number"),
        ('{"jitter": "much"}', "--jitter: 'much' is unknown"),
        ('{"then": [{"plan": "next.json"}]}', "then: "),
        ('{"then": [{"plan": "gone.json", "at_ns": 5}]}', "gone.json: there is no such file"),
        ("[]", "is not a JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_scenario_that_cannot_be_used_is_refused_with_what_is_wrong(
    steady: Path, tmp_path: Path, scenario: str, said: str
) -> None:
    (tmp_path / "scenario.json").write_text(scenario)
    done = command_line.run(steady, f"node-agent simulate plan.json --scenario '{tmp_path}/scenario.json' --json")
    assert done.code == 2 and said in done.err
    assert json.loads(done.out) == {"event": "failed", "why": done.err.strip()}


@pytest.mark.parametrize("words", [["gone.json"], ["plan.json", "--trials", 0], ["plan.json", "--age", "given=5"]])
def test_the_childs_exit_code_is_passed_on(steady: Path, words: list[object]) -> None:
    done = run(steady, "coordinator", "simulate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr and done.stderr


def test_an_operator_that_crashes_takes_the_child_down_alone(tmp_path: Path) -> None:
    planned(tmp_path, "crash")
    done = run(tmp_path, "coordinator", "simulate", "plan.json", "--operators", "operators.py")
    assert done.returncode == 128 + signal.SIGABRT
    assert f"the simulation was ended by signal {signal.SIGABRT.value}; look at the operators" in done.stderr


@pytest.mark.parametrize(
    ("number", "later"), [(signal.SIGINT, 0.0), (signal.SIGTERM, 0.0), (signal.SIGTERM, 0.5)]
)  # seconds after the child is there: as it starts, and as it runs
def test_a_signal_ends_the_child_too(tmp_path: Path, number: signal.Signals, later: float) -> None:
    planned(tmp_path, "slow")
    words = [sys.executable, "-m", "coordinator", "simulate", "plan.json", "--operators", "operators.py"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    children_of = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (children := children_of.read_text().split()) and time.monotonic() < end:
        pass
    child = psutil.Process(int(children[0]))
    time.sleep(later)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number and "Traceback" not in said
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
