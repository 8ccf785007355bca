"""Real agents: an operator of known cost is run, profiled, and planned with; what cannot be profiled says why."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.errors import CoordinatorError
from node_agent.sdk import Source

QUERY = """
shimekiri: 1
query: %s
sources:
  items: {at: a, type: json, arrival: {burst: 1, period: 10 ms}, max_age: 5 ms}
operators:
  spin: {run: busy, in: items, with: {cpu_us: 300}, nodes: [a]}
  %s: {run: pass, in: spin, nodes: [b]}
outputs:
  %s: {from: %s, at: b, deadline: 2 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:0", speed: 0.5}
  b: {address: "127.0.0.1:0"}
"""


def coordinator(folder: Path, *arguments: str) -> tuple[int, str]:
    """A command in this process; its exit code, and what it said."""
    app.register()
    with contextlib.chdir(folder):
        ended = CliRunner().invoke(app.app, arguments)
    if isinstance(ended.exception, CoordinatorError):
        return ended.exception.exit_code, "\n".join(ended.exception.lines())
    return ended.exit_code, ended.output


def done(folder: Path, *arguments: str) -> str:
    code, said = coordinator(folder, *arguments)
    assert code == 0, (arguments, said)
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two queries that share an operator, planned from guesses, deployed, and fed."""
    made = tmp_path_factory.mktemp("profiled")
    (made / "query.yaml").write_text(QUERY % ("q", "last", "out", "last"))
    (made / "other.yaml").write_text(QUERY % ("r", "end", "result", "end"))
    (made / "cluster.yaml").write_text(CLUSTER)
    done(made, "plan", "query.yaml", "other.yaml", "cluster.yaml")
    up = [sys.executable, "-m", "coordinator", "up", "cluster.yaml", "--any-port", "--detach"]
    subprocess.run(up, cwd=made, check=True, stdout=subprocess.DEVNULL, timeout=120)
    try:
        done(made, "deploy", "plan.json")
        yield made
    finally:
        done(made, "down")


def feed(folder: Path, tuples: int) -> None:
    addresses = json.loads((folder / "addresses.json").read_text())
    with Source(addresses["nodes"]["a"]["data"], "items") as source:
        for number in range(tuples):
            source.send(number)
            time.sleep(0.008)


def profiled(folder: Path, *options: str) -> dict[str, Any]:
    """Waits until the last tuples are through."""
    end = time.monotonic() + 60
    while True:
        told: dict[str, Any] = json.loads(done(folder, "profile", "--json", *options))
        if not told["unmeasured"] or time.monotonic() > end:
            return told


def test_guess_run_profile_plan(folder: Path) -> None:
    before = json.loads((folder / "plan.json").read_text())
    assert before["costs"]["spin"]["kind"] == "guessed"
    code, said = coordinator(folder, "profile")
    assert code == 1 and "feed tuples while it runs" in said
    assert not (folder / "costs.yaml").exists()
    feed(folder, 120)
    told = profiled(folder)
    spin = told["operators"]["spin"]["a"]
    assert spin["samples"] > 20 and 300_000 <= spin["mean_ns"] <= spin["worst_ns"]
    assert spin["mean_ns"] <= spin["elapsed_mean_ns"] * 1.01 and spin["p99_ns"] <= spin["worst_ns"]
    written = (folder / "costs.yaml").read_text()
    assert "  q:\n    spin:" in written and "  r:\n    spin:" in written, "both queries' names for what they share"

    line = done(folder, "plan", "query.yaml", "cluster.yaml", "--costs", "costs.yaml", "-o", "next.json")
    assert "costs: 2 of 2 measured (costs.yaml, 20" in line and "GUESSED" not in line
    after = json.loads((folder / "next.json").read_text())
    assert after["graph"]["operators"]["spin"]["cost_ns"] == -(-spin["worst_ns"] * 6 // 10), "speed 0.5, margin 1.2"
    both = done(folder, "plan", "query.yaml", "other.yaml", "cluster.yaml", "--costs", "costs.yaml", "-o", "both.json")
    assert "costs: 2 of 2 measured" in both, "still shared"
    mean = ["--costs", "costs.yaml", "--costs-of", "mean", "--margin", "1", "-o", "mean.json"]
    done(folder, "plan", "query.yaml", "cluster.yaml", *mean)
    least = json.loads((folder / "mean.json").read_text())
    bounds = [each["guarantee"]["out"]["from_admission_ns"] for each in (least, after)]
    assert bounds[0] < bounds[1], "bounds follow the costs"

    feed(folder, 10)
    text = done(folder, "profile", "--merge")
    assert "spin" in text and "q, r" in text
    code, said = coordinator(folder, "profile", "next.json")
    assert code == 2 and "coordinator profile plan.json" in said
    (folder / "costs.yaml").write_text("shimekiri: 1\ncosts: {q: {spin: {run: busy}}}\n")
    code, said = coordinator(folder, "profile", "--merge")
    assert code == 2 and said.startswith("costs.yaml:2: costs.q.spin.on is missing")
    feeding = _feeding(folder)
    part = ["--seconds", "0.2", "--merge", "-o", "other/costs.yaml", "--json"]
    again = json.loads(done(folder, "profile", *part))
    feeding.terminate()
    feeding.wait(60)
    assert again["operators"]["spin"]["a"]["samples"] > 0 and (folder / "other" / "costs.yaml").exists()


def _feeding(folder: Path) -> subprocess.Popen[bytes]:
    """Feeds in a process of its own until it is told that tuples were admitted."""
    code = (
        "import sys, time, json; from node_agent.sdk import Source\n"
        "with Source(json.load(open('addresses.json'))['nodes']['a']['data'], 'items') as source:\n"
        "    for number in range(10000):\n"
        "        source.send(number); time.sleep(0.01)\n"
        "        if number == 5: print('began', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    return process
