"""The few ways in which the coordinator fails, each with its exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with a file a user wrote; `line` counts from 1, 0 means the file as a whole."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class CoordinatorError(Exception):
    """Any failure that a user sees as a sentence and not as a traceback."""

    exit_code = 1

    def lines(self) -> list[str]:
        """What goes to stderr, one line each."""
        return [str(self)]


class BadInputError(CoordinatorError):
    """What the user wrote cannot be used; carries every problem that was found."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def lines(self) -> list[str]:
        """One line per problem, in the order of the files' lines."""
        return [str(problem) for problem in self.problems]


class InfeasibleError(CoordinatorError):
    """No placement holds every deadline; `reasons` name what cannot hold and by how much; `hint`: what to do next."""

    exit_code = 3

    def __init__(self, reasons: Iterable[str], hint: str = "") -> None:
        self.reasons = list(reasons)
        self.hint = hint
        super().__init__("\n".join(self.reasons))

    def lines(self) -> list[str]:
        """`infeasible: ` and one reason per line, then the hint."""
        return [*(f"infeasible: {reason}" for reason in self.reasons), *([self.hint] if self.hint else [])]


class OutOfTimeError(CoordinatorError):
    """The solver found nothing within its time limit: neither a plan nor a proof that there is none."""

    exit_code = 4


class UnprovenError(CoordinatorError):
    """A plan was made, some output of it is neither guaranteed nor proven to be beyond any guarantee."""

    exit_code = 4


class AuditError(CoordinatorError):
    """A plan that was just made breaks its own constraints: a defect of the planner, never of the input."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = list(violations)
        super().__init__("\n".join(self.violations))

    def lines(self) -> list[str]:
        """One line per violated constraint."""
        return [f"audit: {violation}" for violation in self.violations]


def unwritable(path: Path, error: OSError) -> BadInputError:
    """A file or directory that was asked for and cannot be written."""
    mend = "make room there, or name another place" if error.errno in FULL else "name another place"
    return BadInputError([Problem(str(path), 0, f"cannot be written: {error.strerror or error}; {mend}")])


def problem(file: Path | str, line: int, text: str) -> Problem:
    """A problem of a file, as the user named the file."""
    return Problem(str(file), line, text)
