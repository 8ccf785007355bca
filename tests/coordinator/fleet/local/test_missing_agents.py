"""One of two local agents has ended: `coordinator up` starts it again as it was, and `down` finds what was by hand."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.local import restart
from coordinator.fleet.local.local_agents import Wanted
from node_agent.sdk import Admitted, Sink, Source
from tests.coordinator.fleet.deployment.test_deploy_live import CLUSTER, QUERY, cli, wait_for

OPERATORS = """
from node_agent.sdk import operator

@operator("own.same")
def same(value):
    return value
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Agents a and b at any ports, with operators of their own and a plan."""
    (tmp_path / "query.yaml").write_text(QUERY % "pass")
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    (tmp_path / "own.py").write_text(OPERATORS)
    assert cli("plan", "query.yaml", "cluster.yaml", "--model", "paper", cwd=tmp_path).returncode == 0
    up = cli("up", "cluster.yaml", "--any-port", "--detach", "--operators", "own.py", cwd=tmp_path)
    assert up.returncode == 0, up.stderr
    try:
        done = cli("deploy", "plan.json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        yield tmp_path
    finally:
        assert cli("down", cwd=tmp_path).returncode == 0


def nodes(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "addresses.json").read_text())["nodes"]
    return found


def kill(pid: int) -> None:
    """As a crash does; until its children are gone, too."""
    process = psutil.Process(pid)
    family = [process, *process.children()]
    process.kill()
    psutil.wait_procs(family, timeout=30)


def there_and_back(folder: Path) -> None:
    """Tuples reach b and their results a."""
    address = nodes(folder)["a"]["data"]
    with Sink(address, "out", timeout=30) as results, Source(address, "s", timeout=30) as source:
        wait_for(lambda: isinstance(source.send({"n": 1}), Admitted) and _came(results))


def _came(results: Sink) -> bool:
    try:
        results.get(0.5)
    except TimeoutError:  # the link is not there again yet, or the tuple was lost on it
        return False
    return True


def test_what_is_missing_is_started_as_it_was(folder: Path) -> None:
    before = nodes(folder)
    kill(before["b"]["pid"])
    without = cli("up", "cluster.yaml", "--detach", cwd=folder)
    mend = f"coordinator up cluster.yaml --operators {folder / 'own.py'}"
    assert without.returncode == 2 and without.stderr.rstrip().endswith(mend), without.stderr
    other = cli("up", "cluster.yaml", "--state", "elsewhere", cwd=folder)
    assert other.returncode == 1 and "running already, but not as cluster.yaml has it: node" in other.stderr
    assert nodes(folder) == before

    done = cli("up", "cluster.yaml", "--detach", "--operators", "own.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "a runs already: only b is started, with the ports and the state it had" in done.stderr
    after = nodes(folder)
    assert after["b"]["pid"] != before["b"]["pid"]
    assert after == before | {"b": before["b"] | {"pid": after["b"]["pid"], "rt": after["b"]["rt"]}}
    assert "--any-port" in json.loads((folder / "addresses.json").read_text())["started_by"]
    there_and_back(folder)
    twice = cli("up", "cluster.yaml", "--detach", cwd=folder)
    assert twice.returncode == 1 and "the agents of a, b are running already; stop them" in twice.stderr


def test_in_the_foreground_it_stops_only_its_own_and_down_finds_what_was_started_by_hand(folder: Path) -> None:
    before = nodes(folder)
    kill(before["b"]["pid"])
    command = [sys.executable, "-m", "coordinator", "up", "cluster.yaml", "--operators", "own.py"]
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    wait_for(lambda: "Ctrl-C stops b\n" in (folder / "said").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, (folder / "said").read_text()
    assert (folder / "said").read_text().endswith("b stopped\n")
    after = nodes(folder)
    assert psutil.pid_exists(before["a"]["pid"]) and not psutil.pid_exists(after["b"]["pid"])

    program = Path(sys.executable).with_name("node-agent")
    at = ["--control", after["b"]["control"], "--data", after["b"]["data"], "--state=state/b"]
    by_hand = subprocess.Popen(
        [program, "run", "--name", "b", *at], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert by_hand.stdout is not None and by_hand.stdout.readline()
        refused = cli("up", "cluster.yaml", "--detach", cwd=folder)
        assert refused.returncode == 1 and "the agents of a, b are running already" in refused.stderr
        words = [sys.executable, "-m", "coordinator", "down", "--json"]
        down = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert by_hand.wait(60) == 0, "reaped here, as a shell does"
        assert json.loads(down.communicate(timeout=60)[0]) == {"a": "stopped", "b": "stopped"}
    finally:
        by_hand.kill()
        by_hand.communicate()


PLACE = AgentAddress("a", "127.0.0.1:1", "127.0.0.1:2", 9, state="/s/a")
ASKED = Wanted("a", "127.0.0.1:1", "127.0.0.1:2", Path("/s/a"))


@pytest.mark.parametrize(
    ("place", "asked", "state", "tls", "said"),
    [
        (PLACE, ASKED, None, False, ""),
        (PLACE, replace(ASKED, state=Path("/t")), None, False, ""),
        (PLACE, replace(ASKED, name="x"), None, False, "that has x, addresses.json a"),
        (replace(PLACE, pid=None), ASKED, None, False, "node a was not started here"),
        (PLACE, replace(ASKED, cores=2), None, False, "node a has 1 and is to have 2 cores"),
        (PLACE, replace(ASKED, state=Path("/t/a")), Path("/t"), False, "node a has its state in /s/a"),
        (PLACE, ASKED, None, True, "the agents speak TLS"),
    ],
)
def test_agents_of_another_cluster_are_told(
    place: AgentAddress, asked: Wanted, state: Path | None, tls: bool, said: str
) -> None:
    assert restart.why_not({"a": [place]}, [asked], state, tls) == said
