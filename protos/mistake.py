"""What is wrong with something that a user gave: one shape in all packages; each package has codes of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, and the mend. subject: what it is about, like the keys in a file, joined by dots, an option, node,
    output or plan; empty where that is the whole."""

    code: str
    text: str
    mend: str = ""
    subject: str = ""

    def within(self, what: str, joint: str = ": ") -> Self:
        """The same mistake, told of the thing that it is in."""
        return replace(self, text=f"{what}{joint}{self.text}")

    def __str__(self) -> str:
        """One sentence; a question is answered without a semicolon."""
        joint = " " if self.text.endswith("?") else "; "
        return f"{self.text}{joint}{self.mend}" if self.mend else self.text


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file; `line` counts from 1, 0 means the file as a whole; an empty file means none."""

    mistake: Mistake
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return self._with_place(str(self.mistake))

    @property
    def subject(self) -> str:
        """What of the file it is about."""
        return self.mistake.subject

    @property
    def without_mend(self) -> str:
        """Where and what, for a reader that has the mend beside it."""
        return self._with_place(self.mistake.text)

    def _with_place(self, sentence: str) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {sentence}" if place else sentence
