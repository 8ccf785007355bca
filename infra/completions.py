"""Shell completion of `node-agent`, generated from its parser by shtab and kept with the package: an agent's machine
needs nothing more for it. `coordinator` and `sim-vehicles` have typer's own."""

import argparse
from pathlib import Path

import shtab

from node_agent.tools import shell_completion
from node_agent.tools.cli import command_line

FOLDER = Path("node_agent") / "tools" / "completions"
# Names of nodes are the keys of addresses.json, as `coordinator up` writes it; nothing where there is none.
_NAMES = r"""sed -n '/^ "nodes": {/,/^ }/s/^  "\([A-Za-z0-9_.-]*\)": {$/\1/p' addresses.json 2>/dev/null"""
_BASH = f"""
_node_agent_nodes() {{
  compgen -W "$({_NAMES})" -- "$1"
}}
"""
_ZSH = f"""
_node_agent_nodes() {{
  compadd -- ${{(f)"$({_NAMES})"}}
}}
"""
_NODES = {"bash": "_node_agent_nodes", "zsh": "_node_agent_nodes"}


def scripts() -> dict[str, str]:
    """The text per file, by its name below FOLDER."""
    return {shell_completion.file_of(shell).name: _script(shell) for shell in shell_completion.SHELLS}


def _script(shell: str) -> str:
    built = command_line()
    _say_what_completes(built)
    text: str = shtab.complete(built, shell, preamble={"bash": _BASH, "zsh": _ZSH}[shell])
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _say_what_completes(built: argparse.ArgumentParser) -> None:
    """Files and folders by their metavar, nodes by theirs."""
    for action in built._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _say_what_completes(each)
        elif isinstance(action.metavar, str) and not action.choices:
            if action.metavar.startswith("FILE"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.metavar == "NODE":
                action.complete = _NODES  # type: ignore[attr-defined]
