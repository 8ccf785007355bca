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
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coordinator.lab.namespaces import Lab
from coordinator.report.report_document import Report

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how_to" / "two_pis.md"
UNIT = ROOT / "coordinator" / "nodes" / "shimekiri-agent@.service"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PIS, LAPTOP = ("pi1", "pi2"), "laptop"
DONE_ALREADY = ("make setup", "make wheel", "cp -r dist ", "export PATH=")
INSTALLS, REMOVES = "ansible-playbook -i inventory.yaml agents.yaml", "ansible-playbook -i inventory.yaml remove.yaml"
WAITS = re.compile(r"(--wait |--timeout |^sleep )(\d+)", re.MULTILINE)
BLOCK_S, END_S = 180, 30
Words = Sequence[str]


class WalkError(Exception):
    """A block of the page failed; the text has what was said."""


@dataclass(frozen=True, slots=True)
class Pis:
    """The machines that stand for the two Pis. program: what stands for the environment's node-agent; root: of their
    file system; within: the command with which another one runs there; slower: than a Pi by so many times."""

    program: Path
    root: Path = Path("/")
    within: Callable[[Words], list[str]] = list
    slower: int = 1


@dataclass(frozen=True, slots=True)
class Walked:
    """What came of it. results: lines of lamp.jsonl; ends: exit codes of the agents."""

    report: Report
    results: int
    measured: bool
    ends: list[int]


def laptop_blocks() -> list[str]:
    """The `sh` blocks of the page, but for the one that copies by ssh."""
    return [block for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "ssh " not in block]


def walk(folder: Path, pis: Pis) -> Walked:
    """From the first step to the last. folder: for all files, of the Pis' file system. Raises WalkError, LabError."""
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin", "HOME": str(folder)}
    project, agents = folder / "two_pis", list[subprocess.Popen[str]]()
    with ExitStack() as open_files, Lab([*PIS, LAPTOP]) as lab:

        def run(script: str, where: Path) -> None:
            stretched = WAITS.sub(lambda wait: f"{wait[1]}{int(wait[2]) * pis.slower}", script)
            words = lab.command(LAPTOP, ["bash", "-e", "-c", stretched])
            done = subprocess.run(
                words, cwd=where, env=environment, capture_output=True, text=True, timeout=BLOCK_S * pis.slower,
                check=False,
            )  # fmt: skip
            if done.returncode:
                logs = "\n".join(log.read_text()[-1500:] for log in sorted(folder.glob("*.log")))
                raise WalkError(f"{stretched}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{logs}")

        def play(block: str) -> None:
            if INSTALLS in block and not agents:
                for node in PIS:
                    log = open_files.enter_context((folder / f"{node}.log").open("w"))
                    command = _install(project, folder / node, node, pis)
                    agents.append(lab.start(node, pis.within(command), log, environment))
            elif REMOVES in block:
                for agent in agents:
                    os.kill(agent.pid, 15)
            elif INSTALLS not in block:
                run(block, project if project.exists() else ROOT)

        for block in laptop_blocks():
            play("\n".join(line for line in block.splitlines() if not line.startswith(DONE_ALREADY)))
        ends = [agent.wait(END_S * pis.slower) for agent in agents]
    (path,) = project.glob("runs/*/report.json")
    report = Report.from_document(json.loads(path.read_text()))
    results = len((project / "lamp.jsonl").read_text().splitlines())
    return Walked(report, results, (project / "measured.json").is_file(), ends)


def _unit_command(node: str, folder: Path) -> list[str]:
    """ExecStart of the unit, with the settings that the page writes by hand."""
    start = next(line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")).partition("=")[2]
    printed = re.search(r"printf '%s\\n' (.*?) \|\n", PAGE.read_text(), re.DOTALL)
    assert printed is not None
    settings = dict(each.split("=", 1) for each in shlex.split(printed[1].replace("\\\n", " ")))
    command = start.replace("%i", node).replace("${CONTROL}", settings["CONTROL"]).replace("${DATA}", settings["DATA"])
    command = command.replace("$OPTIONS", settings["OPTIONS"].replace("$NODE", node))
    command = re.sub("(/opt|/etc|/var/lib)/shimekiri", rf"{folder}\1/shimekiri", command)
    return shlex.split(command)


def _install(project: Path, folder: Path, node: str, pis: Pis) -> list[str]:
    """As the page does by hand; returns how the agent is started. Both Pis have clocks of their own."""
    command = _unit_command(node, folder)
    program = Path(command[0])
    program.parent.mkdir(parents=True)
    program.symlink_to(pis.program)
    tls, operators = (Path(command[command.index(option) + 1]) for option in ("--tls", "--operators"))
    shutil.copytree(project / "certs" / node, tls)
    operators.parent.mkdir(parents=True)
    shutil.copy(project / "operators.py", operators)
    return [*(_seen(word, pis.root) for word in command), "--clock-domain", node]


def _seen(word: str, root: Path) -> str:
    """A path as the Pi has it."""
    return f"/{Path(word).relative_to(root)}" if word.startswith("/") else word
