"""What passes of an analysis have made, by what they made it of, so that a pass makes anew only what has changed.

A pass changes few delays: the streams and nodes that none of these reaches are as they were, and are the same objects.
Exact: a key holds everything that the result depends on and that differs between passes, streams by identity and the
rest by value. It serves one system with any sub-deadlines, so a search for these starts from what it has made already.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

MOST_RESULTS = 20_000  # in memory; more are seldom asked for again
T = TypeVar("T")


class Reuse:
    """Results by their keys. Keys hold the streams themselves, so none of these is ever taken for a later one."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: dict[Hashable, object] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made of the key before, else made now. An error is raised and not remembered."""
        if key in self.results:
            return cast(T, self.results[key])
        made = make()
        if len(self.results) >= MOST_RESULTS:
            self.results.clear()
        self.results[key] = made
        return made
