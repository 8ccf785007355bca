"""The few ways in which the coordinator fails, each with its exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.error_codes import Code

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with something a user wrote, and the mend, before it is known where it stands."""

    code: Code
    text: str
    mend: str = ""

    @classmethod
    def of(cls, code: Code, sentence: str) -> Mistake:
        """From the sentence of a room that has no codes: the mend is what follows its first semicolon."""
        text, _, mend = sentence.partition("; ")
        return cls(code, text, mend)

    def within(self, what: str, joint: str = ": ") -> Mistake:
        """The same mistake, told of the thing that it is in."""
        return replace(self, text=f"{what}{joint}{self.text}")

    def __str__(self) -> str:
        """One sentence; a question is answered without a semicolon."""
        joint = " " if self.text.endswith("?") else "; "
        return f"{self.text}{joint}{self.mend}" if self.mend else self.text


class MistakeError(ValueError):
    """A value that cannot be used."""

    def __init__(self, code: Code, text: str, mend: str = "") -> None:
        self.mistake = Mistake(code, text, mend)
        super().__init__(str(self.mistake))


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file; `line` counts from 1, 0 means the file as a whole; `subject`: the keys of what is wrong,
    joined by dots, empty where that is the file."""

    mistake: Mistake
    file: str
    line: int = 0
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.mistake}" if self.line else f"{self.file}: {self.mistake}"


class CoordinatorError(Exception):
    """Any failure that a user sees as a sentence and not as a traceback."""

    exit_code = 1

    def lines(self) -> list[str]:
        """What goes to stderr, one line each."""
        return [str(self)]


class BadInputError(CoordinatorError):
    """What the user wrote cannot be used; carries every problem that was found, those that read alike once."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        told = {(one.file, one.line, str(one.mistake)): one for one in problems}
        self.problems = [told[place] for place in sorted(told)]
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


def bad_file(path: Path, code: Code, text: str, mend: str = "", subject: str = "") -> BadInputError:
    """A file or directory that cannot be used; `subject`: the keys of why, empty where it is the whole."""
    return BadInputError([Problem(Mistake(code, text, mend), str(path), subject=subject)])


def unwritable(path: Path, error: OSError) -> BadInputError:
    """A file or directory that was asked for and cannot be written."""
    mend = "make room there, or name another place" if error.errno in FULL else "name another place"
    return bad_file(path, "unwritable", f"cannot be written: {error.strerror or error}", mend)
