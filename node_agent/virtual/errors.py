"""Error of a simulation's input. The commands turn it into exit code 2 and its sentence."""

from __future__ import annotations

from pathlib import Path

from node_agent.error_codes import Code
from protos.mistake import Mistake, Problem


class BadInputError(Exception):
    """The user's input cannot be used: says where (`file:line` where there is one), what, and the mend."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def bad_input(
    code: Code, text: str, mend: str = "", *, subject: str = "", file: str | Path = "", line: int = 0
) -> BadInputError:
    """The error of one mistake, as `protos.mistake` says it. file: empty where it is in none."""
    return BadInputError(Problem(Mistake(code, text, mend, subject), str(file), line))
