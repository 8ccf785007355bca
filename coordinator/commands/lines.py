"""Progress of a command: lines on stderr, the same one not twice in a row."""

from __future__ import annotations

import typer


class Lines:
    """Call it with each step."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, text: str) -> None:
        if text != self._last:
            self._last = text
            typer.echo(text, err=True)
