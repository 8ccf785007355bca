"""Operators that raise: `profile` says so instead of asking for tuples, `status` where the trace back stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from node_agent.sdk import Admitted, Source
from tests.coordinator.fleet.deployment.test_deploy_live import wait_for
from tests.coordinator.fleet.profile.test_profile_live import coordinator, done

QUERY = """
shimekiri: 1
query: q
sources:
  items: {at: a, type: json, arrival: {burst: 20, period: 100 ms}}
operators:
  %s
outputs:
  out: {from: guard, at: a, deadline: 2 s}
"""
FIRST = "first: {run: pass, in: items, cost: 1 us}"
AFTER = "local: {run: own.local, in: %s, cost: 1 us}\n  guard: {run: pass, in: local, cost: 1 us}"
OPERATORS = """
from node_agent.sdk import operator

@operator("own.local", inputs={"reading": "json"}, output="json")
def local(reading):
    raise KeyError("pressure")
"""


def test_calls_that_raise(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OPERATORS)
    (tmp_path / "cluster.yaml").write_text('shimekiri: 1\nnodes: {a: {address: "127.0.0.1:0"}}\noperators: own.json\n')
    listing = [sys.executable, "-m", "node_agent", "operators", "--operators", "own.py", "--json"]
    (tmp_path / "own.json").write_bytes(subprocess.run(listing, cwd=tmp_path, check=True, capture_output=True).stdout)
    up = [sys.executable, "-m", "coordinator", "up", "cluster.yaml", "--any-port", "--detach", "--operators", "own.py"]
    subprocess.run(up, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=120)
    try:
        fed(tmp_path, AFTER % "items")
        code, said = coordinator(tmp_path, "profile")
        assert code == 1 and "was measured: local on a: 5 calls raised; they are not in these figures" in said

        fed(tmp_path, f"{FIRST}\n  {AFTER % 'first'}")
        said = done(tmp_path, "profile")
        assert "local on a: 10 calls raised" in said, "since its runtime began"
        assert "no call was measured of guard: did any tuple reach it?" in said
        told = json.loads(done(tmp_path, "profile", "--json"))
        assert told["raised"] == {"local": {"a": 10}} and told["unmeasured"] == ["local", "guard"]
        code, said = coordinator(tmp_path, "status")
        log = next(line for line in said.splitlines() if "why operators raised" in line).rpartition(": ")[2]
        assert "10 times that operator local raised" in said and log == "state/a/agent.log"
        assert "KeyError: 'pressure'" in (tmp_path / log).read_text()
    finally:
        done(tmp_path, "down")


def fed(folder: Path, operators: str) -> None:
    """Five tuples go into a plan, and each raises."""
    (folder / "query.yaml").write_text(QUERY % operators)
    done(folder, "plan", "query.yaml", "cluster.yaml", "--best-effort")
    done(folder, "deploy", "plan.json", "--replace")
    before = raised(folder)
    with Source(json.loads((folder / "addresses.json").read_text())["nodes"]["a"]["data"], "items") as source:
        assert all(isinstance(source.send({"n": n}), Admitted) for n in range(5))
    wait_for(lambda: raised(folder) == before + 5, 20)


def raised(folder: Path) -> int:
    counters = json.loads(coordinator(folder, "status", "--json")[1])["nodes"]["a"]["counters"]
    return int(counters.get("operator_errors.local", 0))
