"""Instants at which a node makes the tuples of a source itself: those that are `offset` beyond a multiple of `every`.

They are instants of the node's clock and not of a plan's commit. So a source goes on at the same ones under the next
plan and in the next process, and two sources of a node stand to each other as their offsets say.
"""

from typing import NamedTuple


class Due(NamedTuple):
    """Ticks that are due: `first_ns` and, `every` apart, so many in all."""

    first_ns: int
    ticks: int


class Ticks:
    """Of one source. next_ns: the first one that has not been taken."""

    __slots__ = ("every_ns", "next_ns", "offset_ns")

    def __init__(self, every_ns: int, offset_ns: int, from_ns: int) -> None:
        self.every_ns, self.offset_ns = every_ns, offset_ns
        self.next_ns = from_ns + (offset_ns - from_ns) % every_ns

    def take(self, at_ns: int) -> Due:
        """Those up to that instant."""
        first_ns = self.next_ns
        if at_ns < first_ns:
            return Due(first_ns, 0)
        count = (at_ns - first_ns) // self.every_ns + 1
        self.next_ns = first_ns + count * self.every_ns
        return Due(first_ns, count)

    def number(self, planned_ns: int) -> int:
        """Of a tick, counted from the beginning of the node's clock."""
        return (planned_ns - self.offset_ns) // self.every_ns


__all__ = ["Due", "Ticks"]
