"""Paths of a source's data to a place: the longest, in parts that sum up, or why nothing bounds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.guarantee.streams import Part


@dataclass(frozen=True)
class Reading:
    """The side input that data came by. `value_ns`: how old its value is at most as it comes, None: of any age;
    `after_ns`: since it was read, None: nothing bounds that."""

    operator: str
    port: str
    value_ns: int | None
    after_ns: int | None = 0


@dataclass(frozen=True)
class Path:
    """At most the sum of its parts, or nothing bounds it, for `why`; `reading`: of data whose age a limit on that side
    input would bound."""

    parts: tuple[Part, ...] = ()
    why: str = ""
    reading: Reading | None = None

    @property
    def ns(self) -> int | None:
        """None: nothing bounds it."""
        return None if self.why else sum(part.ns for part in self.parts)

    def after(self, parts: Iterable[Part]) -> Path:
        """More on the way."""
        more = tuple(part for part in parts if part.ns)
        if not more:
            return self
        reading = self.reading
        if reading is not None and reading.after_ns is not None:
            reading = replace(reading, after_ns=reading.after_ns + sum(part.ns for part in more))
        return Path((*self.parts, *more), self.why, reading)

    def stopped(self, why: str) -> Path:
        """Nothing bounds what comes next; why it had no bound before stays the reason."""
        reading = self.reading
        return Path(self.parts, self.why or why, replace(reading, after_ns=None) if reading is not None else None)


Paths = Mapping[str, Path]  # by source


def longer(one: Path, other: Path) -> Path:
    """One without a bound is the longest."""
    if one.ns is None or other.ns is None:
        return one if one.ns is None else other
    return one if one.ns >= other.ns else other


def longest(several: Sequence[Paths]) -> dict[str, Path]:
    """Of each source."""
    found: dict[str, Path] = {}
    for paths in several:
        for name, path in paths.items():
            found[name] = longer(found[name], path) if name in found else path
    return found


def after(paths: Paths, parts: Sequence[Part]) -> dict[str, Path]:
    """All of them, with more on the way."""
    return {name: path.after(parts) for name, path in paths.items()}


def stopped(paths: Paths, why: str) -> dict[str, Path]:
    """All of them, without a bound."""
    return {name: path.stopped(why) for name, path in paths.items()}


__all__ = ["Path", "Paths", "Reading", "after", "longer", "longest", "stopped"]
