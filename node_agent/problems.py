"""The shape of an agent's errors that have a code."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from node_agent.error_codes import Code
    from protos.mistake import Mistake, Problem


class ProblemError(Exception):
    """Something that a user gave cannot be used. problem: what is wrong and where, as `protos.mistake` says it; file: a
    path, or its text."""

    problem: "Problem"

    def __init__(
        self, code: "Code", text: str, mend: str = "", *, subject: str = "", file: object = "", line: int = 0
    ) -> None:
        from protos.mistake import Mistake, Problem  # an agent that refuses nothing loads neither

        self.code = code
        self.problem = Problem(Mistake(code, text, mend, subject), str(file), line)
        super().__init__(str(self.problem))

    @property
    def mistake(self) -> "Mistake":
        """What is wrong, without the place."""
        return self.problem.mistake


class UnusableValueError(ProblemError, ValueError):
    """A value that a program gives cannot be used."""
