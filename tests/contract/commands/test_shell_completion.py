"""Completion in a real shell: scripts are sourced and asked as the shell asks them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli import completion
from infra import completions
from node_agent.tools import cli, shell_completion

BIN = Path(sys.executable).parent
ASK = """
ask() {{
  COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMP_LINE="$*"; COMP_POINT=${{#COMP_LINE}}; COMPREPLY=()
  {function} "$1" "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
  echo "${{COMPREPLY[*]}}"
}}
"""


def _bash(folder: Path, program: str, source: str, function: str, lines: list[list[str]]) -> list[list[str]]:
    """What a bash offers at the end of each of these lines."""
    asked = "\n".join(f"ask {program} " + " ".join(f"'{word}'" for word in line) for line in lines)
    script = f"source <({source})\ncomplete -p {program} >/dev/null || exit 9\n" + ASK.format(function=function) + asked
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of a query with two nodes that run."""
    (tmp_path / "query.yaml").write_text("sources: {here: 1, there: 2}\noperators: {one: 1}\noutputs: {gate: 1}\n")
    (tmp_path / "addresses.json").write_text(
        '{\n "nodes": {\n  "desk": {\n   "name": "desk"\n  },\n  "desk.1": {\n   "name": "desk.1"\n  }\n },\n'
        ' "tls": {\n  "no": {\n  }\n }\n}\n'
    )
    return tmp_path


def test_node_agent_in_bash(folder: Path) -> None:
    (folder / "in.jsonl").touch()
    (folder / "sub").mkdir()
    source = "node-agent completion bash"
    found = _bash(folder, "node-agent", source, "_shtab_node_agent", [
        ["fe"], ["feed", "--ste"], ["feed", "--format", ""], ["feed", "x", "in"], ["listen", "x", "--from", ""],
        ["run", "--state", ""], ["completion", ""],
    ])  # fmt: skip
    assert found == [
        ["feed"], ["--steady"], ["jsonl", "csv", "mcap"], ["in.jsonl"], ["desk", "desk.1"], ["sub"], ["bash", "zsh"],
    ]  # fmt: skip


def test_every_command_and_option_of_the_agent_is_in_both_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in shell_completion.SHELLS:
        assert cli.main(["completion", shell]) == 0
        said = capsys.readouterr().out
        assert said == shell_completion.file_of(shell).read_text()
        assert said == completions.scripts()[shell_completion.file_of(shell).name], "run `make protos`"
        assert all(name in said for name in cli.COMMANDS)
    assert said.startswith("#compdef node-agent")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_node_agent_in_zsh(folder: Path) -> None:
    script = shell_completion.file_of("zsh")
    done = subprocess.run(
        ["zsh", "-f", "-c", f"autoload -U compinit; compinit -D; source {script}; print $_comps[node-agent]"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "node" in done.stdout


def test_coordinator_in_bash(folder: Path) -> None:
    found = _bash(folder, "coordinator", "_COORDINATOR_COMPLETE=source_bash coordinator", "_coordinator_completion", [
        ["dep"], ["run", "--loc"], ["run", "--feed", ""], ["deploy", "plan.json", "--without", ""],
    ])  # fmt: skip
    assert found == [["deploy"], ["--local"], ["here=", "there="], ["desk"]]


def test_sim_vehicles_in_bash(folder: Path) -> None:
    source = "_SIM_VEHICLES_COMPLETE=source_bash sim-vehicles"
    assert _bash(folder, "sim-vehicles", source, "_sim_vehicles_completion", [["simu"]]) == [["simulate"]]


def test_names_come_from_the_files_here_or_from_nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert completion.outputs("") == ["gate"] and completion.outputs("x") == []
    assert completion.operators_with_equals("o") == ["one="]
    assert completion.operators_with_equals("one=d") == ["one=desk"]
    assert "edf" in completion.policies("e")
    assert completion.queries("") == []
    (folder / "plan.json").write_text('{"queries": {"pumps": {}}}')
    assert completion.queries("p") == ["pumps"]
    for damaged in ("{", "[]", "nodes: 3", ""):
        for name in ("query.yaml", "cluster.yaml", "plan.json", "addresses.json"):
            (folder / name).write_text(damaged)
        assert completion.nodes("") == completion.sources_with_equals("") == completion.queries("") == []
