"""Errors of this room. The commands turn one into an exit code and its sentence.

Bad input is one error here and in virtual time, since a replay reads files of both.
"""

from __future__ import annotations

from pathlib import Path

from node_agent.virtual.errors import BadInputError
from protos.mistake import Mistake, Problem
from sim_vehicles.error_codes import Code


class FeedError(Exception):
    """A live source could not be fed: no agent answers, it went away, or it does not take what is sent."""

    def __init__(self, code: Code, text: str, mend: str = "", *, subject: str = "") -> None:
        self.mistake = Mistake(code, text, mend, subject)
        super().__init__(str(self.mistake))


class MissingToolError(Exception):
    """An optional program or package is not installed: says which, and how to get it."""

    def __init__(self, code: Code, text: str, *, subject: str = "") -> None:
        self.mistake = Mistake(code, text, subject=subject)
        super().__init__(str(self.mistake))


def bad_input(
    code: Code, text: str, mend: str = "", *, subject: str = "", file: str | Path = "", line: int = 0
) -> BadInputError:
    """The error of one mistake, as `protos.mistake` says it. file: empty where it is in none."""
    return BadInputError(Problem(Mistake(code, text, mend, subject), str(file), line))


__all__ = ["BadInputError", "FeedError", "MissingToolError", "bad_input"]
