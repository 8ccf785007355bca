"""What an adversary is free to choose in a run: everything that declarations leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Which(Enum):
    """Which tuples take the longest that is declared; the others take the least."""

    ALL = 0
    NONE = 1
    BEFORE = 2
    FROM = 3
    ONLY = 4


@dataclass(frozen=True)
class Slow:
    """Which tuples of a source, by its number, are slow somewhere."""

    which: Which = Which.ALL
    number: int = 0

    def is_so(self, number: int) -> bool:
        """Of that tuple."""
        match self.which:
            case Which.ALL:
                return True
            case Which.NONE:
                return False
            case Which.BEFORE:
                return number < self.number
            case Which.FROM:
                return number >= self.number
            case Which.ONLY:
                return number == self.number


ALWAYS = Slow()
NEVER = Slow(Which.NONE)


@dataclass(frozen=True)
class Attack:
    """`phase_ns`: the first admission of a source; `pauses_ns`: by number, how much later than its curve allows a tuple
    comes; `slow`: per operator and per link (`a>b`); `dropped`: filters whose first tuple does not pass; `beat_ns`:
    when a source's first heartbeat is said; `young`: per source which tuples are of age 0, the others are as old as
    they may be; `first`: units whose jobs go first where deadlines are equal."""

    phase_ns: Mapping[str, int] = field(default_factory=dict)
    pauses_ns: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    slow: Mapping[str, Slow] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    beat_ns: Mapping[str, int] = field(default_factory=dict)
    young: Mapping[str, Slow] = field(default_factory=dict)
    first: frozenset[int] = frozenset()


__all__ = ["ALWAYS", "NEVER", "Attack", "Slow", "Which"]
