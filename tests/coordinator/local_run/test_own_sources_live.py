"""Sources that nodes make themselves, on two real agents: a timer here, a function that fails at times there, nobody
who feeds them; and the same plan in virtual time, with the same counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from coordinator.__main__ import main

pytestmark = pytest.mark.long

QUERY = """
shimekiri: 1
query: robot
sources:
  beat: {at: a, every: 20 ms, offset: 5 ms}
  camera: {at: b, run: my.camera, every: 50 ms, with: {base: 100}, max_age: 5 s, cost: 200 us}
  lidar: {at: b, run: my.lidar, arrival: {rate: 1000, burst: 40}, max_age: 5 s, cost: 100 us}
operators:
  alive: {run: pass, in: beat, cost: 50 us, nodes: [b]}
  see: {run: my.see, in: camera, cost: 50 us, nodes: [a]}
  scan: {run: pass, in: lidar, cost: 50 us, nodes: [a]}
outputs:
  living: {from: alive, at: b, deadline: 10 s}
  seen: {from: see, at: a, deadline: 10 s}
  scanned: {from: scan, at: a, deadline: 10 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms}]
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """
from node_agent.sdk import Aged, operator, source

@source("my.camera")
class Camera:
    def __init__(self, base):
        self.calls, self.base = 0, base

    def __call__(self):
        self.calls += 1
        if self.calls % 7 == 0:
            raise OSError("no frame")
        return None if self.calls % 3 == 0 else Aged({"call": self.base + self.calls}, age_ms=1)

@source("my.lidar")
def scan():
    yield from range(30)

@operator("my.see")
def see(frame):
    return {"seen": frame["call"]}
"""


def _command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str]:
    """What it prints as JSON, and what it says."""
    monkeypatch.setattr(sys, "argv", ["coordinator", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said, told = capsys.readouterr()
    assert ended.value.code == 0, told
    return json.loads(said), told


def _admitted(calls: int) -> int:
    return sum(1 for number in range(1, calls + 1) if number % 7 and number % 3)


def test_agents_feed_themselves_and_virtual_time_counts_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("query.yaml", QUERY), ("cluster.yaml", CLUSTER), ("operators.py", OPERATORS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    account, told = _command(monkeypatch, capsys, "run", "--local", "--json", "--for", "3s")
    assert "made by their nodes: beat, camera, lidar" in told
    assert account["conservation"]["balanced"] and account["missing"] == [] and account["unfed"] == []
    offered, outputs = account["offered"], account["outputs"]
    policed = {name: one["policed"] for name, one in offered.items()}  # on a machine that stood still now and then
    assert set(offered["beat"]["refused"]) <= {"missed"} and set(offered["camera"]["refused"]) <= {"missed", "raised"}
    beats, raised = offered["beat"]["admitted"], offered["camera"]["refused"]["raised"]
    calls = next(
        calls for calls in range(7 * raised, 7 * raised + 8) if _admitted(calls) == offered["camera"]["admitted"]
    )
    assert beats >= 50 and calls >= 20 and calls // 7 == raised and offered["lidar"]["offered"] == 30
    assert outputs["living"]["delivered"] == beats - policed["beat"]
    assert outputs["seen"]["delivered"] == offered["camera"]["admitted"] - policed["camera"]
    assert outputs["scanned"]["delivered"] == 30 - policed["lidar"]
    (ended,) = [each for each in account["said"] if each["event"] == "source_ended"]
    assert (ended["node"], ended["fields"]["source"]) == ("b", "lidar")
    assert any(each["event"] == "source_error" and "no frame" in each["text"] for each in account["said"])
    plan = str(Path(account["run"]) / "plan.json")

    for bursts, source, output, results in (
        (beats, "beat", "living", beats), (calls, "camera", "seen", offered["camera"]["admitted"]),
    ):  # fmt: skip
        run = str(tmp_path / source)
        words = ("simulate", plan, "--operators", "operators.py", "--bursts", str(bursts), "--json", "--out", run)
        found, _ = _command(monkeypatch, capsys, *words)
        assert found["outputs"][output]["met"] == results
        _command(monkeypatch, capsys, "report", run, "--engine", "python", "--json")
        virtual = json.loads((Path(run) / "report.json").read_text())
        assert virtual["offered"][source]["admitted"] == results
        assert virtual["offered"]["lidar"]["admitted"] == 30
        if source == "camera":
            assert virtual["offered"]["camera"]["refused"] == {"raised": raised}
            assert found["refused"] == raised
            (failed,) = found["failures"]
            assert failed.startswith("source camera on node b raised") and "no frame" in failed
