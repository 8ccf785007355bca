"""Stages of a command on stderr: a line for what is done, and what goes on where that is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.cli import lines
from coordinator.cli.lines import LineProgress

if TYPE_CHECKING:
    from rich.status import Status


class StageLines:
    """Use it in a `with` statement, and tell it of each stage as it begins, goes on and has ended. verbose: with the
    lines within stages."""

    def __init__(self, verbose: bool = False) -> None:
        self._verbose = verbose
        self._stage = ""
        self._say = LineProgress()
        self._status: Status | None = None

    def __enter__(self) -> StageLines:
        from rich.console import Console

        self._status = Console(stderr=True, quiet=lines.is_quiet()).status("")
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._status is not None
        self._status.stop()

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._stage = stage
        self.now("")

    def now(self, text: str) -> None:
        """What goes on in it."""
        from rich.markup import escape

        assert self._status is not None
        self._status.update(escape(f"{self._stage:<8} {text}"))

    def done(self, text: str) -> None:
        """It has ended, with this."""
        self._say(f"{self._stage:<8} {text}")

    def say(self, text: str) -> None:
        """A line within a stage, where details are wanted."""
        if self._verbose:
            self._say(f"{'':<8} {text}")
