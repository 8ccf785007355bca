"""Agents on nodes: the unit, and the playbooks against a folder that stands for /, with a real agent in it."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from grp import getgrgid
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from coordinator.nodes import __main__ as nodes
from coordinator.nodes import answers
from tests.node_agent.live import free_ports

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
UNIT = nodes.HERE / "shimekiri-agent@.service"
QUICK = shutil.which("python3", path="/usr/bin") or sys.executable  # starts faster than one with many packages
SYSTEMCTL = Path(__file__).with_name("one_root_systemctl.py")


class Node:
    """One node, a folder; and the project that installs an agent there."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.project, self.root, self.port = folder / "project", folder / "root", free_ports(2)[0]
        self.opt, self.settings = self.root / "opt/shimekiri", self.root / "etc/shimekiri/pi1"
        self.state = self.root / "var/lib/shimekiri/pi1"
        (self.root / "etc/systemd/system").mkdir(parents=True)
        assert nodes.main([str(self.project)]) == 0
        (self.project / "dist").mkdir()
        shutil.copy(wheel, self.project / "dist")
        cluster = yaml.safe_load((self.project / "cluster.yaml").read_text())
        cluster["nodes"] = {"pi1": {"address": f"127.0.0.1:{self.port}", "policy": "edf"}}
        del cluster["links"]
        (self.project / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        self.write_inventory()

    def write_inventory(self, **more: object) -> None:
        """As the example's, but for a folder of this machine and without rights of root."""
        user = pwd.getpwuid(os.geteuid())
        variables: dict[str, object] = {
            "ansible_connection": "local", "ansible_python_interpreter": QUICK,
            "shimekiri_root": str(self.root), "shimekiri_systemctl": f"{sys.executable} {SYSTEMCTL} {self.root}",
            "shimekiri_become": False, "shimekiri_make_user": False, "shimekiri_user": user.pw_name,
            "shimekiri_group": getgrgid(user.pw_gid).gr_name, "shimekiri_python": sys.executable,
            "shimekiri_operators": ["operators.py"], "shimekiri_listen": "127.0.0.1",
            "shimekiri_options": "--no-rt", **more,
        }  # fmt: skip
        found = {"agents": {"hosts": {"pi1": None}, "vars": variables}}
        (self.project / "inventory.yaml").write_text(yaml.safe_dump(found))

    def play(self, name: str, *more: str) -> tuple[int, str]:
        """Runs a playbook; its exit code and what it said."""
        tool = Path(sys.executable).with_name("ansible-playbook")
        seen = {**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(self.root.parent)}
        done = subprocess.run(
            [str(tool), "-i", "inventory.yaml", name, *more],
            cwd=self.project, env=seen, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def coordinator(self, *words: str) -> None:
        """A command of the coordinator in the project."""
        command = [sys.executable, "-m", "coordinator", *words]
        seen = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=self.project, env=seen, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def described(self) -> str:
        """Who describes itself at the node's address."""
        self.coordinator("addresses", "cluster.yaml", "--wait", "30")
        (name,) = json.loads((self.project / "addresses.json").read_text())["nodes"]
        return str(name)

    def pid(self) -> int:
        return int((self.root / "run-shimekiri-agent@pi1").read_text())


@pytest.fixture
def node(tmp_path: Path, wheel: Path, environment: Path) -> Iterator[Node]:
    """environment: where it cannot be had, packages for this one cannot either."""
    node = Node(tmp_path, wheel)
    yield node
    subprocess.run(
        [sys.executable, str(SYSTEMCTL), str(node.root), "disable", "shimekiri-agent@pi1"], timeout=60, check=True
    )


def _changed(said: str) -> str:
    found = re.search(r"^pi1 .*changed=(\d+) .*failed=(\d+)", said, re.MULTILINE)
    assert found, said
    return f"{found[1]} changed, {found[2]} failed"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_from_nothing_to_an_agent(node: Node) -> None:
    """`make soak` goes on from here: a second run, an upgrade that fails, and back to nothing."""
    _install(node)


@pytest.mark.soak
def test_from_nothing_to_an_agent_and_back(node: Node) -> None:
    release = _install(node)
    first = node.pid()
    code, said = node.play("agents.yaml")
    assert (code, _changed(said)) == (0, "0 changed, 0 failed"), said
    assert node.pid() == first

    settings = node.settings / "next.env"
    settings.write_text(settings.read_text().replace("--no-rt", "--no-such-option"))
    found = {"release": str(release), "here": {"stdout_lines": ["runs", str(release)]}, "shimekiri_patience": 1}
    code, said = node.play("agents.yaml", "--start-at-task", "Is it what runs?", "-e", json.dumps(found))
    assert code != 0 and "What ran before was started again" in said, said
    assert "journalctl -u shimekiri-agent@pi1 says more" in said
    assert node.pid() != first and node.described() == "pi1"
    assert "--no-such-option" not in Path(f"/proc/{node.pid()}/cmdline").read_text()

    code, said = node.play("remove.yaml", "-e", "purge=true")
    assert code == 0, said
    left = {str(each.relative_to(node.root)) for each in node.root.rglob("*") if not each.is_dir()}
    assert left <= {"calls", "run-shimekiri-agent@pi1", "log-shimekiri-agent@pi1"}
    assert not node.opt.exists() and not node.settings.exists() and not node.state.exists()
    calls = (node.root / "calls").read_text().splitlines()
    assert [line for line in calls if "is-" not in line][-2:] == ["disable --now shimekiri-agent@pi1", "daemon-reload"]


def _install(node: Node) -> Path:
    """The agent is there as the unit wants it and answers. Returns the folder of its release."""
    node.coordinator("certs", "cluster.yaml")
    code, said = node.play("agents.yaml")
    assert code == 0, said
    assert node.described() == "pi1"
    assert re.search(r"ok +identity .* is of node pi1", said), said  # the doctor's
    assert {_mode(path) for path in (node.settings / "tls", node.state)} == {0o700}
    assert {(each.name, _mode(each)) for each in (node.settings / "tls").iterdir()} == {
        ("ca.pem", 0o600), ("cert.pem", 0o600), ("key.pem", 0o600),
    }  # fmt: skip
    release = (node.opt / "venv").readlink()
    assert release.parent == node.opt / "releases" and "0.1.0-" in release.name
    _verify_installed(node)
    return release


def _verify_installed(node: Node) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        return
    unit = node.root / "etc/systemd/system/shimekiri-agent@.service"
    done = subprocess.run([tool, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    about = [line for line in done.stderr.splitlines() if "shimekiri" in line]
    assert about == []


def test_a_project_that_does_not_agree_is_told_in_a_sentence(tmp_path: Path) -> None:
    wheel = tmp_path / "shimekiri-0.1.0-py3-none-any.whl"
    zipfile.ZipFile(wheel, "w").close()
    node = Node(tmp_path, wheel)
    code, said = node.play("agents.yaml")
    assert code != 0 and "certs/pi1 is not there: run 'coordinator certs' with the cluster file" in said, said
    assert not node.opt.exists()


def test_the_unit_lets_an_agent_have_what_it_needs_and_little_else() -> None:
    lines = [line for line in UNIT.read_text().splitlines() if line and line[0] not in "#["]
    told = dict(line.split("=", 1) for line in lines)
    assert (told["LimitRTPRIO"], told["CapabilityBoundingSet"], told["NoNewPrivileges"]) == ("90", "", "yes")
    assert "RestrictRealtime" not in told and "DynamicUser" not in told and "RemoveIPC" not in told
    assert int(told["TimeoutStopSec"]) > 8 and told["RestartPreventExitStatus"] == "2"
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed: the unit's text was looked at, no more")
    done = subprocess.run([tool, "verify", str(UNIT)], capture_output=True, text=True, timeout=60, check=False)
    wrong = [line for line in done.stderr.splitlines() if "shimekiri" in line and "is not executable" not in line]
    assert wrong == []
    asked = [tool, "security", "--offline=true", "--threshold=25", str(UNIT)]  # 0 to 100; systemd calls up to 25 OK
    scored = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert scored.returncode == 0, scored.stdout + scored.stderr


def test_example_inventory_and_cluster_name_the_same_nodes() -> None:
    cluster = yaml.safe_load((nodes.EXAMPLE / "cluster.yaml").read_text())
    inventory = yaml.safe_load((nodes.EXAMPLE / "inventory.yaml").read_text())["agents"]["hosts"]
    assert set(cluster["nodes"]) == set(inventory)
    assert {name: each["address"].rpartition(":")[0] for name, each in cluster["nodes"].items()} == {
        name: each["ansible_host"] for name, each in inventory.items()
    }


def test_nothing_of_a_project_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nodes.main([str(tmp_path / "two")]) == 0
    assert {each.name for each in (tmp_path / "two").iterdir()} == {*nodes.OWN, *nodes.MACHINERY}
    (tmp_path / "two/operators.py").write_text("mine")
    (tmp_path / "two/agents.yaml").write_text("old")
    assert nodes.main([str(tmp_path / "two")]) == 2
    said = capsys.readouterr().err
    assert "is there already; name another directory" in said and len(said.splitlines()) == 1
    assert nodes.main([str(tmp_path / "two"), "--again"]) == 0
    assert (tmp_path / "two/operators.py").read_text() == "mine"
    assert (tmp_path / "two/agents.yaml").read_text() == (nodes.HERE / "agents.yaml").read_text()
    (tmp_path / "file").write_text("")
    assert nodes.main([str(tmp_path / "file/below")]) == 1


def test_what_is_no_agent_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        silent.listen()
        silent.settimeout(10)
        asked = subprocess.Popen(
            [sys.executable, answers.__file__, "127.0.0.1", str(port)], stderr=subprocess.PIPE, text=True
        )
        with silent.accept()[0] as one:
            one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert "something answers, but no agent" in asked.communicate(timeout=30)[1] and asked.returncode == 1
    assert "refused" in answers.answers("127.0.0.1", port).lower()


def test_the_example_is_guaranteed(tmp_path: Path) -> None:
    assert nodes.main([str(tmp_path / "two")]) == 0
    listed = subprocess.run(
        [sys.executable, "-m", "node_agent", "operators", "--operators", tmp_path / "two/operators.py", "--json"],
        capture_output=True, cwd=ROOT, check=True,
    )  # fmt: skip
    (tmp_path / "two/operators.json").write_bytes(listed.stdout)
    from coordinator.model.choices import Choices
    from coordinator.solve import planner

    plan = planner.make_plan(tmp_path / "two/query.yaml", tmp_path / "two/cluster.yaml", Choices())
    assert plan.guarantee["lamp"].guaranteed is True
    assert set(plan.placement.values()) == {"pi1", "pi2"}
    assert all(isinstance(json.loads(line), dict) for line in (tmp_path / "two/feed.jsonl").read_text().splitlines())
