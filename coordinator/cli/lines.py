"""Progress of a command: lines on stderr, the same one not twice in a row; with `--log-json` one JSON object each."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import typer

_as_json = False


def use_json() -> None:
    """From now on, lines are JSON objects of the form that agents write."""
    global _as_json
    _as_json = True


def using_json() -> bool:
    """Whether they are."""
    return _as_json


def tell(text: str, event: str = "progress") -> None:
    """One line. event: what it is about, for machines."""
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
        text = json.dumps(found, separators=(",", ":"))
    typer.echo(text, err=True)


class LineProgress:
    """Call it with each step."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, text: str) -> None:
        if text != self._last:
            self._last = text
            tell(text)
