"""The coordinator's command line. Each command lives in coordinator/cli/commands/<name>.py and brings `register(app)`.

Those modules import nothing heavy at their top: OR-Tools, Spark and gRPC are imported inside the command that needs
them, so that `--help` and `validate` start at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from coordinator import signals
from coordinator.cli import lines
from coordinator.cli.usage_mends import MendingGroup
from coordinator.errors import FULL, CoordinatorError

COMMANDS = (
    "init",
    "run",
    "validate",
    "plan",
    "explain",
    "adapt",
    "certs",
    "addresses",
    "up",
    "simulate",
    "deploy",
    "add",
    "remove",
    "status",
    "top",
    "profile",
    "stop",
    "collect",
    "report",
    "help",
)
HELP = (["--help"], ["-h"])
SINGLE = frozenset(COMMANDS) - {"help"}  # which knows the others

app = typer.Typer(
    name="coordinator",
    cls=MendingGroup,
    help="Plans stream queries with end-to-end deadlines, deploys them to a few nodes, and reports what was met.\n\n"
    "Exit codes: 0 done; 2 bad input; 3 infeasible; 4 out of time, or a plan that is neither guaranteed nor disproven; "
    "1 anything else; 130 Ctrl-C.\n\n"
    "Every command takes -q: results and errors only, no progress. -v adds details where it is there.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Command(TyperCommand):
    """One that can be told to be quiet."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        quiet = TyperOption(
            param_decls=["--quiet", "-q"], is_flag=True, expose_value=False, callback=_silence_progress,
            help="Results and errors only, no progress.",
        )  # fmt: skip
        self.params.append(quiet)


def _silence_progress(_: object, __: object, wanted: bool) -> None:
    if wanted:
        lines.be_quiet()


def _version(wanted: bool) -> None:
    """Says the release and ends."""
    if wanted:
        from protos.installed import release

        typer.echo(release.said("coordinator"))
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The release, and nothing else.")
    ] = False,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Progress on stderr as a JSON object per line, before any command.")
    ] = False,
) -> None:
    """What holds for every command."""
    if log_json:
        lines.use_json()


def register(*names: str) -> None:
    """Adds these commands, else every one, each once per process."""
    for name in names or COMMANDS:
        _add(name)


@cache
def _add(name: str) -> None:
    importlib.import_module(f"coordinator.cli.commands.{name}").register(app)
    for command in app.registered_commands:
        command.cls = Command


@contextmanager
def listed() -> Iterator[None]:
    """Meanwhile commands take nothing: `--help` of all of them needs of each its name and its sentence. To look at all
    that they take would take half of the time."""
    callbacks = [command.callback for command in app.registered_commands]
    for command in app.registered_commands:
        command.callback = _without_parameters(command.callback)
    try:
        yield
    finally:
        for command, callback in zip(app.registered_commands, callbacks, strict=True):
            command.callback = callback


def _without_parameters(callback: Callable[..., Any] | None) -> Callable[[], None]:
    def nothing() -> None: ...

    assert callback is not None
    nothing.__name__, nothing.__doc__ = callback.__name__, callback.__doc__
    return nothing


def asked(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that a command line is for; none where it is for no single one, or for one that shares a file."""
    words = [each for each in arguments if each != "--log-json"]
    return tuple(words[:1]) if words and words[0] in SINGLE else ()  # before a command, --help is of all


def run() -> None:
    """Runs the command line; a failure that a user can mend is told in sentences, one per line, on stderr."""
    register(*asked(sys.argv[1:]))  # what typer makes of nineteen commands takes as long as a short one of them
    signals.watch()
    try:
        with listed() if sys.argv[1:] in HELP else nullcontext():
            app()
    except CoordinatorError as error:
        lines.complain(error)
        raise SystemExit(error.exit_code) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        sys.stderr.write(f"{error.filename or 'a file'} cannot be written: {error.strerror}; make room on the disk\n")
        raise SystemExit(1) from error
