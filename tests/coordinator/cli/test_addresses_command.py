"""`coordinator addresses` and `up` with agents that speak mutual TLS: real processes, asked by name."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from coordinator.cli.app import app, register
from coordinator.cli.commands.addresses import _table, _warnings
from coordinator.errors import BadInputError
from coordinator.fleet import addresses as address_file
from coordinator.fleet import discovery, dns
from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.agents import Agents, AgentsError
from coordinator.fleet.discovery import Found
from coordinator.fleet.identity import certificate_folder, certificates
from coordinator.fleet.local.local_agents import LocalAgentError
from coordinator.fleet.local.local_cluster import wanted
from coordinator.spec.cluster import machines
from tests.coordinator.wording import facts, has
from tests.node_agent.live import free_ports

ROOT = Path(__file__).parents[3]


def start(*words: object, cwd: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "coordinator", *map(str, words)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def cli(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    process = start(*words, cwd=cwd)
    out, err = process.communicate(timeout=90)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def here(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> Result:
    """`coordinator addresses` in this process and in that folder; an error that a user would read is raised."""
    register()
    monkeypatch.chdir(folder)
    return CliRunner().invoke(app, ["addresses", *words], catch_exceptions=False)


def write_cluster(folder: Path, nodes: str, security: str = "mutual-tls") -> Path:
    path = folder / "cluster.yaml"
    path.write_text(f"shimekiri: 1\nnodes:\n{nodes}\nsecurity: {security}\n")
    return path


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Agents a, with two runtimes, and b, under mutual TLS, on the ports of cluster.yaml."""
    folder: Path = tmp_path_factory.mktemp("street")
    port = free_ports(6)[0]
    nodes = f'  a: {{address: "127.0.0.1:{port}", cores: 2}}\n  b: {{address: "localhost:{port + 3}"}}'
    write_cluster(folder, nodes)
    with pytest.raises(BadInputError, check=has(("no_identity", ""))):
        wanted(folder / "cluster.yaml", folder / "state", False, [])
    certificate_folder.make(folder / "certs", ["a", "b"], renew=False, new_ca=False, now=certificates.now())
    waiting = start("addresses", "cluster.yaml", "-o", "waited.json", "--wait", "60", cwd=folder)
    assert waiting.stderr is not None and "waiting: node a: the agent at" in waiting.stderr.readline()
    done = cli("up", "cluster.yaml", "--detach", cwd=folder)
    assert done.returncode == 0, done.stderr
    try:
        _, said = waiting.communicate(timeout=90)
        assert waiting.returncode == 0, said
        yield folder
    finally:
        assert cli("down", cwd=folder).returncode == 0


def test_what_is_written_is_where_the_agents_are(street: Path) -> None:
    up, found = (address_file.load(street / name) for name in ("addresses.json", "waited.json"))
    assert list(up.nodes) == list(found.nodes) == ["a", "a.1", "b"] and up.tls == found.tls
    for place, agent in up.nodes.items():
        assert found.nodes[place] == replace(agent, pid=None, state=None)
    text = (street / "waited.json").read_text()
    assert "pid" not in text and "state" not in text and json.loads(text)["tls"] == "certs/coordinator"
    with Agents(found.nodes) as agents:
        assert sorted(agents.status()) == ["a", "b"]


def test_the_table_and_json(street: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = here(monkeypatch, street, "cluster.yaml", "-o", "x.json")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["node", "control", "data", "version", "runtimes", "cores", "memory", "rt"]
    assert [line.split()[0] for line in lines[1:3]] == ["a", "b"] and lines[-1] == "addresses written to x.json"
    values = json.loads(here(monkeypatch, street, "cluster.yaml", "-o", "x.json", "--json").stdout)
    assert [list(agent["data"]) for agent in values["agents"]] == [["a", "a.1"], ["b"]]


def test_running_local_agents_are_not_forgotten(street: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (street / "addresses.json").read_text()
    with pytest.raises(LocalAgentError, check=has(("runs_already", "addresses.json"))):
        here(monkeypatch, street, "cluster.yaml")
    assert (street / "addresses.json").read_text() == before


def test_another_node_there_is_refused(street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (street / "cluster.yaml").read_text()
    certs = f"certificates: {street / 'certs'}\n"
    (tmp_path / "cluster.yaml").write_text(
        text.replace("  a:", "  x:").replace("  b:", "  a:").replace("x:", "b:") + certs
    )
    with pytest.raises(AgentsError) as failed:
        here(monkeypatch, tmp_path, "cluster.yaml")
    assert failed.value.exit_code == 1 and not (tmp_path / "addresses.json").exists()
    assert [line.rpartition(": ")[2] for line in failed.value.lines()] == [
        "the certificate there is node a's, not node b's; correct the address",
        "the certificate there is node b's, not node a's; correct the address",
    ]
    write_cluster(tmp_path, f'  a: {{address: "127.0.0.1:{free_ports(1)[0]}"}}', f"mutual-tls\n{certs}")
    with pytest.raises(AgentsError, check=has(("unreachable", "a"))):
        here(monkeypatch, tmp_path, "cluster.yaml")


def test_without_an_identity_or_port_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cluster(tmp_path, '  a: {address: "127.0.0.1:7700"}')
    with pytest.raises(BadInputError) as raised:
        here(monkeypatch, tmp_path, "cluster.yaml")
    (problem,) = raised.value.problems
    assert (problem.mistake.code, Path(problem.file).parts[-2:]) == ("no_identity", ("certs", "coordinator"))
    found = machines(write_cluster(tmp_path, '  a: {address: "127.0.0.1:0"}', "insecure-loopback"))
    with pytest.raises(AgentsError, check=has(("no_port", "a"))):
        discovery.find(found, 0)
    found = machines(write_cluster(tmp_path, '  a: {address: "no.such.host.invalid:7700"}'))
    with pytest.raises(AgentsError, check=has(("unknown_host", "a"))):
        discovery.find(found, 0)


def test_up_starts_agents_on_this_machine_only(tmp_path: Path) -> None:
    nodes = '  a: {address: "127.0.0.1:7700"}\n  b: {address: "192.0.2.7:7700"}'
    write_cluster(tmp_path, nodes)
    certificate_folder.make(tmp_path / "certs", ["a", "b"], renew=False, new_ca=False, now=certificates.now())
    with pytest.raises(BadInputError) as raised:
        wanted(tmp_path / "cluster.yaml", tmp_path / "state", False, [])
    (problem,) = raised.value.problems
    assert facts(problem) == ("cluster.yaml", 4, "host_elsewhere", "nodes.b.address")
    assert "192.0.2.7" in problem.mistake.text


def found(name: str, control: str, places: int = 1, **changes: Any) -> Found:
    cores = tuple(AgentAddress(name, control, control, rt=changes.get("rt", True)) for _ in range(places))
    return Found(name, control, cores, changes.get("version", discovery.own_version()), 4, 1 << 30)


def test_a_name_that_leads_to_this_machine_itself_is_no_address_for_others() -> None:
    here, there = found("a", "127.0.1.1:7700"), found("b", "10.0.0.2:7700")
    with pytest.raises(AgentsError, check=has(("own_loopback", "a"))):
        discovery.refuse_own_loopback({"a": here, "b": there})
    discovery.refuse_own_loopback({"a": here})
    discovery.refuse_own_loopback({"b": there})


def test_what_will_be_missed_later_is_said(tmp_path: Path) -> None:
    cluster = machines(write_cluster(tmp_path, '  a: {address: "10.0.0.1:7700", cores: 3}\n  b: {address: "pi2:7700"}'))
    agents = [found("a", "10.0.0.1:7700", 2), found("b", "10.0.0.2:7700", version="0.0.9", rt=False)]
    lines = _warnings(agents, cluster)
    assert lines[0] == "node a: runs 2 of the 3 cores in the cluster file; start it with --cores 3"
    assert lines[1] == f"node b: runs version 0.0.9, here is {discovery.own_version()}; install the same"
    assert "no real-time priority" in lines[2] and len(lines) == 3
    assert _table(agents)[1].split() == [
        "a",
        "10.0.0.1:7700",
        "7700,",
        "7700",
        agents[0].version,
        "2",
        "4",
        "1.0",
        "GiB",
        "yes",
    ]


def test_addresses_of_one_link_only_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(*addresses: str) -> None:
        entries = [(0, 0, 0, "", (address, 0)) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)

    known("fe80::1%eth0", "fd00::7", "10.0.0.7", "10.0.0.7")
    assert dns.resolve("pi1.local") == ["10.0.0.7", "fd00::7"]
    known("fe80::1%eth0")
    with pytest.raises(dns.UnknownHostError, check=has(("link_local_host", "pi1.local"))):
        dns.resolve("pi1.local")


def test_addresses_of_this_machine_are_known() -> None:
    assert dns.is_here("127.0.0.1") and dns.is_here("::1") and not dns.is_here("192.0.2.1")
