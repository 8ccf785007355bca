"""What one connector has counted since its process began. One thread counts, and another one reads."""

from collections import Counter
from typing import Literal

Event = Literal[
    "received",  # messages that came, or results
    "admitted",  # messages that the agent took as tuples
    "delivered",  # results that the other system took
    "refused_unreadable",  # not of the stream's type
    "refused_stamp",  # without an instant of origin, or with one that cannot be
    "refused_by_agent",  # too old, too large, too much: as its log and the trace say
    "refused_no_agent",  # its runtime did not answer
    "stamps_ahead",  # admitted as of now: they were in the future, by less than a second
    "stamps_back",  # admitted: they were before one that had come earlier
    "connections_lost",  # to the other system
    "gaps",  # of these, the ones that lost an unknown number of messages
    "lost",  # messages that are known to be gone; results that were too late when the other system was there again
]
IN: tuple[Event, ...] = (
    "received", "admitted", "refused_unreadable", "refused_stamp", "refused_by_agent", "refused_no_agent",
    "stamps_ahead", "stamps_back", "connections_lost", "gaps", "lost",
)  # fmt: skip
OUT: tuple[Event, ...] = ("received", "delivered", "refused_unreadable", "connections_lost", "lost")


class Counts:
    """Of one connector."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self._of: Counter[str] = Counter(dict.fromkeys(events, 0))

    def add(self, event: Event, n: int = 1) -> None:
        """So many more."""
        self._of[event] += n

    def set(self, event: Event, n: int) -> None:
        """So many in all."""
        self._of[event] = n

    def rows(self) -> tuple[tuple[str, int], ...]:
        """Each event and how often it was."""
        return tuple(self._of.copy().items())
