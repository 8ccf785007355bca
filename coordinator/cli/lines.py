"""What a command says: results on stdout, progress and mistakes on stderr, as wide as a terminal is.

Progress is not said twice in a row; with `--log-json` it is one JSON object a line.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.line_breaks import fitted, fitted_mistake

if TYPE_CHECKING:
    from coordinator.errors import CoordinatorError

VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Details as well.")]
PROGRESS = "progress"
_as_json = False
_quiet = False


def use_json() -> None:
    """From now on, lines are JSON objects of the form that agents write."""
    global _as_json
    _as_json = True


def using_json() -> bool:
    """Whether they are."""
    return _as_json


def be_quiet() -> None:
    """From now on, only results and errors are printed."""
    global _quiet
    _quiet = True


def is_quiet() -> bool:
    """Whether only results and errors are printed."""
    return _quiet


def say(text: str, bold: bool = False, color: str | None = None) -> None:
    """A sentence of the result, or lines of them; of `--json` and of what programs read as it stands it is none."""
    typer.secho(fitted(text, sys.stdout), bold=bold or None, fg=color)


def complain(error: CoordinatorError) -> None:
    """An error in sentences on stderr, one per line, and where to read what to do."""
    for line in (*error.lines(), *_hints(error)):
        sys.stderr.write(fitted_mistake(line, sys.stderr) + "\n")


def _hints(error: CoordinatorError) -> list[str]:
    """At most a line, of an error that does not say what to do."""
    from coordinator import error_reference
    from coordinator.errors import InfeasibleError

    if error.details or isinstance(error, InfeasibleError):
        return []
    found = error_reference.hint(error.mistakes)
    return [found] if found else []


def tell(text: str, event: str = PROGRESS) -> None:
    """One line. event: what it is about, for machines."""
    if _quiet and event == PROGRESS:
        return
    if _as_json:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = {
            "at": at,
            "node": "",
            "part": "coordinator",
            "level": "info",
            "event": event,
            "text": text,
            "fields": {},
        }
        typer.echo(json.dumps(found, separators=(",", ":")), err=True)
        return
    typer.echo(fitted(text, sys.stderr), err=True)


class LineProgress:
    """Call it with each step."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, text: str) -> None:
        if text != self._last:
            self._last = text
            tell(text)
