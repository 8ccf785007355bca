"""What is known of each error code: where it is reported, in which sentences, and what to do.

error_entries.json is made from the code of both programs by `python -m infra.generate`, as the pages are.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from protos.mistake import Mistake

FILE = Path(__file__).with_name("error_entries.json")
OURS = "coordinator"
MOST_NEAR = 3


@dataclass(frozen=True, slots=True, order=True)
class Sentence:
    """What is printed in one place, filled-in words in capitals; `mend`: what to do."""

    where: str
    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A code of a program; `remedy`: what to do where a sentence has no mend of its own."""

    program: str
    code: str
    sentences: tuple[Sentence, ...]
    remedy: str

    def lines(self) -> list[str]:
        """For a terminal: the code with its program, then each sentence with where it comes from and what to do."""
        found = [f"{self.code} ({self.program})"]
        for each in self.sentences:
            mend = each.mend or self.remedy
            found += [f"  {each.where}: {each.text}", *([f"    to do: {mend}"] if mend else [])]
        return found


def entries(code: str) -> list[Entry]:
    """Those of a code, of each program that has it; empty: none has."""
    return [entry for known in _entries().values() for entry in known.values() if entry.code == code]


def codes() -> list[str]:
    """Of all programs, each once, in order."""
    return sorted({code for known in _entries().values() for code in known})


def nearest(code: str, others: Iterable[str] = ()) -> list[str]:
    """Known codes, and other words, that are written most like an unknown one."""
    return difflib.get_close_matches(code, [*others, *codes()], MOST_NEAR, 0.5)


def hint(mistakes: Iterable[Mistake]) -> str:
    """A line that leads to an entry which says what to do, where none of the mistakes does; else empty."""
    given = list(mistakes)
    if any(each.mend or "; " in each.text for each in given):
        return ""
    known = _entries()[OURS]
    found = (each.code for each in given if each.code in known and known[each.code].remedy)
    code = next(found, "")
    return f"'coordinator help {code}' has what to do" if code else ""


@cache
def _entries() -> dict[str, dict[str, Entry]]:
    """By program and code."""
    return {
        package.replace("_", "-"): {code: _entry(package, code, each) for code, each in known.items()}
        for package, known in json.loads(FILE.read_text(encoding="utf-8")).items()
    }


def _entry(package: str, code: str, raw: dict[str, object]) -> Entry:
    places = raw["places"]
    assert isinstance(places, list)
    sentences = tuple(Sentence(each["where"], each["sentence"], each["mend"]) for each in places)
    return Entry(package.replace("_", "-"), code, sentences, str(raw["remedy"]))
