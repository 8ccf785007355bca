"""The page "Two Pis in ten minutes", walked in a lab: its laptop's blocks run as they stand there, on a machine of
their own, and two more machines are the Pis.

What has no counterpart in a lab is named below with what stands for it: the set-up of the clone, ssh, and Ansible with
systemd, which have tests of their own (test_wheel, test_node_agents). An agent starts with the unit's own command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.lab import namespaces
from infra.lab.namespaces import Lab

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "infra" / "nodes" / "README.md"
UNIT = ROOT / "infra" / "nodes" / "shimekiri-agent@.service"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PIS, LAPTOP = ("pi1", "pi2"), "laptop"
DONE_ALREADY = ("make setup", "make wheel", "cp -r dist ", "export PATH=")
INSTALLS, REMOVES = "ansible-playbook -i inventory.yaml agents.yaml", "ansible-playbook -i inventory.yaml remove.yaml"
SECONDS = 180
WHY_NOT = namespaces.why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


def laptop_blocks() -> list[str]:
    """The `sh` blocks of the page, but for the one that copies by ssh."""
    return [block for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "ssh " not in block]


def unit_command(node: str, folder: Path) -> list[str]:
    """ExecStart of the unit, with the settings that the page writes by hand."""
    start = next(line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")).partition("=")[2]
    printed = re.search(r"printf '%s\\n' (.*?) \|\n", PAGE.read_text(), re.DOTALL)
    assert printed is not None
    settings = dict(each.split("=", 1) for each in shlex.split(printed[1].replace("\\\n", " ")))
    command = start.replace("%i", node).replace("${CONTROL}", settings["CONTROL"]).replace("${DATA}", settings["DATA"])
    command = command.replace("$OPTIONS", settings["OPTIONS"].replace("$NODE", node))
    command = re.sub("(/opt|/etc|/var/lib)/shimekiri", rf"{folder}\1/shimekiri", command)
    return shlex.split(command)


def install(project: Path, folder: Path, node: str) -> list[str]:
    """As the page does by hand; returns how the agent is started. Both Pis have clocks of their own."""
    command = unit_command(node, folder)
    program = Path(command[0])
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("node-agent"))
    tls, operators = (Path(command[command.index(option) + 1]) for option in ("--tls", "--operators"))
    shutil.copytree(project / "certs" / node, tls)
    operators.parent.mkdir(parents=True)
    shutil.copy(project / "operators.py", operators)
    return [*command, "--clock-domain", node]


def test_the_page_from_its_first_step_to_its_last(tmp_path: Path) -> None:
    blocks = laptop_blocks()
    assert len(blocks) >= 9
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(tmp_path)}
    project, agents = tmp_path / "two_pis", list[subprocess.Popen[str]]()
    with ExitStack() as open_files, Lab([*PIS, LAPTOP]) as lab:

        def run(script: str, folder: Path) -> None:
            words = lab.command(LAPTOP, ["bash", "-e", "-c", script])
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            logs = "\n".join(log.read_text()[-1500:] for log in sorted(tmp_path.glob("*.log")))
            assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{logs}"

        def play(block: str) -> None:
            if INSTALLS in block and not agents:
                for node in PIS:
                    log = open_files.enter_context((tmp_path / f"{node}.log").open("w"))
                    agents.append(lab.start(node, install(project, tmp_path / node, node), log, environment))
            elif REMOVES in block:
                for agent in agents:
                    os.kill(agent.pid, 15)
            elif INSTALLS not in block:
                run(block, project if project.exists() else ROOT)

        for block in blocks:
            lines = [line for line in block.splitlines() if not line.startswith(DONE_ALREADY)]
            play("\n".join(lines))
        assert [agent.wait(30) for agent in agents] == [0, 0]
    (report,) = project.glob("runs/*/report.json")
    verdict = json.loads(report.read_text())
    assert verdict["completeness"]["complete"] and verdict["conservation"]["balanced"]
    (lamp,) = verdict["outputs"].values()
    assert lamp["met"] > 0  # how many are late is the machine's business
    assert len((project / "lamp.jsonl").read_text().splitlines()) > 0
    assert (project / "measured.json").is_file()
