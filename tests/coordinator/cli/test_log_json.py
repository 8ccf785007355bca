"""`--log-json` of the coordinator: its own progress, and the agents that it starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli import lines

ONE = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700"}}
security: insecure-loopback
"""


def cli(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "coordinator", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def test_up_passes_it_on_to_the_agents(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(ONE)
    up = cli("up", "cluster.yaml", "--any-port", "--detach", "--log-json", cwd=tmp_path)
    try:
        assert up.returncode == 0, up.stderr
    finally:
        down = cli("down", cwd=tmp_path)
    assert down.returncode == 0, down.stderr
    log = (tmp_path / "state" / "a" / "agent.log").read_text()
    found = [json.loads(line) for line in log.splitlines()]
    assert [each["event"] for each in found] == ["started", "ended"]


def test_progress_is_json_for_every_command(tmp_path: Path) -> None:
    done = cli("--log-json", "report", ".", cwd=tmp_path)
    assert done.returncode == 2
    told = json.loads(done.stderr.splitlines()[0])
    assert (told["part"], told["event"], told["text"]) == ("coordinator", "progress", "reading 1 run")
    assert set(told) == {"at", "node", "part", "level", "event", "text", "fields"}


def test_the_same_step_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = lines.LineProgress()
    for text in ("one", "one", "two", "one"):
        progress(text)
    assert capsys.readouterr().err == "one\ntwo\none\n"
