"""Work that can be cut: a generator that yields where it may be interrupted, and returns what it has made.

Whoever shares the scheduling thread with task instances works in this form: the driver decides how many steps it takes
at a time. Who has the thread to himself calls `finish`.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Incremental = Generator[None, None, T]


def finish(work: Incremental[T]) -> T:
    """All of it at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            made: T = end.value
            return made
