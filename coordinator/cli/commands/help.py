"""`coordinator help`: what an error code means and what to do, or the help of a command."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from coordinator.cli import completion
from coordinator.errors import CoordinatorError, Mistake


class UnknownCodeError(CoordinatorError):
    """Neither a code nor a command."""

    exit_code = 2


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command("help")
    def help_(
        context: typer.Context,
        code: Annotated[
            str,
            typer.Argument(
                metavar="[CODE|COMMAND]", autocompletion=completion.codes, help="Of an error, or a command."
            ),
        ] = "",
    ) -> None:
        """Say what an error code means: where it comes from, in which sentences, and what to do. Of a command, its
        help."""
        from coordinator import error_reference

        whole = context.parent
        assert whole is not None and isinstance(whole.command, TyperGroup)
        command = whole.command.get_command(whole, code)
        if not code:
            typer.echo(whole.get_help())
        elif command is not None:
            typer.echo(command.get_help(typer.Context(command, parent=whole, info_name=code)))
        elif found := error_reference.entries(code):
            typer.echo("\n".join(line for entry in found for line in entry.lines()))
        else:
            near = error_reference.nearest(code, whole.command.list_commands(whole))
            mend = f"did you mean {' or '.join(near)}?" if near else "docs/reference/errors has all codes"
            raise UnknownCodeError(Mistake("unknown_name", f"'{code}' is no error code and no command", mend, code))
