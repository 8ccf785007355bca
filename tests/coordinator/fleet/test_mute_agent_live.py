"""An agent that stands still as a whole: `coordinator status` calls it unknown, with why, and shows all others."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from coordinator.fleet import grpc_calls
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.identity.tls_probe import PROBE_S
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import Wanted
from coordinator.monitoring.status_response import ANSWER_S

pytestmark = pytest.mark.long


def status(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Of the agents of that folder, as a user asks for it."""
    command = [sys.executable, "-m", "coordinator", "status", "--addresses", "addresses.json", *options]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=300)


def test_a_frozen_agent_is_unknown_with_its_reason_beside_the_others(tmp_path: Path) -> None:
    agents = local_agents.start(
        [Wanted(name, "127.0.0.1:0", "127.0.0.1:0", tmp_path / "state" / name) for name in ("a", "b", "c")]
    )
    frozen: list[psutil.Process] = []
    try:
        found = {agent.address.name: agent.address for agent in agents if agent.address is not None}
        Addresses(tmp_path / "addresses.json", found).write()
        assert {node["reachable"] for node in json.loads(status(tmp_path, "--json").stdout)["nodes"].values()} == {True}
        supervisor = psutil.Process(next(agent.process.pid for agent in agents if agent.address == found["b"]))
        frozen = [supervisor, *supervisor.children(recursive=True)]
        for process in frozen:
            os.kill(process.pid, signal.SIGSTOP)
        told = status(tmp_path, "--json")
        assert told.returncode == 1, told.stderr
        nodes = json.loads(told.stdout)["nodes"]
        assert nodes["a"]["reachable"] and nodes["c"]["reachable"]
        assert (nodes["b"]["reachable"], nodes["b"]["state"]) == (False, "unknown")
        assert f"did not answer within {ANSWER_S:g} s: nothing is known of it" in nodes["b"]["why"]
        for_people = status(tmp_path)
        assert for_people.returncode == 1
        rows = {line.split()[0]: line for line in for_people.stdout.splitlines() if re.match(r"[abc] ", line)}
        assert rows.keys() == {"a", "b", "c"}
        assert "unknown" in rows["b"] and "unknown" not in rows["a"] + rows["c"]
        assert nodes["b"]["why"].partition(":")[0] in for_people.stdout
    finally:
        for process in frozen:
            process.resume()
        for agent in agents:
            agent.process.terminate()
        for agent in agents:
            agent.process.wait(60)


def test_the_look_at_why_is_part_of_the_time_that_an_answer_has() -> None:
    """The command waits for nothing else, so an agent is unknown ANSWER_S after it was asked."""
    assert ANSWER_S <= 2.0
    for seconds in (0.5, ANSWER_S, 30.0):
        assert 0 < grpc_calls.probe_s(seconds) <= min(PROBE_S, seconds / 4)
