"""How tests compare the coordinator's mistakes; sentences stand in snapshots alone (`tests.sentences`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake, Problem
from tests.sentences import Wording

UNMENDED: frozenset[Code] = frozenset(  # what is wrong says by itself what to do
    {
        "bad_expression",
        "ipv6_without_brackets",
        "name_too_long",
        "names_differ_by_case",
        "no_host",
        "run_or_chain",
        "size_without_most",
        "too_large_quantity",
    }
)


def facts(problem: Problem) -> tuple[str, int, Code, str]:
    """File, line, code and subject."""
    return Path(problem.file).name, problem.line, problem.mistake.code, problem.subject


def named(mistakes: Iterable[Mistake]) -> list[tuple[Code, str]]:
    """Code and subject of each."""
    return [(one.code, one.subject) for one in mistakes]


def has(*expected: tuple[Code, str]) -> Callable[[CoordinatorError], bool]:
    """For pytest.raises: that an error has exactly these codes and subjects."""
    return lambda error: named(error.mistakes) == list(expected)


def printed(error: CoordinatorError, folder: Path) -> list[str]:
    """Its lines, with files as they are called in `folder`."""
    return [line.replace(f"{folder}/", "") for line in error.lines()]


def mended(problems: Iterable[Problem]) -> bool:
    """Whether each says what to do."""
    return all(one.mistake.mend or one.mistake.code in UNMENDED for one in problems)


__all__ = ["UNMENDED", "Wording", "facts", "has", "mended", "named", "printed"]
