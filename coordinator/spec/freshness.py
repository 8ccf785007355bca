"""What an output asks of the data behind its results: how old they may be, and how soon a change has to show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Freshness:
    """A limit on the age of the data behind a result, or on the reaction to a source. `without`: sources that do not
    count."""

    limit_ns: int
    without: tuple[str, ...] = ()

    @classmethod
    def read(cls, limit_ns: int | None, without: tuple[str, ...]) -> Freshness | None:
        """From plan.json; None: not asked."""
        return None if limit_ns is None else cls(limit_ns, without)
