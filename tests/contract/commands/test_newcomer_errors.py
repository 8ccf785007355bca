"""Every way in which a newcomer is known to get it wrong ends in a line or two: what is wrong, and what to do about it.

The cases stand in newcomer_files.py, newcomer_operators.py and newcomer_agents.py. docs/reference/first_mistakes.md is
made of them:

    python -m tests.contract.commands.test_newcomer_errors
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.commands import newcomer_agents, newcomer_files, newcomer_operators
from tests.contract.commands.newcomer_stage import Case, Stage, addresses, prepare, run
from tests.node_agent.live import ROOT, Agent

TABLE = ROOT / "docs" / "reference" / "first_mistakes.md"
SECTIONS = newcomer_files.CASES | newcomer_operators.CASES | newcomer_agents.CASES
MOST_LINES = 3
PROGRESS = ("reading ", "prepare on ", "abort on ", "run: ledgers", "stopping ", "40 records", "node a: ", "node b: ")
OLD = "import node_agent.wire.plan_message as plan; plan.FORMAT = 0\nfrom node_agent.__main__ import main; main()"
INTERRUPTIBLE = (  # also where the parent of the tests ignores Ctrl-C, as shells do for what runs in the background
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from coordinator.__main__ import main; main()"
)
SEND = """\
import sys
from node_agent.sdk import AgentError, Source
try:
    with Source(*sys.argv[1:3], timeout=float((*sys.argv, 0.2)[3])) as belt:
        belt.send({"g": 3})
except (AgentError, ValueError) as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("newcomer") / "right"
    folder.mkdir()
    prepare(folder)
    (folder / "send.py").write_text(SEND)
    return folder


@pytest.fixture(scope="module")
def agents(right: Path) -> Iterator[dict[str, str]]:
    """a and b as they should be; bare, which is called a as well and has no operators; old, of another release."""
    root = right.parent
    with contextlib.ExitStack() as stack:
        words = {"gone_control": "127.0.0.1:2", "gone_data": "127.0.0.1:1", "a_state": str(root / "state_a")}
        operators = ("--operators", str(right / "operators.py"))
        for key, name, options in (("a", "a", operators), ("b", "b", operators), ("bare", "a", ())):
            agent = stack.enter_context(Agent(root / f"state_{key}", *options, name=name))
            words |= {f"{key}_control": f"127.0.0.1:{agent.ready['control']}", f"{key}_data": agent.data}
        ready = stack.enter_context(_old(root / "state_old"))
        words |= {f"old_{what}": f"127.0.0.1:{ready[what]}" for what in ("control", "data")}
        words["taken"] = f"127.0.0.1:{stack.enter_context(_taken()).getsockname()[1]}"
        yield words


def _taken() -> socket.socket:
    """Listens on a port whose neighbour is free, and stays so: both are below those that the kernel hands out."""
    for port in random.Random(os.getpid()).sample(range(20000, 32000), 1000):
        taken, neighbour = socket.socket(), socket.socket()
        with neighbour, contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port))
            neighbour.bind(("127.0.0.1", port + 1))
            taken.listen()
            return taken
        taken.close()
    raise AssertionError("no two ports beside each other are free")


@contextlib.contextmanager
def _old(state: Path) -> Iterator[dict[str, int]]:
    """An agent that reads local plans of another version only."""
    command = [sys.executable, "-c", OLD, "run", "--name", "a", "--state", str(state)]
    with (
        (state.parent / "old.log").open("ab") as log,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def deployed(right: Path, agents: dict[str, str]) -> dict[str, str]:
    """The plan runs on a and b; asked for by the last cases that need agents."""
    path = right.parent / "addresses.json"
    path.write_text(addresses(agents, {"a": "a", "b": "b"}))
    said = run(right, f"coordinator deploy plan.json --addresses {path}")
    assert said.code == 0, said
    return agents


def _told(stage: Stage, case: Case) -> None:
    for step in case.steps:
        step(stage)
    said = stage.run(case)
    text = said.err.replace(f"{stage.folder}/", "") if "{folder}" not in case.mend else said.err
    assert "Traceback" not in text
    assert said.code == case.code, text
    lines = [line for line in text.splitlines() if line.strip() and not _progress(line)]
    assert len(lines) in range(1 if case.code else 0, MOST_LINES + 1), text
    what, mend = stage.worded(case.what), stage.worded(case.mend)
    assert what in text, text
    assert mend in text, text
    assert case.fault in said.faults if said.faults else not case.fault, said.faults


def _progress(line: str) -> bool:
    return line.startswith(PROGRESS) and ";" not in line


def _cases(*sections: dict[str, tuple[Case, ...]]) -> pytest.MarkDecorator:
    cases = [case for section in sections for each in section.values() for case in each]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.did)


@pytest.fixture
def stage(right: Path, tmp_path: Path) -> Stage:
    """A copy of what is right, to make a mistake in."""
    folder = tmp_path / "q"
    shutil.copytree(right, folder)
    return Stage(folder, {"folder": str(folder)})


@_cases(newcomer_files.CASES, newcomer_operators.CASES)
def test_files(stage: Stage, case: Case) -> None:
    _told(stage, case)


@_cases({"": newcomer_agents.DEPLOYING})
def test_deploying(stage: Stage, agents: dict[str, str], case: Case) -> None:
    _told(Stage(stage.folder, {**agents, **stage.words}), case)


@_cases({"": newcomer_agents.RUNNING})
def test_running(stage: Stage, deployed: dict[str, str], case: Case) -> None:
    _told(Stage(stage.folder, {**deployed, **stage.words}), case)


@_cases({"": newcomer_agents.STARTING})
def test_starting(stage: Stage, agents: dict[str, str], case: Case) -> None:
    if ":80 " in case.command and int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:
        pytest.skip("here everybody may have port 80")
    try:
        _told(Stage(stage.folder, {**agents, **stage.words}), case)
    finally:
        if "--detach" in case.command and stage.path("addresses.json").exists():
            assert run(stage.folder, "coordinator down").code == 0


def test_ctrl_c_while_it_plans(stage: Stage) -> None:
    """It waits for a query that comes through a pipe, so that it is in the middle of its work for certain."""
    pipe = stage.path("query.pipe")
    os.mkfifo(pipe)
    command = [sys.executable, "-c", INTERRUPTIBLE, "plan", "query.pipe", "cluster.yaml", "-o", "new.json"]
    with subprocess.Popen(
        command, cwd=stage.folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        with pipe.open("wb"):  # returns when the reader is there
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        assert process.wait(60) == 130
    assert "Traceback" not in said and len(said.splitlines()) <= 1
    assert not stage.path("new.json").exists()


def test_what_an_operators_file_prints_is_not_in_the_list(stage: Stage) -> None:
    path = stage.path("operators.py")
    stage.write("operators.py", f"{path.read_text()}\nprint('loaded')\n")
    said = run(stage.folder, "node-agent operators --operators operators.py --json")
    assert "my.weigh" in json.loads(said.out)["operators"]
    assert said.err == "loaded\n"


def test_there_are_many_and_no_two_are_one() -> None:
    cases = [case for each in SECTIONS.values() for case in each]
    assert len(cases) >= 50
    assert len({(case.did, case.command) for case in cases}) == len(cases)


def test_the_table_is_current() -> None:
    assert TABLE.read_text() == table(), "write it again with: python -m tests.contract.commands.test_newcomer_errors"


def table() -> str:
    """docs/reference/first_mistakes.md."""
    count = sum(map(len, SECTIONS.values()))
    text = [
        "# What goes wrong first, and what is said",
        "",
        f"{count} mistakes that people make in their first hours, each made with the real command by a test. Every one",
        "ends in a line or two: what is wrong, with the file and the line where there is one, and what to do about it.",
        "Exit codes: 2 bad input, 3 infeasible, 4 out of time, 1 anything else.",
        "",
        "Made by `python -m tests.contract.commands.test_newcomer_errors` from the cases of that test; do not edit.",
    ]
    for section, cases in SECTIONS.items():
        text += [
            "",
            f"## {section}",
            "",
            "| mistake | command | exit | what is said | what to do |",
            "|---|---|---|---|---|",
        ]
        text += [
            f"| {case.did} | `{case.command}` | {case.code} | {_cell(case.what)} | {_cell(case.mend)} |"
            for case in cases
        ]
    return "\n".join(text) + "\n"


def _cell(text: str) -> str:
    return "... " + text.replace("|", "\\|").replace("`", "'").replace("{", "\\{") + " ..."


if __name__ == "__main__":
    TABLE.write_text(table())
