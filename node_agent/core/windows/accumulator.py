"""What an aggregate is, to a window: something that gives each of its windows an accumulator of its own."""

from collections.abc import Callable
from typing import Protocol

Reader = Callable[[object], object]
"""Of a payload: the value that is needed of it. Raises UnfitError where it has none."""


class Accumulator(Protocol):
    """What one window has of its tuples so far."""

    def add(self, source: int, payload: object) -> None:
        """One more tuple, in the order of its source's numbers. source: from 0, which of the window's sources it is
        from. Raises UnfitError, and what a user's function raises."""

    def result(self) -> dict[str, object]:
        """Of a complete window. Raises what a user's function raises."""


class Aggregate(Protocol):
    """Made once per window operator."""

    def start(self) -> Accumulator:
        """Of an empty window. Raises what a user's function raises."""


class Figure(Protocol):
    """One figure of a window, of values that were read already."""

    def add(self, value: object) -> None:
        """One more. Raises UnfitError for a value that it cannot take."""

    def result(self) -> object:
        """None where there is none of no values."""


class Own(Protocol):
    """A user's aggregate. Its states are objects of the user's."""

    def start(self) -> object:
        """The state of an empty window."""

    def add(self, state: object, payload: object) -> object:
        """The state with that tuple; may be the same object."""

    def result(self, state: object) -> object:
        """Of a complete window."""


__all__ = ["Accumulator", "Aggregate", "Figure", "Own", "Reader"]
