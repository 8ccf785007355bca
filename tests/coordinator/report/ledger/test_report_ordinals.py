"""Four operators in a row that return several results give the longest ordinals there are; their accounts balance."""

import subprocess
import sys
from pathlib import Path

from coordinator.report.facts.reader import Run, read_run
from coordinator.report.verdict import verdict

OPERATORS = """
from node_agent.sdk import Many, operator

@operator("deep.twice", inputs={"value": "json"}, output="json")
def twice(value):
    return Many(value, value)
"""
QUERY = """
shimekiri: 1
query: deep
sources: {in: {at: a, type: json, arrival: {burst: 2, period: 1 s}}}
operators:
  M1..M4: {chain: deep.twice, in: in, cost: 10 us}
outputs: {out: {from: M4, at: a, deadline: 1 s}}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7790"}}
operators: operators.json
security: insecure-loopback
"""


def command(module: str, *words: str | Path) -> str:
    done = subprocess.run([sys.executable, "-m", module, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def deepest(tmp_path: Path) -> Run:
    """A run whose results have the greatest ordinals that there are."""
    operators, plan = tmp_path / "operators.py", tmp_path / "plan.json"
    operators.write_text(OPERATORS)
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    listing = command("node_agent", "operators", "--operators", operators, "--json")
    (tmp_path / "operators.json").write_text(listing)
    command("coordinator", "plan", tmp_path / "query.yaml", tmp_path / "cluster.yaml", "--model", "paper", "-o", plan)
    command("sim_vehicles", "simulate", plan, "--operators", operators, "--out", tmp_path / "run")
    return read_run(tmp_path / "run")


def test_the_deepest_results_find_their_ancestor(tmp_path: Path) -> None:
    told = verdict(deepest(tmp_path)).document()
    assert told["conservation"]["balanced"], told["conservation"]["problems"]
    assert told["outputs"]["out"]["met"] == 2 * 2**4
