"""What commands print of mistakes, one snapshot file per command in tests/golden/wording.

Tests compare codes, subjects, files and lines; sentences stand in the snapshots alone. Where sentences are meant to
change, remove a snapshot, write it again, in one process, and read the difference:

    SHIMEKIRI_GOLDEN=write python -m pytest -p no:xdist tests/coordinator/spec
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake, Problem

FOLDER = Path(__file__).parents[1] / "golden" / "wording"
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


class Wording:
    """The sentences of one command, by group of cases and case."""

    def __init__(self, command: str, group: str) -> None:
        self._path, self._group = FOLDER / f"{command}.json", group

    def _groups(self) -> dict[str, dict[str, list[str]]]:
        groups: dict[str, dict[str, list[str]]] = json.loads(self._path.read_text()) if self._path.exists() else {}
        return groups

    def check(self, case: str, lines: Sequence[str]) -> None:
        """That a case prints what the snapshot has."""
        groups = self._groups()
        if os.environ.get("SHIMEKIRI_GOLDEN") == "write":
            groups.setdefault(self._group, {})[case] = list(lines)
            ordered = {name: dict(sorted(groups[name].items())) for name in sorted(groups)}
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
        assert groups.get(self._group, {}).get(case) == list(lines)


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
