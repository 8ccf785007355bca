"""What to do about a command line that cannot be read, where the sentence of the parser does not say it."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from coordinator.cli.line_breaks import fitted_mistake

UsageError: Any = typer.BadParameter.__base__  # of click, or of what typer has of it: that differs between releases
OF_A_PLAN = frozenset({"deploy", "simulate", "stop", "profile"})
LEAD = "Error: "  # what the parser begins with
NUMBERS = ("float", "integer", "float range", "integer range", "int", "int range")  # as the parser calls them


class MendingGroup(TyperGroup):
    """Commands whose mistaken command lines are answered with what to do."""

    def invoke(self, ctx: Any) -> Any:
        """The command. Raises UsageError with the mend behind its sentence."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if mend := mend_of(error.message, error.ctx.info_name or "" if error.ctx else ""):
                error.message = f"{error.message.removesuffix('.')}; {mend}"
            shown = fitted_mistake(f"{LEAD}{error.format_message()}", sys.stderr).removeprefix(LEAD)
            error.format_message = lambda: shown
            raise


def mend_of(sentence: str, command: str) -> str:
    """What to do; empty where the sentence has it, or where nothing is known of it."""
    if found := re.fullmatch(r"'(.*)' is not a valid (.*)\.", sentence):
        return f"write {_number(found[1], found[2])}" if found[2] in NUMBERS else ""
    if sentence.endswith("is not readable."):
        return "give yourself the right to read it: chmod u+r"
    if sentence.startswith("Got unexpected extra argument"):
        if command in OF_A_PLAN and ".yaml" in sentence:
            return f"'{command}' takes a plan.json, which 'coordinator plan QUERY... CLUSTER' makes"
        return f"'coordinator {command} --help' shows what it takes"
    return ""


def _number(given: str, kind: str) -> str:
    """One like that which was given, without what is behind it."""
    is_whole = kind.startswith("int")
    digits = re.match(r"\d+" if is_whole else r"\d+(\.\d+)?", given)
    return f"a {'whole ' if is_whole else ''}number without a unit, like {digits[0] if digits else 10}"


__all__ = ["MendingGroup", "mend_of"]
