"""Which windows a tuple belongs to: a grid of half-open windows [start + i hop, start + i hop + length).

The positions are instants (ns) for windows by time, numbers of a source for windows by count. With a hop above the
length some positions are in no window.
"""

from dataclasses import dataclass

from node_agent.problems import UnusableValueError


@dataclass(frozen=True, slots=True)
class Grid:
    """hop = length: tumbling. start: where window 0 begins."""

    length: int
    hop: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.length <= 0 or self.hop <= 0:
            raise UnusableValueError(
                "out_of_range", f"a window of length {self.length} every {self.hop}: both have to be above 0"
            )

    def first(self, position: int) -> int:
        """The lowest window that ends behind the position."""
        return (position - self.start - self.length) // self.hop + 1

    def last(self, position: int) -> int:
        """The highest window that begins at or before the position."""
        return (position - self.start) // self.hop

    def of(self, position: int) -> range:
        """The windows that contain the position, at most ceil(length / hop) of them."""
        return range(self.first(position), self.last(position) + 1)

    def meets(self, least: int, greatest: int) -> range:
        """The windows that contain some position in least..greatest."""
        return range(self.first(least), self.last(greatest) + 1)

    def begin(self, window: int) -> int:
        """Its first position."""
        return self.start + window * self.hop

    def end(self, window: int) -> int:
        """The first position behind it."""
        return self.start + window * self.hop + self.length

    def from_(self, position: int) -> int:
        """The lowest window that begins at or behind the position."""
        return -((self.start - position) // self.hop)


__all__ = ["Grid"]
