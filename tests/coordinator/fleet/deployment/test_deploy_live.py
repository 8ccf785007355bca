"""Real agents as processes: deployed on all or on none, killed and resumed, collected completely, stopped cleanly."""

import errno
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from coordinator.errors import BadInputError
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents, AgentsError
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, LocalAgentError, Wanted
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Source
from protos import agent_pb2
from protos.plan_document import Plan
from protos.segments import records_in
from tests import command_line
from tests.coordinator.wording import has, named
from tests.node_agent.live import cut_power, free_ports
from tests.whole_plans import hashed

pytestmark = pytest.mark.long

QUERY = """
shimekiri: 1
query: there_and_back
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}}
operators:
  here:  {run: pass, in: s, cost: 10 us, nodes: [a]}
  there: {run: pass, in: here, cost: 10 us, nodes: [b]}
  back:  {run: %s, in: there, cost: 10 us, nodes: [a]}
outputs:
  out: {from: back, at: a, deadline: 2 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:%d"}
  b: {address: "127.0.0.1:%d"}
"""


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return value


class Street:
    """A cluster of two local agents, its files, and a plan for them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agents: dict[str, LocalAgent] = {}
        for name in ("a", "b"):
            self.start(name, "127.0.0.1:0", "127.0.0.1:0")
        self.plan = self.make_plan()

    def make_plan(self, run: str = "pass") -> Plan:
        query, cluster, plan = (self.root / name for name in ("query.yaml", "cluster.yaml", "plan.json"))
        query.write_text(QUERY % run)
        cluster.write_text(CLUSTER % (7700, 7710))
        made = planner.make_plan(query, cluster, Choices(model="paper"))
        plan_file.write(made, plan)
        return made

    def start(self, name: str, control: str, data: str) -> None:
        (self.agents[name],) = local_agents.start([Wanted(name, control, data, (self.root / "state" / name))])
        found = {name: agent.address for name, agent in self.agents.items() if agent.address}
        self.addresses = Addresses(self.root / "addresses.json", found)
        self.addresses.write()

    def kill(self, name: str) -> None:
        agent = self.agents[name]
        cut_power(agent.process.pid)
        agent.process.wait()

    def restart(self, name: str) -> None:
        """With the same state directory, at the same addresses."""
        address = self.agents[name].address
        assert address is not None
        self.start(name, address.control, address.data)

    def connect(self) -> Agents:
        return Agents(self.addresses.of_plan(self.plan))

    def states(self, agents: Agents) -> dict[str, list[str]]:
        return {
            name: [agent_pb2.PlanState.Name(plan.state) for plan in status.plans]
            for name, status in agents.status().items()
        }

    def send(self, count: int) -> int:
        """Put tuples in; how many were admitted."""
        with Source(self.addresses.nodes["a"].data, "s", timeout=20) as source:
            answers = source.send_many([{"n": n} for n in range(count)])
        return sum(type(answer).__name__ == "Admitted" for answer in answers)

    def close(self) -> None:
        local_agents.stop(list(self.agents.values()))


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    street.close()


def cli(*arguments: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """A command of the coordinator: those that agents outlive are processes, the others run in this one."""
    words = ["coordinator", *map(str, arguments)]
    if arguments[0] in {"up", "down"}:
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)
    said = command_line.run(cwd, shlex.join(words))
    return subprocess.CompletedProcess(words, said.code, said.out, said.err)


def test_deploy_run_stop_collect(street: Street) -> None:
    with street.connect() as agents:
        done = deploy.deploy(street.plan, agents)
        assert (done.epoch, done.changed) == (1, True)
        again = deploy.deploy(street.plan, agents)
        assert not again.changed, "the same deploy twice does nothing"
        assert [plan.epoch for status in agents.status().values() for plan in status.plans] == [1, 1]
        assert street.send(50) == 50
        assert deploy.stop({bytes.fromhex(done.plan_hash)}, agents, 60) == []
        assert street.states(agents) == {"a": [], "b": []}
        run = collect.new_run(
            street.root / "runs", street.plan, street.root / "plan.json", street.root / "addresses.json"
        )
        collected = collect.collect(run, street.plan, agents)
        assert collected.problems == [] and {each["ended"] for each in collected.traces} == {True}
        report = verdict(read_run(run)).document()
        assert report["completeness"]["complete"]
        assert report["conservation"]["admitted"] == report["conservation"]["accounted"] == 50
        assert sum(report["outputs"]["out"][key] for key in ("met", "late", "shed", "lost", "undecidable")) == 50
        size = records_of(run)
        more = collect.collect(run, street.plan, agents)
        assert more.records < collected.records, "gone on with, only what is new comes"
        assert records_of(run) == size + more.records


def records_of(run: Path) -> int:
    return sum(len(records_in(path.read_bytes())) for path in run.rglob("*.trace")) // 64


def test_an_agent_that_is_gone_is_named_and_nothing_is_deployed(street: Street) -> None:
    street.kill("b")
    with street.connect() as agents, pytest.raises(AgentsError) as caught:
        deploy.deploy(street.plan, agents)
    assert caught.value.lines() == [str(caught.value)]
    control = street.addresses.nodes["b"].control
    assert f"node b: the agent at {control} cannot be reached" in str(caught.value)
    with Agents({"a": street.addresses.nodes["a"]}) as agents:
        assert street.states(agents) == {"a": []}


def test_an_agent_that_vanishes_between_status_and_prepare_leaves_nothing(street: Street) -> None:
    with street.connect() as agents:
        steps: list[str] = []

        def progress(text: str) -> None:
            if not steps:
                street.kill("b")
            steps.append(text)

        with pytest.raises(deploy.DeployError) as caught:
            deploy.deploy(street.plan, agents, progress)
    assert named(caught.value.mistakes) == [("not_deployed", street.plan.hash), ("unreachable", "b")]
    assert steps == ["prepare on a, b", "abort on a, b"]
    street.restart("b")
    with street.connect() as agents:
        assert street.states(agents) == {"a": [], "b": []}
        assert deploy.deploy(street.plan, agents).epoch == 2, "the epoch that was given up is not used again"


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit])
def test_a_deployment_that_is_interrupted_before_the_decision_leaves_nothing(
    street: Street, ended: type[BaseException]
) -> None:
    def progress(text: str) -> None:
        if text.startswith("commit"):
            raise ended

    with street.connect() as agents:
        with pytest.raises(ended):
            deploy.deploy(street.plan, agents, progress)
        assert street.states(agents) == {"a": [], "b": []}
        assert deploy.deploy(street.plan, agents).changed


def test_an_operator_that_is_not_installed_is_refused_and_nothing_is_deployed(street: Street) -> None:
    values = street.plan.to_json()
    values["nodes"]["b"]["operators"][0]["run"] = "my.unknown"
    street.plan = hashed(values)
    with street.connect() as agents:
        with pytest.raises(deploy.DeployError) as caught:
            deploy.deploy(street.plan, agents)
        assert named(caught.value.mistakes) == [("not_deployed", street.plan.hash), ("refused_by_agent", "b")]
        assert "my.unknown" in caught.value.reasons["b"].text
        assert street.states(agents) == {"a": [], "b": []}


def test_a_new_version_replaces_the_old_one_which_drains(street: Street) -> None:
    with street.connect() as agents:
        first = deploy.deploy(street.plan, agents)
        assert street.send(5) == 5
        second = street.make_plan("filter")
        assert deploy.deploy(second, agents).epoch == first.epoch + 1
        assert street.send(5) == 5
        wait_for(lambda: street.states(agents) == {"a": ["COMMITTED"], "b": ["COMMITTED"]})
        (plan,) = agents.status()["a"].plans
        assert plan.hash.hex() == second.hash


def test_a_killed_agent_resumes_its_plan_and_both_incarnations_are_collected(street: Street) -> None:
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
    assert street.send(20) == 20
    street.kill("b")
    assert street.send(10) == 10, "the coordinator is not needed, nor the other node"
    street.restart("b")
    with street.connect() as agents:
        wait_for(lambda: street.states(agents) == {"a": ["COMMITTED"], "b": ["COMMITTED"]})
        assert street.send(20) == 20
        assert deploy.stop({bytes.fromhex(street.plan.hash)}, agents, 60) == []
        run = collect.new_run(
            street.root / "runs", street.plan, street.root / "plan.json", street.root / "addresses.json"
        )
        collected = collect.collect(run, street.plan, agents)
    assert [(each["node"], each["crashed"]) for each in collected.traces if each["node"] == "a"] == [("a", False)]
    assert sorted(each["crashed"] for each in collected.traces if each["node"] == "b") == [False, True]
    report = verdict(read_run(run)).document()
    assert report["completeness"]["complete"], report["completeness"]
    assert report["conservation"]["admitted"] == report["conservation"]["accounted"] == 50, report["conservation"]


def test_agents_killed_while_tuples_flow_leave_balanced_ledgers(street: Street) -> None:
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
    admitted, over = [0], threading.Event()

    def feed() -> None:
        """A source that connects again by itself; unanswered tuples are not counted, the ledger may have them."""
        with Source(street.addresses.nodes["a"].data, "s", timeout=30) as source:
            while not over.is_set():
                answers = source.send_many([{"n": n} for n in range(20)])
                admitted[0] += sum(type(answer).__name__ == "Admitted" for answer in answers)
                time.sleep(0.02)

    def flows() -> None:
        before = admitted[0]
        wait_for(lambda: admitted[0] > before + 200)

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        for victim in ("b", "a"):
            flows()
            street.kill(victim)
            street.restart(victim)
        flows()
    finally:
        over.set()
        feeding.join()
    with street.connect() as agents:
        assert deploy.stop({bytes.fromhex(street.plan.hash)}, agents, 60) == []
        run = collect.new_run(
            street.root / "runs", street.plan, street.root / "plan.json", street.root / "addresses.json"
        )
        assert collect.collect(run, street.plan, agents).problems == []
    report = verdict(read_run(run)).document()
    assert report["completeness"]["complete"], report["completeness"]
    assert report["conservation"]["balanced"], report["conservation"]
    assert report["conservation"]["admitted"] >= admitted[0]


def test_a_lost_commit_is_said_and_the_first_tuple_makes_up_for_it(street: Street) -> None:
    def progress(text: str) -> None:
        if text == "commit on a, b":
            street.kill("b")

    with street.connect() as agents, pytest.raises(deploy.DeployError) as caught:
        deploy.deploy(street.plan, agents, progress)
    assert named(caught.value.mistakes)[0] == ("not_confirmed", street.plan.hash) and set(caught.value.reasons) == {"b"}
    street.restart("b")
    with street.connect() as agents:
        assert street.states(agents) == {"a": ["COMMITTED"], "b": ["PREPARED"]}, "prepared is durable"
        assert street.send(3) == 3
        wait_for(lambda: street.states(agents)["b"] == ["COMMITTED"])


def test_killed_control_process_is_started_again_and_stops_no_plan(street: Street) -> None:
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
        boot = agents.status()["b"].boot
        runtime, control = sorted(psutil.Process(street.agents["b"].process.pid).children(), key=lambda each: each.pid)
        os.kill(control.pid, signal.SIGKILL)
        psutil.wait_procs([control], timeout=10)
        wait_for(lambda: not any(isinstance(reply, Exception) for reply in _try_status(agents).values()))
        assert agents.status()["b"].boot == boot and runtime.is_running()
        wait_for(lambda: agents.status()["b"].runtime_alive)
        assert street.states(agents) == {"a": ["COMMITTED"], "b": ["COMMITTED"]}
        assert street.send(5) == 5


def _try_status(agents: Agents) -> dict[str, Any]:
    return agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), 5)


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "query.yaml").write_text(QUERY % "pass")
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    assert cli("plan", "query.yaml", "cluster.yaml", "--model", "paper", cwd=tmp_path).returncode == 0
    up = cli("up", "cluster.yaml", "--any-port", "--detach", "--json", cwd=tmp_path)
    assert up.returncode == 0, up.stderr
    try:
        pids = {name: node["pid"] for name, node in json.loads(up.stdout)["nodes"].items()}
        assert set(pids) == {"a", "b"}
        twice = cli("up", "cluster.yaml", "--any-port", "--detach", cwd=tmp_path)
        assert twice.returncode == 1 and "running already" in twice.stderr
        deployed = cli("deploy", "plan.json", "--json", cwd=tmp_path)
        assert deployed.returncode == 0 and json.loads(deployed.stdout)["changed"], deployed.stderr
        status = cli("status", "--json", cwd=tmp_path)
        nodes = json.loads(status.stdout)["nodes"]
        assert status.returncode == 0 and nodes["a"]["plans"][0]["state"] == "committed"
        assert "committed" in cli("status", cwd=tmp_path).stdout
        collected = cli("collect", "--plan", "plan.json", "--no-drain", cwd=tmp_path)
        assert collected.returncode == 0 and (tmp_path / collected.stdout.strip() / "run.json").is_file()
        late = cli("stop", "--all", "--timeout", "0", cwd=tmp_path)
        assert late.returncode == 4 and "not drained within 0 s" in late.stderr
        stopped = json.loads(cli("stop", "plan.json", "--json", cwd=tmp_path).stdout)
        assert stopped["drained"] and stopped["left"] == []
        assert "no node has it: nothing to stop" in cli("stop", "plan.json", cwd=tmp_path).stderr
        os.kill(pids["b"], signal.SIGKILL)
        gone = wait_for(lambda: (each := cli("status", cwd=tmp_path)).returncode == 1 and each)
        rows = {words[0]: words[1:] for line in gone.stdout.splitlines() if len(words := line.split()) > 1}
        assert "no" in rows["a"] or "yes" in rows["a"], "whether it is in the real-time class"
        assert rows["b"] == ["unknown"] and "node b: the agent at" in gone.stdout
        refused = cli("deploy", "plan.json", cwd=tmp_path)
        assert refused.returncode == 1 and "cannot be reached" in refused.stderr
        partly = cli("collect", "--plan", "plan.json", "--json", cwd=tmp_path)
        assert partly.returncode == 1 and "node b" in partly.stderr
        assert {each["node"] for each in json.loads(partly.stdout)["traces"]} == {"a"}
    finally:
        down = cli("down", "--json", cwd=tmp_path)
    assert down.returncode == 0 and json.loads(down.stdout)["a"] == "stopped"
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    assert json.loads(cli("down", "--json", cwd=tmp_path).stdout) == {"a": "not running", "b": "not running"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_in_the_foreground_ends_without_orphans(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    command = [sys.executable, "-m", "coordinator", "up", "cluster.yaml", "--any-port"]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
    nodes = wait_for(lambda: (tmp_path / "addresses.json").exists() and address_file.load(tmp_path / "addresses.json"))
    process.send_signal(number)
    assert process.wait(60) == 0, (tmp_path / "out").read_text()
    assert not any(psutil.pid_exists(agent.pid) for agent in nodes.nodes.values())


def test_up_that_is_ended_before_it_detaches_leaves_no_agent(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (7700, 7710))
    code = (
        "import os, signal; from coordinator.cli import app; from coordinator.fleet import addresses;"
        "addresses.Addresses.write = lambda self: os.kill(os.getpid(), signal.SIGTERM); app.run()"
    )
    command = [sys.executable, "-c", code, "up", "cluster.yaml", "--any-port", "--detach"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0 and "the agents are stopped" in done.stderr, done.stderr
    assert not agents_of(tmp_path)


def agents_of(folder: Path) -> list[psutil.Process]:
    """Processes that still have to do with it."""
    return [each for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or [])]


def test_a_port_that_is_taken_is_said_and_nothing_stays_behind(tmp_path: Path) -> None:
    first, second = free_ports(4)[::2]
    (tmp_path / "cluster.yaml").write_text(CLUSTER % (first, second))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", second))
        taken.listen()
        done = cli("up", "cluster.yaml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "node b" in done.stderr and str(second) in done.stderr and "taken" in done.stderr
    assert not (tmp_path / "addresses.json").exists()
    assert not agents_of(tmp_path)


def test_an_agent_that_cannot_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(LocalAgentError, check=has(("not_started", "bad name"))):
        local_agents.start([Wanted("bad name", "127.0.0.1:0", "127.0.0.1:0", tmp_path / "state")])


def test_a_run_directory_that_cannot_be_written_is_said(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
        monkeypatch.setattr(collect, "_write", full)
        run = collect.new_run(street.root / "runs", street.plan, street.root / "plan.json", street.addresses.path)
        with pytest.raises(BadInputError) as raised:
            collect.collect(run, street.plan, agents)
    (problem,) = raised.value.problems
    assert problem.mistake.code == "unwritable" and os.strerror(errno.ENOSPC) in problem.mistake.text
    assert f"--resume {run}" in problem.mistake.mend


def test_a_run_whose_plan_cannot_be_copied_leaves_no_directory(street: Street) -> None:
    with pytest.raises(BadInputError) as raised:
        collect.new_run(street.root / "runs", street.plan, street.root / "nope.json", street.addresses.path)
    assert [problem.mistake.code for problem in raised.value.problems] == ["unwritable"]
    assert not list((street.root / "runs").iterdir())


def test_a_pid_that_is_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    agent = address_file.AgentAddress("a", "127.0.0.1:1", "127.0.0.1:2", os.getpid(), True, str(tmp_path))
    assert local_agents.stop_by_pid([agent]) == {"a": "not running"}


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": {}}', '{"nodes": {"a": {"control": "here"}}}'])
def test_addresses_that_are_none_are_bad_input(tmp_path: Path, text: str) -> None:
    (tmp_path / "addresses.json").write_text(text)
    done = cli("status", cwd=tmp_path)
    assert done.returncode == 2 and "addresses.json: " in done.stderr and "coordinator up" in done.stderr


def test_a_node_that_the_addresses_lack_is_bad_input(tmp_path: Path) -> None:
    file = Addresses(tmp_path / "x.json", {"a": address_file.AgentAddress("a", "h:1", "h:2")})
    with pytest.raises(BadInputError) as raised:
        file.of(["a", "b"])
    (problem,) = raised.value.problems
    assert problem.mistake.code == "unknown_node" and "'b'" in problem.mistake.text
