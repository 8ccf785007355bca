"""What commands print of mistakes, one snapshot file per command in tests/golden/wording.

Tests compare codes, subjects, files and lines; sentences stand in the snapshots alone. Where sentences are meant to
change, write them again, in one process and whole files of tests, and read the difference:

    SHIMEKIRI_GOLDEN=write python -m pytest -p no:xdist tests/coordinator/spec

An entry that no test checks any more fails the last test of the file that its group belongs to.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from protos.mistake import Mistake, Problem

FOLDER = Path(__file__).parent / "golden" / "wording"
ABOVE = re.compile(r"""(?<![\w.])/(?:[^\s/:;,'"]+/)+""")  # the folders above a file, where tests run
WRITES = os.environ.get("SHIMEKIRI_GOLDEN") == "write"

_checked: dict[tuple[str, str], set[str]] = {}  # cases by command and group, of the file whose tests run


class Wording:
    """The sentences of one command, by group of cases and case; one file of tests checks a group."""

    def __init__(self, command: str, group: str) -> None:
        self._command, self._group = command, group

    def check(self, case: str, lines: Sequence[str]) -> None:
        """That a case prints what the snapshot has."""
        _checked.setdefault((self._command, self._group), set()).add(case)
        groups = read(self._command)
        if WRITES:
            groups.setdefault(self._group, {})[case] = list(lines)
            _write(self._command, groups)
        assert groups.get(self._group, {}).get(case) == list(lines)

    @contextmanager
    def refuses(
        self, expected: str, worded: bool = True, kind: type[Exception] = Exception
    ) -> Iterator[pytest.ExceptionInfo[Exception]]:
        """That what is within fails with a mistake that `fault` writes so, in the words of the case that the running
        test and the mistake name. worded: whether the words are compared; not where some machines skip the test, and
        not words of libraries. kind: of the error."""
        with refused(expected, kind) as raised:
            yield raised
        error = raised.value
        if worded:
            self.check(self._case(expected), ABOVE.sub("", str(error)).splitlines())

    def _case(self, expected: str) -> str:
        """TEST: MISTAKE, with a number from the second on."""
        test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].removesuffix(" (call)")
        checked = _checked.get((self._command, self._group), set())
        case, number = f"{test}: {expected}", 1
        while case in checked:
            number += 1
            case = f"{test}: {expected} {number}"
        return case


@contextmanager
def refused(expected: str, kind: type[Exception] = Exception) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """That what is within fails with a mistake that `fault` writes so, in any words. kind: of the error."""
    with pytest.raises(kind, check=lambda error: problem_of(error) is not None) as raised:
        yield raised
    problem = problem_of(raised.value)
    assert problem is not None and fault(problem) == expected
    assert str(raised.value) == str(problem), "what is printed is what is compared"


def problem_of(error: Exception) -> Problem | None:
    """The one mistake of an error that has a code; None: it has none."""
    if isinstance(problem := getattr(error, "problem", None), Problem):
        return problem
    if isinstance(mistake := getattr(error, "mistake", None), Mistake):
        return Problem(mistake)
    code = getattr(error, "code", None) or getattr(error, "cause", None)
    return Problem(Mistake(code, str(error), subject=getattr(error, "subject", ""))) if isinstance(code, str) else None


def fault(problem: Problem) -> str:
    """FILE:LINE CODE SUBJECT, without what there is not."""
    line = f":{problem.line}" if problem.line else ""
    return f"{Path(problem.file).name if problem.file else ''}{line} {problem.mistake.code} {problem.subject}".strip()


def read(command: str) -> dict[str, dict[str, list[str]]]:
    """A command's snapshot: lines by group and case."""
    path = FOLDER / f"{command}.json"
    groups: dict[str, dict[str, list[str]]] = json.loads(path.read_text()) if path.exists() else {}
    return groups


def begin() -> None:
    """Before the tests of a file."""
    _checked.clear()


def stale() -> list[str]:
    """COMMAND GROUP: CASE of each entry that none of the tests since `begin` checked, of the groups that they checked.
    Where snapshots are written, such entries are removed instead."""
    found = []
    for (command, group), cases in _checked.items():
        groups = read(command)
        left = sorted(groups.get(group, {}).keys() - cases)
        if left and WRITES:
            groups[group] = {case: lines for case, lines in groups[group].items() if case in cases}
            _write(command, groups)
        elif left:
            found += [f"{command} {group}: {case}" for case in left]
    return found


def _write(command: str, groups: dict[str, dict[str, list[str]]]) -> None:
    ordered = {name: dict(sorted(groups[name].items())) for name in sorted(groups)}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{command}.json").write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
