"""The reference pages of commands and their options, made from the parsers of the three programs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer.main

from coordinator.cli import app as coordinator_app
from node_agent.tools import cli as agent_cli
from sim_vehicles.cli import app as vehicles_app

FOLDER = Path("docs/reference/commands")
MADE = "This page is made from the parser of `{program}` by `python -m infra.generate`."
HIDDEN = frozenset({"help", "quiet", "install_completion", "show_completion"})  # of every command, and of the shell


@dataclass(frozen=True)
class Option:
    """An argument or an option as one writes it, with its default where it has one."""

    written: str
    about: str
    default: str = ""


@dataclass(frozen=True)
class Command:
    """usage: the line after the program's name."""

    name: str
    about: str
    usage: str
    options: tuple[Option, ...]


def pages() -> dict[Path, str]:
    """The pages by path, in Markdown."""
    coordinator_app.register()
    programs = {
        "coordinator": _of_typer(coordinator_app.app),
        "node-agent": _of_argparse(agent_cli.command_line()),
        "sim-vehicles": _of_typer(vehicles_app.app),
    }
    return {FOLDER / f"{name.replace('-', '_')}.md": _page(name, *found) for name, found in programs.items()}


def _page(program: str, whole: Command, commands: list[Command]) -> str:
    lines = [f"# Commands of {program}", "", _text(whole.about), "", MADE.format(program=program), ""]
    lines += _options(whole)
    for command in commands:
        lines += [f"## {program} {command.name}", "", _text(command.about), ""]
        lines += ["```sh", f"{program} {command.usage}", "```", ""]
        lines += _options(command)
    return "\n".join(lines).rstrip() + "\n"


def _options(command: Command) -> Iterator[str]:
    if command.options:
        yield "| option | what | default |"
        yield "|---|---|---|"
        for each in command.options:
            default = f"`{_cell(each.default)}`" if each.default else ""
            yield f"| `{_cell(each.written)}` | {_cell(each.about)} | {default} |"
        yield ""


def _text(about: str) -> str:
    """Lines that are indented, which are commands, as code."""
    return re.sub(r"^ +", "    ", about.replace("\\[", "["), flags=re.MULTILINE)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _of_typer(app: typer.Typer) -> tuple[Command, list[Command]]:
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="")
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    return _typed(group), [_typed(each) for each in commands if not each.hidden]


def _typed(command: Any) -> Command:
    shown = [each for each in command.params if each.name not in HIDDEN and not getattr(each, "hidden", False)]
    usage = " ".join([command.name or "", *(_argument(each) for each in shown if each.param_type_name == "argument")])
    options = any(each.param_type_name == "option" for each in shown)
    about = cleandoc(command.help or "").replace("\f", "")
    return Command(command.name or "", about, usage + " [OPTIONS]" * options, tuple(map(_typed_option, shown)))


def _argument(argument: Any) -> str:
    name = argument.metavar or (argument.name or "").upper() + "..." * (argument.nargs == -1)
    return name if argument.required or "[" in name else f"[{name}]"


def _typed_option(option: Any) -> Option:
    if option.param_type_name == "argument":
        return Option(_argument(option), option.help or "", _default(option))
    value = "" if option.is_flag else f" {option.metavar or _kind(option)}"
    names = ", ".join([*option.opts, *option.secondary_opts])
    return Option(names + value, option.help or "", _default(option))


def _kind(option: Any) -> str:
    choices = getattr(option.type, "choices", None)
    return "|".join(map(str, choices)) if choices else str(option.type.name).removesuffix(" range").upper()


def _default(option: Any) -> str:
    value = option.default
    if value is None or value is False or value is ... or callable(value) or value in ((), [], ""):
        return ""
    if value is True and option.secondary_opts:
        return str(option.opts[0])
    return str(getattr(value, "value", value))


def _of_argparse(parser: argparse.ArgumentParser) -> tuple[Command, list[Command]]:
    (chosen,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    about = {each.dest: each.help or "" for each in chosen._choices_actions}
    commands = [_parsed(name, each, about.get(name, "")) for name, each in chosen.choices.items()]
    return _parsed("", parser, ""), commands


def _parsed(name: str, parser: argparse.ArgumentParser, about: str) -> Command:
    actions = [
        each
        for each in parser._actions
        if each.dest != "help" and each.help != argparse.SUPPRESS and not isinstance(each, argparse._SubParsersAction)
    ]
    placed = [_written(each) for each in actions if not each.option_strings]
    required = [_written(each) for each in actions if each.option_strings and each.required]
    usage = " ".join([name, *required, *placed]) + " [OPTIONS]" * any(each.option_strings for each in actions)
    text = parser.description or about
    return Command(name, cleandoc(text[:1].upper() + text[1:]), usage, tuple(map(_parsed_option, actions)))


def _written(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    many = {0: "", "?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}
    shown = str(value) if action.nargs is None else many.get(action.nargs, str(value))
    return " ".join(filter(None, [*action.option_strings[-1:], shown]))


def _parsed_option(action: argparse.Action) -> Option:
    names = ", ".join([*action.option_strings[:-1], _written(action)])
    default = "" if action.default in (None, False, "", [], argparse.SUPPRESS) else str(action.default)
    return Option(names, (action.help or "").replace("%%", "%"), default)


__all__ = ["pages"]
