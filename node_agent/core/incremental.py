"""Incremental work: a generator that yields where it may be interrupted, and returns its result.

Work that shares the scheduling thread with task instances has this form: the driver decides how many steps run at a
time. `finish` runs all steps at once.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Incremental = Generator[None, None, T]


def finish(work: Incremental[T]) -> T:
    """Run all steps. Returns the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            made: T = end.value
            return made
