"""The few ways in which the coordinator fails, each with its exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coordinator.error_codes import Code
from protos import mistake

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Mistake(mistake.Mistake):
    """A mistake with a code of the coordinator's."""

    code: Code

    @classmethod
    def of(cls, code: Code, sentence: str, subject: str = "") -> Mistake:
        """From the sentence of a room that has no codes: the mend is what follows its first semicolon."""
        text, _, mend = sentence.partition("; ")
        return cls(code, text, mend, subject)


class MistakeError(ValueError):
    """A value that cannot be used."""

    def __init__(self, code: Code, text: str, mend: str = "") -> None:
        self.mistake = Mistake(code, text, mend)
        super().__init__(str(self.mistake))


@dataclass(frozen=True, slots=True)
class Problem(mistake.Problem):
    """A mistake of the coordinator's in a file; `line` counts from 1, 0 means the file as a whole."""

    mistake: Mistake


class CoordinatorError(Exception):
    """Any failure that a user sees as a sentence and not as a traceback. details: lines that follow the mistakes."""

    exit_code = 1

    def __init__(self, *mistakes: Mistake, details: Iterable[str] = ()) -> None:
        self.mistakes = list(mistakes)
        self.details = list(details)
        super().__init__()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """What goes to stderr, one line each."""
        return [*map(str, self.mistakes), *self.details]


class BadInputError(CoordinatorError):
    """What the user wrote cannot be used; carries every problem that was found, those that read alike once."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        told = {(one.file, one.line, str(one.mistake)): one for one in problems}
        self.problems = [told[place] for place in sorted(told)]
        super().__init__(*(problem.mistake for problem in self.problems))

    def lines(self) -> list[str]:
        """One line per problem, in the order of the files' lines."""
        return [str(problem) for problem in self.problems]


class InfeasibleError(CoordinatorError):
    """No placement holds every deadline; the reasons name what cannot hold and by how much; `hint`: what to do next."""

    exit_code = 3

    def __init__(self, reasons: Iterable[Mistake], hint: str = "") -> None:
        super().__init__(*reasons)
        self.hint = hint

    @property
    def reasons(self) -> list[Mistake]:
        """The mistakes, each a reason of its own."""
        return self.mistakes

    def __str__(self) -> str:
        return "\n".join(map(str, self.reasons))

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
        super().__init__(*(Mistake("violated_constraint", f"audit: {violation}") for violation in self.violations))

    def __str__(self) -> str:
        return "\n".join(self.violations)


def bad_file(path: Path, code: Code, text: str, mend: str = "", subject: str = "") -> BadInputError:
    """A file or directory that cannot be used; `subject`: the keys of why, empty where it is the whole."""
    return BadInputError([Problem(Mistake(code, text, mend, subject), str(path))])


def unwritable(path: Path, error: OSError, otherwise: str = "name another place") -> BadInputError:
    """A file or directory that was asked for and cannot be written; `otherwise`: what helps, beside room for it."""
    mend = f"make room there, or {otherwise}" if error.errno in FULL else otherwise
    return bad_file(path, "unwritable", f"cannot be written: {error.strerror or error}", mend)


def unwritable_run(path: Path, error: OSError) -> BadInputError:
    """A file or directory of a run that a report has to write."""
    return unwritable(path, error, "report on a copy of the run")


def no_placement_in_time(seconds: float) -> OutOfTimeError:
    """No placement within the limit, nor a proof that there is none."""
    return OutOfTimeError(
        Mistake("out_of_time", f"no placement was found within {seconds:g} s", "give more with --time-limit")
    )
