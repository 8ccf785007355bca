"""The pages of commands have every command and option of the three parsers, and a sentence for each."""

from __future__ import annotations

import re

import pytest

from coordinator.cli.app import COMMANDS
from infra import command_reference
from node_agent.tools import cli

PAGES = {path.stem: text for path, text in command_reference.pages().items()}
OPTION = re.compile(r"^\| `(.+?)` \| (.*?) \| .*\|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "program", "names"), [("coordinator", "coordinator", COMMANDS), ("node_agent", "node-agent", cli.COMMANDS)]
)
def test_every_command_has_a_section(page: str, program: str, names: tuple[str, ...]) -> None:
    sections = re.findall(rf"^## {program} ([\w-]+)$", PAGES[page], re.MULTILINE)
    assert set(names) <= set(sections)


@pytest.mark.parametrize("page", PAGES)
def test_every_option_has_a_sentence(page: str) -> None:
    options = OPTION.findall(PAGES[page])
    assert len(options) > 30
    assert [option for option, about in options if not about] == []


def test_an_option_is_written_as_its_parser_takes_it() -> None:
    assert "| `--control HOST:PORT` | gRPC; port 0: any (default) | `127.0.0.1:0` |" in PAGES["node_agent"]
    assert "coordinator plan QUERY... CLUSTER [OPTIONS]" in PAGES["coordinator"]
