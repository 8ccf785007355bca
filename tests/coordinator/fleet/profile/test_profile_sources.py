"""Real agents: how old tuples were as they came, and what a function costs that its node calls."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from node_agent.sdk import Source
from tests.coordinator.fleet.profile.test_profile_live import done

pytestmark = pytest.mark.long

QUERY = """
shimekiri: 1
query: q
sources:
  items: {at: a, type: json, arrival: {burst: 1, period: 20 ms}, tolerance: 1 s}
  camera: {at: a, run: my.camera, every: 100 ms, max_age: 5 s}
operators:
  first: {run: pass, in: items, cost: 1 ms}
  second: {run: pass, in: camera, cost: 1 ms}
outputs:
  out: {from: first, at: a, deadline: 2 s}
  seen: {from: second, at: a, deadline: 8 s}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:0", speed: 0.5}}
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """
import time
from node_agent.sdk import source

@source("my.camera")
def camera():
    time.sleep(0.02)  # a device that blocks is no CPU time
    return sum(range(30_000))
"""


def test_ages_are_seen_and_calls_are_measured(tmp_path: Path) -> None:
    for name, text in (("query.yaml", QUERY), ("cluster.yaml", CLUSTER), ("operators.py", OPERATORS)):
        (tmp_path / name).write_text(text)
    agent = [sys.executable, "-m", "node_agent", "operators", "--operators", "operators.py", "--json"]
    listed = subprocess.run(agent, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (tmp_path / "operators.json").write_bytes(listed.stdout)
    told = done(tmp_path, "plan", "query.yaml", "cluster.yaml", "--best-effort")
    plan = json.loads((tmp_path / "plan.json").read_text())
    room_ns = plan["analysis"]["ages"]["max_age_ns"]["items"]
    assert f"items: {{max_age: {room_ns / 1e9:g} s}}" in told and "out is guaranteed with" in told
    assert "GUESSED for sources: camera 1 ms" in told
    up = [sys.executable, "-m", "coordinator", "up", "cluster.yaml", "--operators", "operators.py"]
    subprocess.run([*up, "--any-port", "--detach"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=120)
    try:
        done(tmp_path, "deploy", "plan.json")
        addresses = json.loads((tmp_path / "addresses.json").read_text())
        with Source(addresses["nodes"]["a"]["data"], "items") as source:
            for number in range(60):
                source.send(number, age_ms=300 if number == 30 else 40)
                time.sleep(0.02)
        end = time.monotonic() + 60
        while (found := json.loads(done(tmp_path, "profile", "--json")))["ages"]["items"]["tuples"] < 60:
            assert time.monotonic() < end
        words = done(tmp_path, "profile")
    finally:
        done(tmp_path, "down")
    seen = found["ages"]["items"]
    assert 40_000_000 <= seen["p50_ns"] < seen["worst_ns"] and 300_000_000 <= seen["worst_ns"] <= seen["max_age_ns"]
    assert "ages at items, of 60 tuples, too few to trust: p50 " in words and "the plan has room for" in words
    assert "its max_age, 5 s, refuses none of them" in words, "of the camera's"
    camera = found["operators"]["camera"]["a"]
    assert camera["samples"] > 5 and camera["mean_ns"] < 15_000_000 < camera["elapsed_mean_ns"]
    assert "camera on a: a call takes" not in words, "that it blocks is what the thread is for"

    told = done(
        tmp_path, "plan", "query.yaml", "cluster.yaml", "--costs", "costs.yaml", "--best-effort", "-o", "n.json"
    )
    pull = json.loads((tmp_path / "n.json").read_text())["graph"]["sources"]["camera"]["pull"]
    costs = json.loads((tmp_path / "n.json").read_text())["costs"]["camera"]
    assert "guessed" not in pull and costs["kind"] == "measured" and costs["declared_ns"] == 0
    assert pull["cost_ns"] >= camera["mean_ns"] // 2 and "GUESSED" not in told
    assert "3 of 3 measured" in told
