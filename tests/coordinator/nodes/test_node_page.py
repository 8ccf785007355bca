"""The page for two Pis: its commands and options are those of the programs, its files those that the project has."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import typer.main

from coordinator.cli import app as coordinator
from coordinator.nodes import __main__ as nodes
from coordinator.spec.files import schema
from node_agent.tools import cli as node_agent

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "docs" / "how_to" / "two_pis.md"
PAGE = FILE.read_text()


def _commands() -> Iterator[list[str]]:
    """The words of each command line in a block, one of a pipe or a sequence at a time."""
    for block in re.findall(r"^```(?:sh|bash|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"[|;&]+", line):
                yield shlex.split(part.split(" >")[0]) if part.count('"') % 2 == 0 else part.split()


def _options(program: str, command: str) -> set[str]:
    """What a command of a program takes. Raises KeyError where there is no such command."""
    if program == "coordinator":
        coordinator.register()
        group = typer.main.get_command(coordinator.app)
        found = getattr(group, "commands")[command]  # noqa: B009 - typer's own kind of group, which stubs do not know
        return {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    (subparsers,) = (
        action for action in node_agent.command_line()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return set(subparsers.choices[command]._option_string_actions)


def test_commands_and_options_are_there() -> None:
    seen = set()
    for words in _commands():
        names = [Path(word).name for word in words]
        for program in {"coordinator", "node-agent"} & set(names):
            command, *rest = words[names.index(program) + 1 :]
            if command.startswith(")"):
                continue
            known = _options(program, command)
            assert {word for word in rest if re.match(r"--?[a-z]", word)} <= known, words
            seen.add(f"{program} {command}")
    assert {
        "coordinator certs", "coordinator addresses", "coordinator plan", "coordinator deploy", "coordinator status",
        "coordinator top", "coordinator profile", "coordinator collect", "coordinator report", "node-agent operators",
        "node-agent doctor", "node-agent charges", "node-agent feed", "node-agent listen",
    } <= seen  # fmt: skip


def test_files_and_targets_are_there() -> None:
    for words in _commands():
        if words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
        if words[:1] == ["ansible-playbook"]:
            assert {words[2], words[3]} <= {*nodes.OWN, *nodes.MACHINERY}, words
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (FILE.parent / link).exists(), link


def test_the_settings_that_it_names_are_those_of_the_playbooks() -> None:
    told = set(re.findall(r"shimekiri_\w+", PAGE + (nodes.EXAMPLE / "inventory.yaml").read_text()))
    known = set(re.findall(r"shimekiri_\w+", (nodes.HERE / "layout.yaml").read_text()))
    used = set(re.findall(r"shimekiri_\w+", (nodes.HERE / "agents.yaml").read_text()))
    assert told <= known and used <= known


def test_files_name_the_schemas_that_are_installed(tmp_path: Path) -> None:
    assert nodes.main([str(tmp_path / "two pis")]) == 0
    kinds: tuple[Literal["query", "cluster"], ...] = ("query", "cluster")
    for kind in kinds:
        first = (tmp_path / "two pis" / f"{kind}.yaml").read_text().splitlines()[0]
        assert first == f"# yaml-language-server: $schema={schema.path(kind).resolve().as_uri()}"
        own = (nodes.EXAMPLE / f"{kind}.yaml").read_text().splitlines()[0].partition("$schema=")[2]
        assert (nodes.EXAMPLE / own).resolve() == schema.path(kind).resolve()
